package resourcereferencemanager

import (
	"context"
	"fmt"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// project checks that no other Project has the namespace. The Project may adopt an existing namespace.
func (m *manager) project(ctx context.Context, _ admission.Attributes, project, old *gardencore.Project) error {
	if project.Spec.Namespace == nil || old.Spec.Namespace != nil {
		return nil
	}
	namespace := *project.Spec.Namespace
	projects, err := plugin.List[*gardencore.Project](ctx, m.deps.Reader, gardencore.Resource("projects"), "",
		fields.OneTermEqualSelector(gardencore.ProjectNamespace, namespace))
	if err != nil {
		return fmt.Errorf("listing the projects of namespace %q: %v", namespace, err)
	}
	for _, other := range projects {
		if other.Name != project.Name && other.Spec.Namespace != nil && *other.Spec.Namespace == namespace {
			return field.Forbidden(field.NewPath("spec", "namespace"), fmt.Sprintf("%q belongs to project %q already", namespace, other.Name))
		}
	}
	return nil
}

func (m *manager) controllerRegistration(ctx context.Context, a admission.Attributes, registration,
	_ *gardencore.ControllerRegistration) error {
	if registration.Spec.Deployment == nil {
		return nil
	}
	var errs field.ErrorList
	for i, ref := range registration.Spec.Deployment.DeploymentRefs {
		path := field.NewPath("spec", "deployment", "deploymentRefs").Index(i).Child("name")
		if _, err := plugin.Get[runtime.Object](ctx, m.deps.Reader, gardencore.Resource("controllerdeployments"), "",
			ref.Name); apierrors.IsNotFound(err) {
			errs = append(errs, field.NotFound(path, ref.Name))
		} else if err != nil {
			errs = append(errs, field.InternalError(path, fmt.Errorf("reading %q: %v", ref.Name, err)))
		}
	}
	return request.Forbidden(a, errs)
}

// gardenlet checks that no ManagedSeed has the name, because both create a seed of their own name.
func (m *manager) gardenlet(ctx context.Context, _ admission.Attributes, gardenlet, _ *seedmanagement.Gardenlet) error {
	return m.nameIsFree(ctx, "managedseeds", gardenlet.Namespace, gardenlet.Name)
}

func (m *manager) managedSeed(ctx context.Context, _ admission.Attributes, managedSeed, _ *seedmanagement.ManagedSeed) error {
	return m.nameIsFree(ctx, "gardenlets", managedSeed.Namespace, managedSeed.Name)
}

func (m *manager) nameIsFree(ctx context.Context, resource, namespace, name string) error {
	_, err := m.deps.Reader.Get(ctx, seedmanagement.Resource(resource), namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s %s/%s: %v", resource, namespace, name, err)
	}
	return field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("there is one of %s named %q already; a seed is made from one of the two only", seedmanagement.Resource(resource), name))
}

func (m *manager) backupEntry(ctx context.Context, _ admission.Attributes, entry, old *gardencore.BackupEntry) error {
	if err := m.seedExists(ctx, entry.Spec.SeedName, old.Spec.SeedName); err != nil {
		return err
	}
	if entry.Spec.BucketName == old.Spec.BucketName {
		return nil
	}
	return m.exists(ctx, gardencore.Resource("backupbuckets"), "", entry.Spec.BucketName, field.NewPath("spec", "bucketName"))
}

func (m *manager) seedExists(ctx context.Context, name, old *string) error {
	if name == nil || same(name, old) {
		return nil
	}
	return m.exists(ctx, gardencore.Resource("seeds"), "", *name, field.NewPath("spec", "seedName"))
}

// backupBucket checks the credentials with every request, not only when they change.
func (m *manager) backupBucket(ctx context.Context, _ admission.Attributes, bucket, old *gardencore.BackupBucket) error {
	if err := m.seedExists(ctx, bucket.Spec.SeedName, old.Spec.SeedName); err != nil {
		return err
	}
	path, ref := field.NewPath("spec", "credentialsRef"), bucket.Spec.CredentialsRef
	if ref == nil {
		return field.Required(path, "must refer to a Secret or a WorkloadIdentity")
	}
	switch resource := kinds[ref.GroupVersionKind()]; {
	case resource.Group == corev1.GroupName && resource.Resource == "secrets":
		return m.secretExists(ctx, ref.Namespace, ref.Name, path)
	case resource.Group == security.GroupName:
		return m.exists(ctx, resource.GroupResource(), ref.Namespace, ref.Name, path)
	}
	return field.NotSupported(path.Child("kind"), ref.GroupVersionKind().String(), []string{"Secret", "WorkloadIdentity"})
}

// deleteBackupBucket refuses to delete a bucket with BackupEntries. A DeleteCollection request has no name, so it is
// refused if any bucket has an entry.
func (m *manager) deleteBackupBucket(ctx context.Context, a admission.Attributes) error {
	var selector fields.Selector
	if a.GetName() != "" {
		selector = fields.OneTermEqualSelector(gardencore.BackupEntryBucketName, a.GetName())
	}
	entries, err := plugin.List[*gardencore.BackupEntry](ctx, m.deps.Reader, gardencore.Resource("backupentries"), "", selector)
	if err != nil {
		return fmt.Errorf("listing the backup entries of bucket %q: %v", a.GetName(), err)
	}
	buckets := map[string]bool{a.GetName(): true}
	if a.GetName() == "" {
		list, err := plugin.List[*gardencore.BackupBucket](ctx, m.deps.Reader, gardencore.Resource("backupbuckets"), "", nil)
		if err != nil {
			return fmt.Errorf("listing the backup buckets: %v", err)
		}
		for _, bucket := range list {
			buckets[bucket.Name] = true
		}
	}
	var inUse []string
	for _, entry := range entries {
		if buckets[entry.Spec.BucketName] {
			inUse = append(inUse, fmt.Sprintf("%s/%s (bucket %s)", entry.Namespace, entry.Name, entry.Spec.BucketName))
		}
	}
	if len(inUse) == 0 {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("there are backup entries; delete them first: %s", strings.Join(inUse, ", ")))
}
