package shootstate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// spec returns the current state of a Shoot. It keeps only data of other kinds than Secrets from the existing ShootState.
func (r *Reconciler) spec(ctx context.Context, shoot *corev1beta1.Shoot, state *corev1beta1.ShootState) (
	*corev1beta1.ShootStateSpec, error) {
	namespace := shoot.Status.TechnicalID
	secrets := &shootsecrets.Manager{Client: r.SeedClient, Reader: r.SeedReader, Clock: r.Clock, Namespace: namespace}
	kept, err := secrets.Persist(ctx)
	if err != nil {
		return nil, err
	}
	if len(kept) == 0 { // the ones in the ShootState would be lost
		return nil, fmt.Errorf("the namespace %s has no secrets to keep", namespace)
	}
	spec := &corev1beta1.ShootStateSpec{Gardener: shootsecrets.Merge(state.Spec.Gardener, kept)}
	for _, k := range controllerutils.ShootExtensionKinds {
		err := k.Each(ctx, r.SeedClient, func(extension extensionsv1alpha1.Object) error {
			return r.add(ctx, spec, k.Kind, extension)
		}, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(spec.Extensions, func(a, b corev1beta1.ExtensionResourceState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(*a.Name, *b.Name))
	})
	return spec, nil
}

// add adds the state of an extension resource, and the resources that it refers to, if it has any.
func (r *Reconciler) add(ctx context.Context, spec *corev1beta1.ShootStateSpec, kind string, extension extensionsv1alpha1.Object) error {
	state := extensionops.StateOf(kind, extension)
	if state == nil {
		return nil
	}
	spec.Extensions = append(spec.Extensions, *state)
	for _, resource := range state.Resources {
		data, err := r.read(ctx, extension.GetNamespace(), resource.ResourceRef)
		if err != nil {
			return fmt.Errorf("reading %s %s/%s, which %s %s names as its own: %w", resource.ResourceRef.Kind,
				extension.GetNamespace(), resource.ResourceRef.Name, kind, extension.GetName(), err)
		}
		spec.Resources = append(spec.Resources,
			corev1beta1.ResourceData{CrossVersionObjectReference: resource.ResourceRef, Data: runtime.RawExtension{Raw: data}})
	}
	return nil
}

func (r *Reconciler) read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) ([]byte, error) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(ref.APIVersion)
	obj.SetKind(ref.Kind)
	if err := r.SeedReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj); err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}
