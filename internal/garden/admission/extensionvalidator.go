package admission

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// extensionPlugin is the admission plugin ExtensionValidator, which checks that the extensions that an object needs
// are registered.
var extensionPlugin = plugin.Factory{Name: "ExtensionValidator", Operations: plugin.OnCreateOrUpdate, Validate: validateExtension}

func validateExtension(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	needed, err := needsOf(ctx, deps.Reader, a)
	if err != nil || needed == nil {
		return err
	}
	var errs field.ErrorList
	for _, reader := range []plugin.Reader{deps.Reader, plugin.Fresh(deps.Reader)} {
		registered, err := shootcommon.RegisteredResources(ctx, reader)
		if err != nil {
			return err
		}
		if errs = registrations(registered).validate(needed); len(errs) == 0 {
			return nil
		}
	}
	return request.Forbidden(a, errs)
}

// needsOf returns the extensions that the object of a request needs. It returns nil if the spec is unchanged, because
// it has been validated before.
func needsOf(ctx context.Context, r plugin.Reader, a admission.Attributes) (*needs, error) {
	switch a.GetKind().GroupKind() {
	case gardencore.Kind("BackupBucket"):
		bucket, old, err := request.Objects[gardencore.BackupBucket](a)
		if err != nil || same(bucket.Spec, old.Spec) {
			return nil, err
		}
		return backupBucketNeeds(bucket), nil
	case gardencore.Kind("BackupEntry"):
		entry, old, err := request.Objects[gardencore.BackupEntry](a)
		if err != nil || same(entry.Spec, old.Spec) {
			return nil, err
		}
		return backupEntryNeeds(ctx, r, entry)
	case gardencore.Kind("Seed"):
		seed, old, err := request.Objects[gardencore.Seed](a)
		if err != nil || same(seed.Spec, old.Spec) {
			return nil, err
		}
		return seedNeeds(&seed.Spec), nil
	case gardencore.Kind("Shoot"):
		shoot, old, err := request.Objects[gardencore.Shoot](a)
		if err != nil || same(shoot.Spec, old.Spec) {
			return nil, err
		}
		return shootNeeds(shoot), nil
	}
	return nil, nil
}

func backupBucketNeeds(bucket *gardencore.BackupBucket) *needs {
	needed := &needs{}
	needed.add(extensionsv1alpha1.BackupBucketResource, bucket.Spec.Provider.Type, field.NewPath("spec", "provider", "type"))
	return needed
}

// backupEntryNeeds uses the provider type of the entry's bucket.
func backupEntryNeeds(ctx context.Context, r plugin.Reader, entry *gardencore.BackupEntry) (*needs, error) {
	bucket, err := plugin.Get[*gardencore.BackupBucket](ctx, r, gardencore.Resource("backupbuckets"), "", entry.Spec.BucketName)
	if apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading the backup bucket %q: %v", entry.Spec.BucketName, err))
	}
	needed := &needs{}
	needed.add(extensionsv1alpha1.BackupEntryResource, bucket.Spec.Provider.Type, field.NewPath("spec", "bucketName"))
	return needed, nil
}

func seedNeeds(spec *gardencore.SeedSpec) *needs {
	needed, path := &needs{cluster: gardencore.ClusterTypeSeed}, field.NewPath("spec")
	needed.add(extensionsv1alpha1.ControlPlaneResource, spec.Provider.Type, path.Child("provider", "type"))
	if spec.Backup != nil {
		for _, kind := range []string{extensionsv1alpha1.BackupBucketResource, extensionsv1alpha1.BackupEntryResource} {
			needed.add(kind, spec.Backup.Provider, path.Child("backup", "provider"))
		}
	}
	if spec.Ingress != nil && spec.DNS.Provider != nil {
		needed.add(extensionsv1alpha1.DNSRecordResource, spec.DNS.Provider.Type, path.Child("dns", "provider", "type"))
	}
	needed.addExtensions(spec.Extensions, path.Child("extensions"))
	return needed
}

func shootNeeds(shoot *gardencore.Shoot) *needs {
	spec, path := &shoot.Spec, field.NewPath("spec")
	needed := &needs{cluster: gardencore.ClusterTypeShoot, workerless: shootcommon.Workerless(shoot)}
	if !needed.workerless {
		for _, kind := range []string{extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource,
			extensionsv1alpha1.WorkerResource} {
			needed.add(kind, spec.Provider.Type, path.Child("provider", "type"))
		}
		if spec.Networking != nil && spec.Networking.Type != nil {
			needed.add(extensionsv1alpha1.NetworkResource, *spec.Networking.Type, path.Child("networking", "type"))
		}
	}
	if spec.DNS != nil {
		needed.addDNSProviders(spec.DNS.Providers, path.Child("dns", "providers"))
	}
	needed.addExtensions(spec.Extensions, path.Child("extensions"))
	for i := range spec.Provider.Workers {
		needed.addWorker(&spec.Provider.Workers[i], path.Child("provider", "workers").Index(i))
	}
	return needed
}

// addDNSProviders adds only primary providers: the others are for extensions that create records within the Shoot.
func (n *needs) addDNSProviders(providers []gardencore.DNSProvider, path *field.Path) {
	for i, provider := range providers {
		if t := ptr.Deref(provider.Type, gardencore.DNSUnmanaged); t != gardencore.DNSUnmanaged && ptr.Deref(provider.Primary, false) {
			n.add(extensionsv1alpha1.DNSRecordResource, t, path.Index(i).Child("type"))
		}
	}
}

// addWorker, as in Gardener, does not check the exposure of a control plane in a pool without a machine image.
func (n *needs) addWorker(worker *gardencore.Worker, path *field.Path) {
	if worker.CRI != nil {
		for i, runtime := range worker.CRI.ContainerRuntimes {
			n.add(extensionsv1alpha1.ContainerRuntimeResource, runtime.Type, path.Child("cri", "containerRuntimes").Index(i).Child("type"))
		}
	}
	if worker.Machine.Image == nil {
		return
	}
	n.add(extensionsv1alpha1.OperatingSystemConfigResource, worker.Machine.Image.Name, path.Child("machine", "image", "name"))
	if worker.ControlPlane == nil || worker.ControlPlane.Exposure == nil {
		return
	}
	if exposure := worker.ControlPlane.Exposure.Extension; exposure != nil {
		n.add(extensionsv1alpha1.SelfHostedShootExposureResource, ptr.Deref(exposure.Type, ""), path.Child("controlPlane", "exposure", "type"))
	}
}
