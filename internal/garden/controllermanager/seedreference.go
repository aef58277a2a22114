package controllermanager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

// seedReferenceName is the name of the controller, which is Gardener's.
const seedReferenceName = "seed-reference"

// SeedReference protects the objects in the namespace garden to which Seeds refer: a Secret, a ConfigMap or a
// WorkloadIdentity among a Seed's resources cannot be deleted as long as the Seed exists. The controller adds a
// finalizer to the object and to the Seed.
//
// It reads only the metadata of these objects, from the API server. It never releases an object that a Shoot or a
// ControllerDeployment, which are protected with the same finalizer, may refer to by its name.
type SeedReference struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *SeedReference) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, seedReferenceName)
	return component.NewControllerBuilder(mgr, seedReferenceName).
		For(&corev1beta1.Seed{}, builder.WithPredicates(seedReferencesChanged())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// seedReferencesChanged passes Seeds whose references have changed, and Seeds in deletion that do not need the objects any more.
func seedReferencesChanged() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Seed) bool {
		return !references.NeedsReferences(after) || !maps.Equal(ofSeed(before), ofSeed(after))
	})
}

func ofSeed(seed *corev1beta1.Seed) references.References {
	refs := references.References{}
	refs.AddResources(seed.Spec.Resources)
	return refs
}

// Reconcile releases objects to which nothing refers any more, and protects the objects to which the Seed refers.
func (r *SeedReference) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	if err := r.release(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("releasing what Seeds referred to: %w", err)
	}
	return reconcile.Result{}, references.Protector{Base: r.Base}.Protect(ctx, seed, constants.GardenNamespace, ofSeed(seed))
}

// release releases the objects that nothing refers to. It lists the kept objects before those that refer to them:
// otherwise it releases an object that a new Seed refers to.
func (r *SeedReference) release(ctx context.Context) error {
	kept, err := references.Protector{Base: r.Base}.ListProtected(ctx, constants.GardenNamespace)
	if err != nil {
		return err
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
	maps.DeleteFunc(kept, func(ref references.Reference, _ *metav1.PartialObjectMetadata) bool {
		// A string in JSON is in quotes, so the quoted name is searched in everything that the others specify. That may
		// protect an object for longer than necessary, but never for too short a time.
		return bySeeds[ref] || bytes.Contains(others, []byte(`"`+ref.Name+`"`))
	})
	return references.Protector{Base: r.Base}.Release(ctx, kept)
}

func (r *SeedReference) keptBySeeds(ctx context.Context) (references.References, error) {
	seeds, refs := &corev1beta1.SeedList{}, references.References{}
	if err := r.Reader.List(ctx, seeds); err != nil {
		return nil, fmt.Errorf("listing the Seeds: %w", err)
	}
	for i := range seeds.Items {
		if references.NeedsReferences(&seeds.Items[i]) {
			maps.Copy(refs, ofSeed(&seeds.Items[i]))
		}
	}
	return refs, nil
}

// others returns, as JSON, the specifications of the Shoots in the namespace garden and the references of the
// ControllerDeployments.
func (r *SeedReference) others(ctx context.Context) ([]byte, error) {
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
