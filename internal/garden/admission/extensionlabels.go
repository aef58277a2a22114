package admission

import (
	"context"
	"fmt"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// extensionLabelsPlugin is the admission plugin ExtensionLabels. It labels every object with the extensions that it
// uses, so that extensions can select their objects. It overwrites such labels of the user.
var extensionLabelsPlugin = plugin.Factory{Name: "ExtensionLabels", Operations: plugin.OnCreateOrUpdate, Admit: admitExtensionLabels}

// labelers label the object of a request, by its kind.
var labelers = map[schema.GroupKind]plugin.Func{
	gardencore.Kind("BackupBucket"):           labelsOfProvider(func(b *gardencore.BackupBucket) string { return b.Spec.Provider.Type }),
	gardencore.Kind("BackupEntry"):            withLabels(backupEntryLabels),
	gardencore.Kind("CloudProfile"):           labelsOfProvider(func(p *gardencore.CloudProfile) string { return p.Spec.Type }),
	gardencore.Kind("NamespacedCloudProfile"): withLabels(profileLabels),
	gardencore.Kind("SecretBinding"):          withLabels(secretBindingLabels),
	gardencore.Kind("Seed"):                   withLabels(seedExtensionLabels),
	gardencore.Kind("Shoot"):                  withLabels(shootExtensionLabels),
	security.Kind("CredentialsBinding"):       labelsOfProvider(func(b *security.CredentialsBinding) string { return b.Provider.Type }),
	security.Kind("WorkloadIdentity"):         labelsOfProvider(func(w *security.WorkloadIdentity) string { return w.Spec.TargetSystem.Type }),
}

func admitExtensionLabels(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	if label, known := labelers[a.GetKind().GroupKind()]; known {
		return label(ctx, deps, a)
	}
	return nil
}

// withLabels returns a function that labels the object of a request with the extensions that find returns.
func withLabels[P metav1.Object](find func(context.Context, plugin.Reader, P) (extensions, error)) plugin.Func {
	return func(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
		obj, ok := a.GetObject().(P)
		if !ok {
			return apierrors.NewBadRequest(fmt.Sprintf("the request is about a %s but carries a %T", a.GetKind().Kind, a.GetObject()))
		}
		found, err := find(ctx, deps.Reader, obj)
		if err != nil {
			return err
		}
		found.label(obj)
		return nil
	}
}

// extensions are the keys of the labels for the extensions that an object uses.
type extensions []string

func (e *extensions) add(prefix string, types ...string) {
	for _, t := range types {
		*e = append(*e, prefix+t)
	}
}

var labelPrefixes = []string{
	v1beta1constants.LabelExtensionContainerRuntimeTypePrefix,
	v1beta1constants.LabelExtensionDNSRecordTypePrefix,
	v1beta1constants.LabelExtensionExtensionTypePrefix,
	v1beta1constants.LabelExtensionNetworkingTypePrefix,
	v1beta1constants.LabelExtensionOperatingSystemConfigTypePrefix,
	v1beta1constants.LabelExtensionProviderTypePrefix,
	v1beta1constants.LabelExtensionSelfHostedShootExposureTypePrefix,
}

func (e extensions) label(obj metav1.Object) {
	labels := obj.GetLabels()
	for key := range labels {
		for _, prefix := range labelPrefixes {
			if strings.HasPrefix(key, prefix) {
				delete(labels, key)
			}
		}
	}
	if labels == nil && len(e) > 0 {
		labels = map[string]string{}
	}
	for _, key := range e {
		labels[key] = "true"
	}
	obj.SetLabels(labels)
}

func providerLabels(types ...string) (found extensions, _ error) {
	found.add(v1beta1constants.LabelExtensionProviderTypePrefix, types...)
	return found, nil
}

// labelsOfProvider returns a function that labels the object of a request with its provider.
func labelsOfProvider[P metav1.Object](providerType func(P) string) plugin.Func {
	return withLabels(func(_ context.Context, _ plugin.Reader, obj P) (extensions, error) {
		return providerLabels(providerType(obj))
	})
}

func backupEntryLabels(ctx context.Context, r plugin.Reader, entry *gardencore.BackupEntry) (extensions, error) {
	bucket, err := readReferred[*gardencore.BackupBucket](ctx, r, "backupbuckets", entry.Spec.BucketName, field.NewPath("spec", "bucketName"))
	if err != nil {
		return nil, err
	}
	return providerLabels(bucket.Spec.Provider.Type)
}

func profileLabels(ctx context.Context, r plugin.Reader, profile *gardencore.NamespacedCloudProfile) (extensions, error) {
	const kind = v1beta1constants.CloudProfileReferenceKindCloudProfile
	if profile.Spec.Parent.Kind != kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.parent.kind must be %q, not %q", kind, profile.Spec.Parent.Kind))
	}
	parent, err := readReferred[*gardencore.CloudProfile](ctx, r, "cloudprofiles", profile.Spec.Parent.Name,
		field.NewPath("spec", "parent", "name"))
	if err != nil {
		return nil, err
	}
	return providerLabels(parent.Spec.Type)
}

func secretBindingLabels(_ context.Context, _ plugin.Reader, binding *gardencore.SecretBinding) (extensions, error) {
	if binding.Provider == nil {
		return nil, nil
	}
	return providerLabels(strings.Split(binding.Provider.Type, ",")...)
}

// readReferred reads a cluster-scoped object. Its name has not been validated yet, so an invalid name counts as not found.
func readReferred[T runtime.Object](ctx context.Context, r plugin.Reader, resource, name string, path *field.Path) (T, error) {
	obj, err := plugin.Get[T](ctx, r, gardencore.Resource(resource), "", name)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsBadRequest(err):
		return obj, field.NotFound(path, name)
	case err != nil:
		return obj, apierrors.NewInternalError(fmt.Errorf("reading %s %q of %s: %v", resource, name, path, err))
	}
	return obj, nil
}
