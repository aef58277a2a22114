package restriction

import (
	"context"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Access answers from the dependency graph.
type Access interface {
	// MayDelete says whether an object that exists has a path to the seed of who asks and to no other seed, or else why it
	// has not. An error says that there is no answer now.
	MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (
		allowed bool, reason string, err error)
	// MayRead says whether who asks may get an object, if there is one.
	MayRead(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) bool
	// OtherSeed says whether an object has a path to another seed than that of who asks and those that run on its shoots.
	OtherSeed(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (bool, error)
}

// unknownAccess says no.
type unknownAccess struct{}

func (unknownAccess) MayDelete(context.Context, authenticationv1.UserInfo, schema.GroupResource, string, string) (bool, string, error) {
	return false, "nothing is known of the resource dependency graph", nil
}

func (unknownAccess) MayRead(context.Context, authenticationv1.UserInfo, schema.GroupResource, string, string) bool {
	return false
}

func (unknownAccess) OtherSeed(context.Context, authenticationv1.UserInfo, schema.GroupResource, string, string) (bool, error) {
	return true, nil
}

// MayDelete decides on the deletion of an object as admission will, and of one that does not exist by its name. It is for
// objects of which the dependency graph knows nothing. An error says that there is no answer now.
func (h *Handler) MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace,
	name string) (bool, error) {
	rule, identity := byResource[resource], seedidentity.OfAuthentication(who)
	if rule == nil || rule.delete == nil || name == "" || identity.Type != seedidentity.Gardenlet {
		return false, nil
	}
	r := &request{Handler: h, user: who, seed: identity.Seed, namespace: namespace, name: name}
	obj := rule.newObject()
	found, err := r.find(ctx, rule.resource, namespace, name, obj)
	if err != nil {
		return false, err
	}
	if r.absent = !found; found {
		obj.SetNamespace(namespace)
		r.old = obj
	}
	err = rule.delete(ctx, r)
	if isRefusal(err) {
		return false, nil
	}
	return err == nil, err
}

func deleteSecret(ctx context.Context, r *request) error {
	return r.deleteExisting(ctx, secrets.resource, r.keepsSecret)
}

func deleteInternalSecret(ctx context.Context, r *request) error {
	return r.deleteExisting(ctx, internalSecrets.resource, r.keepsWith(graph.KindInternalSecret))
}

func deleteConfigMap(ctx context.Context, r *request) error {
	return r.deleteExisting(ctx, configMaps.resource, r.keepsWith(graph.KindConfigMap))
}

func deleteShootState(ctx context.Context, r *request) error {
	return r.deleteExisting(ctx, shootStates.resource, func(ctx context.Context) error { return r.responsibleFor(ctx, r.namespace, r.name) })
}

// deleteExisting lets go what gardenlets keep for what is on their seed, what only an object that has gone needed, and
// what has a path to their seed alone. What several seeds have a path to is not for one of them to take from the others.
//
// What is kept is looked up live, because its path may go before it does: that of an issuer's Secret when its shoot asks
// for no managed issuer any more, or come after it.
func (r *request) deleteExisting(ctx context.Context, resource schema.GroupVersionResource, keeps func(context.Context) error) error {
	if r.old == nil && !r.absent {
		return badRequest("the request carries no oldObject")
	}
	if err := keeps(ctx); err == nil || !isRefusal(err) || r.absent {
		return err
	}
	if over, err := r.isLeftOver(ctx); over || err != nil {
		return err
	}
	if whose := r.landscapes(); whose != "" {
		return forbidden("%s: %s", foreign(r.seed), whose)
	}
	allowed, reason, err := r.access.MayDelete(ctx, r.user, resource.GroupResource(), r.namespace, r.name)
	switch {
	case err != nil:
		return fmt.Errorf("looking %s %s up in the resource dependency graph: %w", resource.Resource, key(r.namespace, r.name), err)
	case !allowed:
		return forbidden("%s: %s", foreign(r.seed), reason)
	}
	return nil
}

func (r *request) keepsSecret(ctx context.Context) error {
	switch r.namespace {
	case corev1beta1.GardenerShootIssuerNamespace:
		return r.keepsIssuerSecret(ctx)
	case metav1.NamespaceSystem:
		// What bootstrapped it. Until there is its Seed, its parent, who made that, has a path to it too.
		if r.name == bootstraprules.TokenSecret(constants.GardenNamespace, r.seed) {
			return nil
		}
	}
	if bucket, ok := strings.CutPrefix(r.name, constants.SecretPrefixGeneratedBackupBucket); ok && r.namespace == constants.GardenNamespace {
		return r.ownBucket(ctx, bucket)
	}
	if _, ok := ofShoot(graph.KindSecret, r.name); ok {
		return r.keepsWith(graph.KindSecret)(ctx)
	}
	return r.managedSeedBackupSecret(ctx)
}

// keepsIssuerSecret is for the Secret that ends with the UID of the shoot that its labels name, as it was created.
func (r *request) keepsIssuerSecret(ctx context.Context) error {
	if r.old == nil {
		return forbidden("%s", foreign(r.seed)) // there is none
	}
	namespace, name, uid := issuedFor(r.old)
	shoot, err := r.shoot(ctx, namespace, name)
	if err != nil {
		return err
	}
	if uid == "" || shoot.UID != uid {
		return forbidden("%s: it is not that of shoot %s/%s", foreign(r.seed), namespace, name)
	}
	return r.own(shoot.Spec.SeedName, shoot.Status.SeedName)
}

// issuedFor is the shoot whose public keys an issuer's Secret has.
func issuedFor(secret metav1.Object) (namespace, name string, uid types.UID) {
	labels := secret.GetLabels()
	if _, after, ok := cutLast(secret.GetName(), "--"); ok {
		uid = types.UID(after)
	}
	return labels[constants.LabelShootNamespace], labels[constants.LabelShootName], uid
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}

// keepsWith is for what is named after a shoot on the seed, or on the way to or from it.
func (r *request) keepsWith(kind graph.Kind) func(context.Context) error {
	return func(ctx context.Context) error {
		name, ok := ofShoot(kind, r.name)
		if !ok {
			return forbidden("%s", foreign(r.seed))
		}
		return r.responsibleFor(ctx, r.namespace, name)
	}
}

func (r *request) responsibleFor(ctx context.Context, namespace, name string) error {
	shoot, err := r.shoot(ctx, namespace, name)
	if err != nil {
		return err
	}
	return r.own(shoot.Spec.SeedName, shoot.Status.SeedName)
}

// isLeftOver says whether all owners of the object have gone, as the garbage collector understands it, who will delete it
// anyway: so nothing is lost by anybody's deleting it, and a gardenlet can clear up after a shoot that is no more. Nothing
// says any longer on which seed that was. Owners are not for gardenlets to change of what they could not create (update.go).
//
// An issuer's Secret is in another namespace than its shoot, so it has none; its labels and its name say whose it is.
func (r *request) isLeftOver(ctx context.Context) (bool, error) {
	if r.namespace == corev1beta1.GardenerShootIssuerNamespace {
		namespace, name, uid := issuedFor(r.old)
		if namespace == "" || name == "" {
			return false, nil
		}
		return r.gone(ctx, &shoots, namespace, name, uid)
	}
	owners := r.old.GetOwnerReferences()
	for _, owner := range owners {
		rule, namespace := ownerKind(owner, r.namespace)
		if rule == nil {
			return false, nil
		}
		if gone, err := r.gone(ctx, rule, namespace, owner.Name, owner.UID); !gone || err != nil {
			return false, err
		}
	}
	return len(owners) > 0, nil
}

// ownerKind finds the resource of an owner, of those kinds for which gardenlets keep something, and its namespace.
func ownerKind(owner metav1.OwnerReference, namespace string) (*resourceRule, string) {
	switch group, _, _ := strings.Cut(owner.APIVersion, "/"); {
	case group == corev1beta1.GroupName && owner.Kind == shoots.kindName:
		return &shoots, namespace
	case group == corev1beta1.GroupName && owner.Kind == backupBuckets.kindName:
		return &backupBuckets, ""
	case group == seedmanagementv1alpha1.GroupName && owner.Kind == managedSeeds.kindName:
		return &managedSeeds, namespace
	}
	return nil, ""
}

// gone says whether there is no such object, or one of that name that was made later.
func (r *request) gone(ctx context.Context, rule *resourceRule, namespace, name string, uid types.UID) (bool, error) {
	if name == "" || uid == "" {
		return false, nil
	}
	obj := rule.newObject()
	found, err := r.find(ctx, rule.resource, namespace, name, obj)
	if err != nil {
		return false, err
	}
	return !found || obj.GetUID() != uid, nil
}

// landscapes says why an object is the landscape's, and no seed's alone even where there is just one seed; "" if it is not.
func (r *request) landscapes() string {
	if r.namespace == metav1.NamespaceSystem && r.name == constants.ClusterIdentity {
		return "it is the identity of the garden, which all seeds share"
	}
	if role := r.old.GetLabels()[constants.GardenRole]; role != "" && r.namespace == constants.GardenNamespace {
		return fmt.Sprintf("it is the landscape's (%s=%s)", constants.GardenRole, role)
	}
	return ""
}
