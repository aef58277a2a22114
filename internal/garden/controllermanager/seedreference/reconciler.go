package seedreference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "seed-reference"

// finalizer keeps what is referred to, and what refers; Gardener's.
const finalizer = constants.ReferenceProtectionFinalizerName

// kinds are those of what is kept.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity"),
}

// Reconciler keeps what Seeds refer to.
type Reconciler struct {
	Client client.Client
	// Reader asks the garden itself.
	Reader client.Reader
}

// reference is what a Seed refers to.
type reference struct {
	kind schema.GroupVersionKind
	name string
}

// AddToManager adds the controller, with what it misses from the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Reader == nil {
		r.Reader = mgr.GetAPIReader()
	}
	return builder.ControllerManagedBy(mgr).Named(ControllerName).
		For(&corev1beta1.Seed{}, builder.WithPredicates(changed())).
		Complete(r)
}

// changed lets Seeds through that refer to something else than before, or to nothing any more since they are done with.
func changed() predicate.Predicate {
	return kit.CreationsAndUpdates(func(before, after *corev1beta1.Seed) bool {
		return !isUsing(after) || !maps.Equal(ofSeed(before), ofSeed(after))
	})
}

// isUsing says whether what a Seed refers to has to be kept for it: until its gardenlet is done with it.
func isUsing(seed *corev1beta1.Seed) bool {
	return seed.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(seed, corev1beta1.GardenerName)
}

func ofSeed(seed *corev1beta1.Seed) map[reference]bool {
	refs := map[reference]bool{}
	for _, resource := range seed.Spec.Resources {
		for _, kind := range kinds {
			if resource.ResourceRef.APIVersion == kind.GroupVersion().String() && resource.ResourceRef.Kind == kind.Kind {
				refs[reference{kind, resource.ResourceRef.Name}] = true
			}
		}
	}
	return refs
}

// Reconcile releases what nothing refers to any more, and keeps what the Seed refers to.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.Client.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.release(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("releasing what Seeds referred to: %w", err)
	}
	refs := ofSeed(seed)
	if !isUsing(seed) || len(refs) == 0 {
		return reconcile.Result{}, finalizers.Remove(ctx, r.Client, seed, finalizer)
	}
	var errs []error
	for ref := range refs {
		if err := r.keep(ctx, ref); err != nil {
			errs = append(errs, fmt.Errorf("keeping the %s %q that the Seed %q refers to: %w", ref.kind.Kind, ref.name, seed.Name, err))
		}
	}
	if seed.DeletionTimestamp == nil && len(errs) < len(refs) {
		errs = append(errs, finalizers.Add(ctx, r.Client, seed, finalizer))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *Reconciler) keep(ctx context.Context, ref reference) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(ref.kind)
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: ref.name}, obj); err != nil {
		return err
	}
	if obj.DeletionTimestamp != nil {
		// It is too late, and the garden would refuse.
		return nil
	}
	return finalizers.Add(ctx, r.Client, obj, finalizer)
}

// release releases what nothing refers to. What is kept is read before what refers, so that nothing is released that was
// kept for somebody who came in between.
func (r *Reconciler) release(ctx context.Context) error {
	var kept []metav1.PartialObjectMetadata
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := r.Reader.List(ctx, list, client.InNamespace(constants.GardenNamespace)); err != nil {
			return fmt.Errorf("listing every %s in the namespace %q: %w", kind.Kind, constants.GardenNamespace, err)
		}
		for _, item := range list.Items {
			if controllerutil.ContainsFinalizer(&item, finalizer) {
				item.SetGroupVersionKind(kind)
				kept = append(kept, item)
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	bySeeds, err := r.keptBySeeds(ctx)
	if err != nil {
		return err
	}
	others, err := r.others(ctx)
	if err != nil {
		return err
	}
	for i := range kept {
		obj := &kept[i]
		// A name in quotes is how a string is written in JSON: it is looked for in all that others specify, which may keep
		// something for longer than needed, but never for less.
		if bySeeds[reference{obj.GroupVersionKind(), obj.Name}] || bytes.Contains(others, []byte(`"`+obj.Name+`"`)) {
			continue
		}
		if err := finalizers.Remove(ctx, r.Client, obj, finalizer); err != nil {
			return fmt.Errorf("the %s %q: %w", obj.Kind, obj.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) keptBySeeds(ctx context.Context) (map[reference]bool, error) {
	seeds, refs := &corev1beta1.SeedList{}, map[reference]bool{}
	if err := r.Reader.List(ctx, seeds); err != nil {
		return nil, fmt.Errorf("listing the Seeds: %w", err)
	}
	for i := range seeds.Items {
		if isUsing(&seeds.Items[i]) {
			maps.Copy(refs, ofSeed(&seeds.Items[i]))
		}
	}
	return refs, nil
}

// others is what Shoots in garden and ControllerDeployments specify.
func (r *Reconciler) others(ctx context.Context) ([]byte, error) {
	shoots, deployments := &corev1beta1.ShootList{}, &gardencorev1.ControllerDeploymentList{}
	if err := r.Reader.List(ctx, shoots, client.InNamespace(constants.GardenNamespace)); err != nil {
		return nil, fmt.Errorf("listing the Shoots in the namespace %q: %w", constants.GardenNamespace, err)
	}
	if err := r.Reader.List(ctx, deployments); err != nil {
		return nil, fmt.Errorf("listing the ControllerDeployments: %w", err)
	}
	var all []any
	for _, shoot := range shoots.Items {
		all = append(all, shoot.Spec)
	}
	for _, deployment := range deployments.Items {
		all = append(all, deployment.Resources)
		if deployment.Helm != nil {
			all = append(all, deployment.Helm.OCIRepository)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding what Shoots and ControllerDeployments specify: %w", err)
	}
	return data, nil
}
