package shoot

import (
	"context"
	"encoding/json"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// remove deletes an object, and returns Pending until it is gone.
func remove(ctx context.Context, c client.Client, live client.Reader, obj client.Object) error {
	key := client.ObjectKeyFromObject(obj)
	if err := live.Get(ctx, key, obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading %T %s: %w", obj, key, err))
	}
	if obj.GetDeletionTimestamp() == nil {
		if err := confirm(ctx, c, obj); err != nil {
			return err
		}
		if err := c.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %s: %w", obj, key, err)
		}
		switch err := live.Get(ctx, key, obj); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("looking whether %T %s has gone: %w", obj, key, err)
		}
	}
	return flow.Pending("%T %s has not gone yet", obj, key)
}

// removal returns a step that deletes an object, and waits until it is gone.
func removal(c client.Client, live client.Reader, obj client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return remove(ctx, c, live, obj) }
}

// confirm confirms the deletion of a ShootState, without which the garden refuses it.
func confirm(ctx context.Context, c client.Client, obj client.Object) error {
	state, is := obj.(*corev1beta1.ShootState)
	if !is {
		return nil
	}
	return operation.Patch(ctx, c, state, func(state *corev1beta1.ShootState) {
		metav1.SetMetaDataAnnotation(&state.ObjectMeta, constants.ConfirmationDeletion, "true")
	})
}

// deployCluster writes the Cluster resource, from which extensions in the seed read the Shoot, its seed and its cloud
// profile.
func (r *Reconciler) deployCluster(ctx context.Context, a *gardenData) error {
	spec, err := clusterSpec(a)
	if err != nil {
		return err
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a.shoot.Status.TechnicalID}}
	return ensure(ctx, r.SeedClient, r.SeedReader, cluster, func(cluster *extensionsv1alpha1.Cluster) error {
		if !extensionops.Same(cluster.Spec, *spec) { // equal specs may be formatted differently
			cluster.Spec = *spec
		}
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, constants.AnnotationKeyGenericTokenKubeconfigSecretName,
			constants.SecretNameGenericTokenKubeconfig)
		injection.ForgetClaims(a.shoot, cluster)
		return nil
	})
}

// ensure creates or patches an object with the changes of mutate. It returns Pending if the object is being deleted.
func ensure[T client.Object](ctx context.Context, c client.Client, live client.Reader, obj T, mutate func(T) error) error {
	return controllerutils.CreateOrPatch(ctx, c, live, obj, func(obj T) error {
		if obj.GetDeletionTimestamp() != nil {
			return flow.Pending("%T %s is being deleted", obj, client.ObjectKeyFromObject(obj))
		}
		return mutate(obj)
	})
}

func clusterSpec(a *gardenData) (*extensionsv1alpha1.ClusterSpec, error) {
	profile, seed, shoot := a.cloudProfile.DeepCopy(), a.seed.DeepCopy(), a.shoot.DeepCopy()
	spec := &extensionsv1alpha1.ClusterSpec{Seed: &runtime.RawExtension{}}
	for _, part := range []struct {
		kind string
		obj  client.Object
		raw  *runtime.RawExtension
	}{{"CloudProfile", profile, &spec.CloudProfile}, {"Seed", seed, spec.Seed}, {"Shoot", shoot, &spec.Shoot}} {
		var err error
		if part.raw.Raw, err = clusterPart(part.obj, part.kind); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// clusterPart returns an object in the form of a Cluster resource. It changes the object.
func clusterPart(obj client.Object, kind string) ([]byte, error) {
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(
		schema.GroupVersionKind{Group: corev1beta1.GroupName, Version: corev1beta1.SchemeGroupVersion.Version, Kind: kind})
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("writing the %s for the Cluster resource: %w", kind, err)
	}
	return raw, nil
}
