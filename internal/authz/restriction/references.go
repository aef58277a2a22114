package restriction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// reference is an object that another one refers to, so that the dependency graph has a path from it to a seed.
type reference struct {
	graph.Vertex
	dns bool // it is used for DNS only
}

func refersTo(refs []reference, to graph.Vertex) bool {
	return slices.ContainsFunc(refs, func(ref reference) bool { return ref.Vertex == to })
}

// edgesTo returns the vertices with an edge to an object.
func edgesTo(obj any) (from []graph.Vertex) {
	owner, edges, _ := graph.EdgesOf(obj, nil)
	for _, e := range edges {
		if e.To == owner && !slices.Contains(from, e.From) {
			from = append(from, e.From)
		}
	}
	return from
}

// references returns what an object refers to: what has an edge to it, or would have one to the Seed of its template; and
// the Secrets without edges that Shoots and Gardenlets can name.
func references(obj object) (refs []reference, err error) {
	add := func(dns bool, vertices ...graph.Vertex) {
		for _, v := range vertices {
			if !refersTo(refs, v) {
				refs = append(refs, reference{v, dns})
			}
		}
	}
	addSecret := func(name *string) {
		if name != nil && *name != "" {
			add(false, graph.Vertex{Kind: graph.KindSecret, Namespace: obj.GetNamespace(), Name: *name})
		}
	}
	switch o := obj.(type) {
	case *corev1beta1.Seed:
		withoutDNS := *o
		withoutDNS.Spec.DNS = corev1beta1.SeedDNS{}
		add(false, edgesTo(&withoutDNS)...)
		add(true, edgesTo(o)...)
	case *seedmanagementv1alpha1.ManagedSeed:
		return templateReferences(o.Name, o.Spec.Gardenlet.Config)
	case *seedmanagementv1alpha1.Gardenlet:
		refs, err = templateReferences(o.Name, o.Spec.Config)
		chart := &o.Spec.Deployment.Helm.OCIRepository
		for _, ref := range []*corev1.LocalObjectReference{chart.PullSecretRef, chart.CABundleSecretRef} {
			if ref != nil {
				addSecret(&ref.Name)
			}
		}
	case *corev1beta1.Shoot:
		add(false, edgesTo(o)...)
		if o.Spec.DNS != nil {
			for _, provider := range o.Spec.DNS.Providers {
				addSecret(provider.SecretName)
			}
		}
		if server := o.Spec.Kubernetes.KubeAPIServer; server != nil {
			for _, plugin := range server.AdmissionPlugins {
				addSecret(plugin.KubeconfigSecretName)
			}
		}
	default:
		add(false, edgesTo(o)...)
	}
	return refs, err
}

// templateReferences returns what the seed template in a gardenlet's configuration makes its Seed refer to.
func templateReferences(name string, config runtime.RawExtension) (refs []reference, err error) {
	templates, err := seedTemplates(config)
	for _, spec := range templates {
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
		before := seed.DeepCopy()
		seed.Spec = spec
		more, _ := added(before, seed) // fails for no Seed
		refs = append(refs, more...)
	}
	return refs, err
}

