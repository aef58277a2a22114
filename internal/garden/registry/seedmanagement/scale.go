package seedmanagement

import (
	"context"
	"fmt"

	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// scaleREST is the subresource that "kubectl scale" uses.
type scaleREST struct{ store *resource.Store }

var (
	_ rest.Patcher                  = &scaleREST{}
	_ rest.GroupVersionKindProvider = &scaleREST{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New implements rest.Storage.
func (*scaleREST) New() runtime.Object { return &autoscaling.Scale{} }

// Destroy implements rest.Storage.
func (*scaleREST) Destroy() {}

// Get implements rest.Getter.
func (r *scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj.(*gardenseedmanagement.ManagedSeedSet))
}

// Update implements rest.Updater. It never creates a ManagedSeedSet.
func (r *scaleREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdate{objInfo}, rest.ValidateAllObjectFunc, validateScale(updateValidation),
		false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleOf(obj.(*gardenseedmanagement.ManagedSeedSet))
	return scale, false, err
}

// ConvertToTable implements rest.TableConvertor.
func (r *scaleREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(autoscaling.Resource("scales")).ConvertToTable(ctx, obj, options)
}

// scaleUpdate converts an update of the Scale to an update of the ManagedSeedSet.
type scaleUpdate struct{ rest.UpdatedObjectInfo }

func (u *scaleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	set := old.(*gardenseedmanagement.ManagedSeedSet).DeepCopy()
	current, err := scaleOf(set)
	if err != nil {
		return nil, err
	}
	obj, err := u.UpdatedObjectInfo.UpdatedObject(ctx, current)
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscaling.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a Scale is needed, this is a %T", obj))
	}
	if scale.UID != "" && scale.UID != set.UID {
		return nil, apierrors.NewConflict(gardenseedmanagement.Resource("managedseedsets/scale"), set.Name,
			fmt.Errorf("the ManagedSeedSet with the UID %s is gone, the one of that name now has %s", scale.UID, set.UID))
	}
	set.ResourceVersion = scale.ResourceVersion
	set.Spec.Replicas = ptr.To(scale.Spec.Replicas)
	return set, nil
}

func scaleOf(set *gardenseedmanagement.ManagedSeedSet) (*autoscaling.Scale, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the selector of ManagedSeedSet %s/%s: %v", set.Namespace, set.Name, err))
	}
	return &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace, UID: set.UID,
			ResourceVersion: set.ResourceVersion, CreationTimestamp: set.CreationTimestamp},
		Spec:   autoscaling.ScaleSpec{Replicas: ptr.Deref(set.Spec.Replicas, 0)},
		Status: autoscaling.ScaleStatus{Replicas: set.Status.Replicas, Selector: selector.String()},
	}, nil
}

// validateScale passes the Scale to admission, not the ManagedSeedSet.
func validateScale(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		scale, err := scaleOf(obj.(*gardenseedmanagement.ManagedSeedSet))
		if err != nil {
			return err
		}
		before, err := scaleOf(old.(*gardenseedmanagement.ManagedSeedSet))
		if err != nil {
			return err
		}
		return validate(ctx, scale, before)
	}
}
