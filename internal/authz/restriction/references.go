package restriction

import (
	"context"
	"errors"
	"slices"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// maxReferences is the maximum number of references of an object that a gardenlet writes. A Seed needs credentials for
// backups and DNS domains, and a few resources.
const maxReferences = 50

// references returns the objects to which an object refers; see graph.References.
func references(obj object) ([]graph.Vertex, error) {
	refs, err := graph.References(obj)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return refs, nil
}

// added returns the references that an object did not have before a write.
func added(before, after object) ([]graph.Vertex, error) {
	refs, err := references(after)
	if err != nil {
		return nil, err
	}
	old, err := references(before)
	if err != nil {
		return refs, nil // the old object has no valid references
	}
	return withoutKnown(refs, old), nil
}

// withoutKnown returns the references that are not in others.
func withoutKnown(refs, others []graph.Vertex) []graph.Vertex {
	known := make(map[graph.Vertex]bool, len(others))
	for _, ref := range others {
		known[ref] = true
	}
	return slices.DeleteFunc(refs, func(ref graph.Vertex) bool { return known[ref] })
}

// mayRefer refuses a write that adds a reference that no administrator has approved for the seed: the graph would get a
// path from the object to the seed, so that the gardenlet could read the object. References in the Seed, ManagedSeed
// and Gardenlet of the seed are approved, because gardenlets can only add references there that have passed this check.
// Other objects are approved by a label.
func (r *request) mayRefer(ctx context.Context, before, after object) error {
	refs, err := added(before, after)
	if err != nil || len(refs) == 0 {
		return err
	}
	if all, err := references(after); err == nil && len(all) > maxReferences {
		return forbidden("it refers to %d objects, and at most %d are allowed", len(all), maxReferences)
	}
	for _, rule := range []*resourceRule{&seeds, &managedSeeds, &gardenlets} {
		if refs, err = r.withoutReferencesOf(ctx, rule, refs); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if err := r.namedForSeed(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) withoutReferencesOf(ctx context.Context, rule *resourceRule, refs []graph.Vertex) ([]graph.Vertex, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	namespace := constants.GardenNamespace
	if rule.resource == seeds.resource {
		namespace = ""
	}
	obj := rule.newObject()
	found, err := r.find(ctx, rule.resource, namespace, r.seed, obj)
	if err != nil || !found {
		return refs, err
	}
	obj.SetNamespace(namespace)
	known, err := references(obj)
	if err != nil {
		return refs, nil // it has no valid references
	}
	return withoutKnown(refs, known), nil
}

// nameable are the kinds of objects that can have the label of the seed that may refer to them.
var nameable = map[graph.Kind]struct {
	resource  schema.GroupVersionResource
	newObject func() object
}{
	graph.KindSecret:           {secrets.resource, secrets.newObject},
	graph.KindConfigMap:        {configMaps.resource, configMaps.newObject},
	graph.KindWorkloadIdentity: {workloadIdentityTokens.resource, func() object { return &securityv1alpha1.WorkloadIdentity{} }},
}

// namedForSeed refuses an object that is not in the namespace garden, or does not have the label for the seed, which no
// gardenlet can set (keepsSeedLabels).
func (r *request) namedForSeed(ctx context.Context, ref graph.Vertex) error {
	label := constants.LabelPrefixSeedName + r.seed
	refused := forbidden("%s: it refers to %s, which is not named for the seed; "+
		"an administrator can label that %s=true, or name it in the ManagedSeed or Gardenlet %s",
		foreign(r.seed), ref, label, r.seed)
	kind, ok := nameable[ref.Kind]
	if !ok || ref.Namespace != constants.GardenNamespace {
		return refused
	}
	obj := kind.newObject()
	found, err := r.find(ctx, kind.resource, ref.Namespace, ref.Name, obj)
	if err != nil {
		return err
	}
	if secret, ok := obj.(*corev1.Secret); ok && secret.Type == corev1.SecretTypeServiceAccountToken {
		return refused
	}
	if !found || obj.GetLabels()[label] != "true" {
		return refused
	}
	return nil
}

func isRefusal(err error) bool {
	var no *refusal
	return errors.As(err, &no)
}

// sameManagedSeedSpec compares the specifications, with the decoded configuration, because the API server may have
// encoded it differently. If a field is duplicated, decoders use different values, so the seed template must be the
// same for all of them.
func sameManagedSeedSpec(managedSeed, old *seedmanagementv1alpha1.ManagedSeed) (bool, error) {
	if !sameJSON(managedSeed.Spec.Gardenlet.Config, old.Spec.Gardenlet.Config) {
		return false, nil
	}
	after, err := graph.SeedTemplates(managedSeed.Spec.Gardenlet.Config)
	if err != nil {
		return false, badRequest("%v", err)
	}
	before, err := graph.SeedTemplates(old.Spec.Gardenlet.Config)
	if err != nil {
		return false, badRequest("%v", err)
	}
	a, b := managedSeed.Spec.DeepCopy(), old.Spec.DeepCopy()
	a.Gardenlet.Config, b.Gardenlet.Config = runtime.RawExtension{}, runtime.RawExtension{}
	return same(after, before) && same(a, b), nil
}

func sameJSON(a, b runtime.RawExtension) bool {
	if len(a.Raw) == 0 || len(b.Raw) == 0 {
		return len(a.Raw) == len(b.Raw)
	}
	var left, right any
	return utiljson.Unmarshal(a.Raw, &left) == nil && utiljson.Unmarshal(b.Raw, &right) == nil && same(left, right)
}
