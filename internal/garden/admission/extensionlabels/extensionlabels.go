// Package extensionlabels contains the admission plugin ExtensionLabels. It labels every object with the extensions
// that it uses, so that extensions can select their objects. It overwrites such labels of the user. It may import the
// plugin, request and shootcommon packages.
package extensionlabels

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
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ExtensionLabels", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &mutator{admission.NewHandler(admission.Create, admission.Update), deps.Reader}, nil
	}}
}

type mutator struct {
	*admission.Handler
	reader plugin.Reader
}

var _ admission.MutationInterface = &mutator{}

// Admit implements admission.MutationInterface.
func (m *mutator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	label, known := map[schema.GroupKind]func(context.Context, admission.Attributes) error{
		gardencore.Kind("BackupBucket"):           with(m.backupBucket),
		gardencore.Kind("BackupEntry"):            with(m.backupEntry),
		gardencore.Kind("CloudProfile"):           with(m.cloudProfile),
		gardencore.Kind("NamespacedCloudProfile"): with(m.namespacedCloudProfile),
		gardencore.Kind("SecretBinding"):          with(m.secretBinding),
		gardencore.Kind("Seed"):                   with(m.seed),
		gardencore.Kind("Shoot"):                  with(m.shoot),
		security.Kind("CredentialsBinding"):       with(m.credentialsBinding),
		security.Kind("WorkloadIdentity"):         with(m.workloadIdentity),
	}[a.GetKind().GroupKind()]
	if !known {
		return nil
	}
	return shootcommon.ToAPIError(a, label(ctx, a))
}

// object is an API object of type T.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// with returns a function that labels the object of a request with the extensions that find returns.
func with[T any, P object[T]](find func(context.Context, P) (extensions, error)) func(context.Context, admission.Attributes) error {
	return func(ctx context.Context, a admission.Attributes) error {
		obj, ok := a.GetObject().(P)
		if !ok || obj == nil {
			return apierrors.NewBadRequest(fmt.Sprintf("the request is about a %s but carries a %T", a.GetKind().Kind, a.GetObject()))
		}
		found, err := find(ctx, obj)
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

var prefixes = []string{
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
		for _, prefix := range prefixes {
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

func provider(types ...string) (found extensions, _ error) {
	found.add(v1beta1constants.LabelExtensionProviderTypePrefix, types...)
	return found, nil
}

func (m *mutator) backupBucket(_ context.Context, bucket *gardencore.BackupBucket) (extensions, error) {
	return provider(bucket.Spec.Provider.Type)
}

func (m *mutator) backupEntry(ctx context.Context, entry *gardencore.BackupEntry) (extensions, error) {
	bucket, err := referred[*gardencore.BackupBucket](ctx, m.reader, "backupbuckets", entry.Spec.BucketName,
		field.NewPath("spec", "bucketName"))
	if err != nil {
		return nil, err
	}
	return provider(bucket.Spec.Provider.Type)
}

func (m *mutator) cloudProfile(_ context.Context, profile *gardencore.CloudProfile) (extensions, error) {
	return provider(profile.Spec.Type)
}

func (m *mutator) namespacedCloudProfile(ctx context.Context, profile *gardencore.NamespacedCloudProfile) (extensions, error) {
	const kind = v1beta1constants.CloudProfileReferenceKindCloudProfile
	if profile.Spec.Parent.Kind != kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.parent.kind must be %q, not %q", kind, profile.Spec.Parent.Kind))
	}
	parent, err := referred[*gardencore.CloudProfile](ctx, m.reader, "cloudprofiles", profile.Spec.Parent.Name,
		field.NewPath("spec", "parent", "name"))
	if err != nil {
		return nil, err
	}
	return provider(parent.Spec.Type)
}

func (m *mutator) secretBinding(_ context.Context, binding *gardencore.SecretBinding) (extensions, error) {
	if binding.Provider == nil {
		return nil, nil
	}
	return provider(strings.Split(binding.Provider.Type, ",")...)
}

func (m *mutator) credentialsBinding(_ context.Context, binding *security.CredentialsBinding) (extensions, error) {
	return provider(binding.Provider.Type)
}

func (m *mutator) workloadIdentity(_ context.Context, identity *security.WorkloadIdentity) (extensions, error) {
	return provider(identity.Spec.TargetSystem.Type)
}

// referred reads a cluster-scoped object. Its name has not been validated yet, so an invalid name counts as not found.
func referred[T runtime.Object](ctx context.Context, r plugin.Reader, resource, name string, path *field.Path) (T, error) {
	obj, err := plugin.Get[T](ctx, r, gardencore.Resource(resource), "", name)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsBadRequest(err):
		return obj, field.NotFound(path, name)
	case err != nil:
		return obj, apierrors.NewInternalError(fmt.Errorf("reading %s %q of %s: %v", resource, name, path, err))
	}
	return obj, nil
}
