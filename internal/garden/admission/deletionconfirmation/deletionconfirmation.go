// Package deletionconfirmation contains the admission plugin DeletionConfirmation. Shoots, Projects and ShootStates may
// be deleted only if an annotation confirms the deletion. If their Project requires dual approval, the user who
// confirmed it may not delete them. The plugin records who confirmed the deletion of a Shoot. It may import the plugin,
// request and shootcommon packages.
package deletionconfirmation

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "DeletionConfirmation", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &confirmation{admission.NewHandler(admission.Create, admission.Update, admission.Delete), deps.Reader}, nil
	}}
}

type confirmation struct {
	*admission.Handler
	reader plugin.Reader
}

var (
	_ admission.MutationInterface   = &confirmation{}
	_ admission.ValidationInterface = &confirmation{}
)

// Admit implements admission.MutationInterface. It sets and protects the annotation with the user who confirmed the
// deletion of a Shoot.
func (c *confirmation) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete || !request.IsForKind(a, gardencore.Kind("Shoot")) {
		return nil
	}
	shoot, old, err := request.Objects[gardencore.Shoot](a)
	if err != nil {
		return err
	}
	switch {
	case !confirmed(shoot):
		delete(shoot.Annotations, v1beta1constants.DeletionConfirmedBy)
	case confirmed(old):
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.DeletionConfirmedBy,
			old.Annotations[v1beta1constants.DeletionConfirmedBy])
	default:
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.DeletionConfirmedBy, a.GetUserInfo().GetName())
	}
	return nil
}

func confirmed(obj metav1.Object) bool {
	yes, err := strconv.ParseBool(obj.GetAnnotations()[v1beta1constants.ConfirmationDeletion])
	return err == nil && yes
}

// guarded are the resources whose deletion must be confirmed.
var guarded = map[schema.GroupKind]schema.GroupResource{
	gardencore.Kind("Project"):    gardencore.Resource("projects"),
	gardencore.Kind("Shoot"):      gardencore.Resource("shoots"),
	gardencore.Kind("ShootState"): gardencore.Resource("shootstates"),
}

// Validate implements admission.ValidationInterface. A DeleteCollection request has no name: it is refused unless all
// objects of the namespace may be deleted, whatever the request selects.
func (c *confirmation) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource, known := guarded[a.GetKind().GroupKind()]
	if !known || a.GetOperation() != admission.Delete {
		return nil
	}
	objs, err := c.read(ctx, resource, a.GetNamespace(), a.GetName())
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range objs {
		m, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading the metadata of a %T: %v", obj, err))
		}
		if err := c.mayDelete(ctx, m, resource, a.GetUserInfo()); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %v", resource.Resource, m.GetName(), err))
		}
	}
	if len(errs) > 0 {
		return admission.NewForbidden(a, utilerrors.NewAggregate(errs))
	}
	return nil
}

func (c *confirmation) read(ctx context.Context, resource schema.GroupResource, namespace, name string) ([]runtime.Object, error) {
	if name == "" {
		objs, err := c.reader.List(ctx, resource, namespace, nil)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("listing the %s of namespace %q: %v", resource, namespace, err))
		}
		return objs, nil
	}
	obj, err := c.reader.Get(ctx, resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("reading %s %s/%s: %v", resource, namespace, name, err))
	}
	return []runtime.Object{obj}, nil
}

var errNotConfirmed = errors.New(
	"the deletion is not confirmed; set the annotation " + v1beta1constants.ConfirmationDeletion + "=true first")
