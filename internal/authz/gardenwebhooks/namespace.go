package gardenwebhooks

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceDeletion refuses the deletion of a Project's namespace, unless the Project is being deleted and has no
// Shoots: the namespace's deletion would remove what a Shoot cannot be reconciled without, such as its CA, but not the
// Shoot.
func (h *handlers) namespaceDeletion(ctx context.Context, request *admissionv1.AdmissionRequest) (
	changedLabels, error) {
	namespace := &corev1.Namespace{}
	if err := h.reader.Get(ctx, client.ObjectKey{Name: request.Name}, namespace); err != nil {
		return nil, ignoreNotFound(err)
	}
	name := namespace.Labels[v1beta1constants.ProjectName]
	if name == "" || namespace.DeletionTimestamp != nil {
		return nil, nil
	}
	project := &gardencorev1beta1.Project{}
	if err := h.reader.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
		return nil, ignoreNotFound(err)
	}
	forbidden := func(format string, args ...any) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "Namespace"}, namespace.Name,
			fmt.Errorf(format, args...))
	}
	if project.DeletionTimestamp == nil {
		return nil, forbidden(
			"direct deletion of namespace %q is not permitted (you must delete the corresponding project %q)",
			namespace.Name, project.Name)
	}
	inUse, err := h.exist(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace(namespace.Name))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if inUse {
		return nil, forbidden("deletion of namespace %q is not permitted (it still contains Shoots)", namespace.Name)
	}
	return nil, nil
}

// ignoreNotFound returns an internal error, or nil if the object does not exist.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return apierrors.NewInternalError(err)
}