// seedTemplates returns the seed template in a gardenlet's configuration. The API server does not decode it, so another
// reader may or may not distinguish upper and lower case: it is read in both ways.
func seedTemplates(config runtime.RawExtension) (templates []corev1beta1.SeedSpec, err error) {
	data := config.Raw
	if data == nil && config.Object != nil {
		if data, err = json.Marshal(config.Object); err != nil {
			return nil, badRequest("reading the gardenlet's configuration: %v", err)
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	for _, unmarshal := range []func([]byte, any) error{utiljson.Unmarshal, json.Unmarshal} {
		var gardenlet struct {
			SeedConfig struct {
				Spec corev1beta1.SeedSpec `json:"spec"`
			} `json:"seedConfig"`
		}
		if err := unmarshal(data, &gardenlet); err != nil {
			return nil, badRequest("reading the gardenlet's configuration: %v", err)
		}
		templates = append(templates, gardenlet.SeedConfig.Spec)
	}
	return templates, nil
}

// added returns the references of an object after a write that it did not have before.
func added(before, after object) ([]reference, error) {
	refs, err := references(after)
	if err != nil {
		return nil, err
	}
	old, err := references(before)
	if err != nil {
		return refs, nil // there are none that could stay
	}
	return slices.DeleteFunc(refs, func(ref reference) bool { return refersTo(old, ref.Vertex) }), nil
}

// addedAndNew returns the references that a write adds, without those that the Seed has anyway, or the ManagedSeed or
// Gardenlet that it comes from.
func (r *request) addedAndNew(ctx context.Context, before, after object) ([]reference, error) {
	refs, err := added(before, after)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	for _, rule := range []*resourceRule{&seeds, &managedSeeds, &gardenlets} {
		namespace := constants.GardenNamespace
		if rule == &seeds {
			namespace = ""
		}
		obj := rule.newObject()
		found, err := r.find(ctx, rule.resource, namespace, r.seed, obj)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		obj.SetNamespace(namespace)
		if known, err := references(obj); err == nil {
			refs = slices.DeleteFunc(refs, func(ref reference) bool { return refersTo(known, ref.Vertex) })
		}
	}
	return refs, nil
}

// mayAdd refuses an update that adds a reference which is new to the seed.
func (r *request) mayAdd(ctx context.Context, before, after object) error {
	refs, err := r.addedAndNew(ctx, before, after)
	if err != nil || len(refs) == 0 {
		return err
	}
	return forbidden("%s: this adds a reference to %s; who may read that has to make it, in the Seed, ManagedSeed or Gardenlet %s", foreign(r.seed), refs[0], r.seed)
}

// mayBring refuses a new object with a reference to what is recognizably not the seed's. A gardenlet that registers its Seed
// brings the references from its configuration, so they can be new to the seed.
func (r *request) mayBring(ctx context.Context, before, after object) error {
	refs, err := r.addedAndNew(ctx, before, after)
	if err != nil || len(refs) == 0 {
		return err
	}
	ref, owner, err := r.foreignReference(ctx, refs)
	if err != nil || owner == "" {
		return err
	}
	return forbidden("%s: it refers to %s, which is %s; if seed %q is to have it as well, who may read it has to create the Seed or Gardenlet", foreign(r.seed), ref, owner, r.seed)
}

// foreignReference returns the first of the references that is not the seed's, and why; "" if there is none. It reads all
// objects that could refer to the same, which is slow, but happens once in the life of a gardenlet.
func (r *request) foreignReference(ctx context.Context, refs []reference) (ref reference, owner string, err error) {
	for _, ref := range refs {
		if ref.Namespace != constants.GardenNamespace {
			return ref, "not in the namespace " + constants.GardenNamespace, nil
		}
	}
	for _, others := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		list      runtime.Object
	}{
		{seeds.resource, "", &corev1beta1.SeedList{}},
		{backupBuckets.resource, "", &corev1beta1.BackupBucketList{}},
		{managedSeeds.resource, constants.GardenNamespace, &seedmanagementv1alpha1.ManagedSeedList{}},
		{gardenlets.resource, constants.GardenNamespace, &seedmanagementv1alpha1.GardenletList{}},
		{secretBindings, "", &corev1beta1.SecretBindingList{}},
		{credentialsBindings, "", &securityv1alpha1.CredentialsBindingList{}},
		{shoots.resource, constants.GardenNamespace, &corev1beta1.ShootList{}}, // Shoots refer to their own namespace
	} {
		if err := r.list(ctx, others.resource, others.namespace, others.list); err != nil {
			return ref, "", err
		}
		err := meta.EachListItem(others.list, func(item runtime.Object) error {
			if other := item.(object); owner == "" && !r.isOwnObject(other) {
				ref, owner = conflict(refs, other)
			}
			return nil
		})
		if err != nil || owner != "" {
			return ref, owner, err
		}
	}
	for _, ref := range refs {
		if owner, err := r.secretItself(ctx, ref); err != nil || owner != "" {
			return ref, owner, err
		}
	}
	return ref, "", nil
}

// isOwnObject returns whether an object is the seed's, so that it may share its references.
func (r *request) isOwnObject(obj object) bool {
	switch o := obj.(type) {
	case *corev1beta1.Seed, *seedmanagementv1alpha1.ManagedSeed, *seedmanagementv1alpha1.Gardenlet:
		return o.GetName() == r.seed
	case *corev1beta1.BackupBucket:
		return r.isOwn(o.Spec.SeedName)
	}
	return false
}

// conflict returns the first of the references that another object has as well. Two may use the same for DNS: the
// credentials of a DNS zone are usually those of the landscape.
func conflict(refs []reference, other object) (reference, string) {
	theirs, _ := references(other)
	for _, ref := range refs {
		for _, their := range theirs {
			if their.Vertex == ref.Vertex && !(their.dns && ref.dns) {
				owner, _, _ := graph.EdgesOf(other, nil)
				return ref, "that of " + owner.String()
			}
		}
	}
	return reference{}, ""
}

// secretItself reads the Secret: one that Gardener or Kubernetes made for another purpose says so.
func (r *request) secretItself(ctx context.Context, ref reference) (string, error) {
	if ref.Kind != graph.KindSecret {
		return "", nil
	}
	if bucket, ok := strings.CutPrefix(ref.Name, constants.SecretPrefixGeneratedBackupBucket); ok {
		return "generated for BackupBucket " + bucket, nil
	}
	secret, found, err := r.secret(ctx, ref.Namespace, ref.Name)
	if err != nil || !found {
		return "", err
	}
	if role, has := secret.Labels[constants.GardenRole]; has && !ref.dns {
		return fmt.Sprintf("the landscape's (%s=%s)", constants.GardenRole, role), nil
	}
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return "a ServiceAccount's token", nil
	}
	return "", nil
}

func isRefusal(err error) bool {
	var no *refusal
	return errors.As(err, &no)
}

// sameManagedSeedSpec compares the configuration in it as decoded, because the API server may have written it differently.
// Of a field that is there twice readers take different ones, so the seed template must be the same to each.
func sameManagedSeedSpec(managedSeed, old *seedmanagementv1alpha1.ManagedSeed) (bool, error) {
	if !sameJSON(managedSeed.Spec.Gardenlet.Config, old.Spec.Gardenlet.Config) {
		return false, nil
	}
	after, err := seedTemplates(managedSeed.Spec.Gardenlet.Config)
	if err != nil {
		return false, err
	}
	before, err := seedTemplates(old.Spec.Gardenlet.Config)
	if err != nil {
		return false, err
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
