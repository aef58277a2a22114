// Package resourcereferencemanager contains the admission plugin ResourceReferenceManager. It checks that the objects
// that an object refers to exist and that the user may read them, and refuses to remove what other objects refer to.
//
// It answers every refused request with a 403 that names the field.
package resourcereferencemanager

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// Factory creates the plugin.
var Factory = plugin.Factory{Name: "ResourceReferenceManager", Operations: plugin.OnAnyChange, Validate: validate}

// checks validate a request, by the kind of its object.
var checks = map[schema.GroupKind]plugin.Func{
	gardencore.Kind("BackupBucket"):           onChange((*manager).backupBucket),
	gardencore.Kind("BackupEntry"):            onChange((*manager).backupEntry),
	gardencore.Kind("CloudProfile"):           unlessDeleting(onChange((*manager).cloudProfile)),
	gardencore.Kind("ControllerRegistration"): onChange((*manager).controllerRegistration),
	gardencore.Kind("NamespacedCloudProfile"): unlessDeleting(onChange((*manager).namespacedCloudProfile)),
	gardencore.Kind("Project"):                unlessDeleting(onChange((*manager).project)),
	gardencore.Kind("SecretBinding"):          unlessDeleting(onChange((*manager).secretBinding)),
	gardencore.Kind("Seed"):                   unlessDeleting(onChange((*manager).seed)),
	gardencore.Kind("Shoot"):                  unlessDeleting(onChange((*manager).shoot)),
	security.Kind("CredentialsBinding"):       unlessDeleting(onChange((*manager).credentialsBinding)),
	seedmanagement.Kind("Gardenlet"):          unlessDeleting(onChange((*manager).gardenlet)),
	seedmanagement.Kind("ManagedSeed"):        unlessDeleting(onChange((*manager).managedSeed)),
}

func validate(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	kind := a.GetKind().GroupKind()
	if kind == gardencore.Kind("BackupBucket") && a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Delete {
		if kind != gardencore.Kind("BackupBucket") {
			return nil
		}
		return (&manager{deps}).deleteBackupBucket(ctx, a)
	}
	if check, known := checks[kind]; known {
		return check(ctx, deps, a)
	}
	return nil
}

// manager reads the objects that an object refers to.
type manager struct{ deps plugin.Dependencies }

// onChange returns a check that calls validate with the new and the old object; the old one is empty for a create
// request.
func onChange[T any, P request.Object[T]](
	validate func(m *manager, ctx context.Context, a admission.Attributes, obj, old P) error) plugin.Func {
	return func(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
		obj, old, err := request.Objects[T, P](a)
		if err != nil {
			return err
		}
		return validate(&manager{deps}, ctx, a, obj, old)
	}
}

// unlessDeleting skips a check for updates of objects that are being deleted.
func unlessDeleting(validate plugin.Func) plugin.Func {
	return func(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
		if obj, ok := a.GetObject().(metav1.Object); ok && request.IsDeleting(a, obj) {
			return nil
		}
		return validate(ctx, deps, a)
	}
}

// exists checks that the object that the field at path refers to exists.
func (m *manager) exists(ctx context.Context, resource schema.GroupResource, namespace, name string, path *field.Path) error {
	_, err := get[runtime.Object](ctx, m, resource, namespace, name, path)
	return err
}

// get reads the object that the field at path refers to.
func get[T runtime.Object](ctx context.Context, m *manager, resource schema.GroupResource, namespace, name string,
	path *field.Path) (T, error) {
	obj, err := plugin.Get[T](ctx, m.deps.Reader, resource, namespace, name)
	return obj, unresolved(path, name, err)
}

func (m *manager) secretExists(ctx context.Context, namespace, name string, path *field.Path) error {
	_, err := m.deps.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return unresolved(path, name, err)
}

func (m *manager) configMapExists(ctx context.Context, namespace, name string, path *field.Path) error {
	_, err := m.deps.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	return unresolved(path, name, err)
}

// unresolved returns the field error for a reference that could not be read, and nil if err is nil.
func unresolved(path *field.Path, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return field.NotFound(path, name)
	}
	return field.InternalError(path, fmt.Errorf("reading %q: %v", name, err))
}

// validateReadAccess checks that the user may read the object that the field at path refers to.
func (m *manager) validateReadAccess(ctx context.Context, a admission.Attributes, resource schema.GroupVersionResource, namespace,
	name string, path *field.Path) error {
	allowed, err := request.MayGet(ctx, m.deps.Authorizer, a, resource, namespace, name)
	switch {
	case err != nil:
		return field.InternalError(path, err)
	case !allowed:
		return field.Forbidden(path, fmt.Sprintf("user %q may not read %s %s/%s, so may not refer to it",
			a.GetUserInfo().GetName(), resource.GroupResource(), namespace, name))
	}
	return nil
}

func same[T any](a, b T) bool { return apiequality.Semantic.DeepEqual(a, b) }
