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

// Access answers questions from the dependency graph.
type Access interface {
	// MayDelete reports whether an existing object has a path to the user's seed and to no other seed, or else the
	// reason. It returns an error if there is no answer now.
	MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (
		allowed bool, reason string, err error)
	// MayRead reports whether the user may get an object, if it exists.
	MayRead(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) bool
	// OtherSeed reports whether an object has a path to a seed that is neither the user's nor runs on one of its
	// shoots.
	OtherSeed(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (bool, error)
}

// unknownAccess refuses everything.
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

// MayDelete decides on the deletion of an object like admission, by the name alone if the object does not exist. It is
// for objects that the dependency graph does not contain. It returns an error if there is no answer now.
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

// deleteExisting returns a check that allows the deletion of objects that gardenlets keep for objects on their seed, of
// objects whose owners are gone, and of objects that have a path to their seed only. If several seeds have a path to an
// object, none of them may delete it.
//
// Kept objects are checked with live reads, because their path may be gone before them: that of an issuer's Secret,
// when its shoot no longer requests a managed issuer. Or the path may come after them.
func deleteExisting(resource schema.GroupVersionResource, keeps check) check {
	return func(ctx context.Context, r *request) error {
		if r.old == nil && !r.absent {
			return badRequest("the request carries no oldObject")
		}
		if err := keeps(ctx, r); err == nil || !isRefusal(err) || r.absent {
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
}

func keepsSecret(ctx context.Context, r *request) error {
	switch r.namespace {
	case corev1beta1.GardenerShootIssuerNamespace:
		return r.keepsIssuerSecret(ctx)
	case metav1.NamespaceSystem:
		// The bootstrap token of the gardenlet. Until its Seed exists, the parent gardenlet, which created the token,
		// has a path to it, too.
		if r.name == bootstraprules.TokenSecret(constants.GardenNamespace, r.seed) {
			return nil
		}
	}
	if bucket, ok := strings.CutPrefix(r.name, constants.SecretPrefixGeneratedBackupBucket); ok && r.namespace == constants.GardenNamespace {
		return r.ownBucket(ctx, bucket)
	}
	if _, ok := ofShoot(graph.KindSecret, r.name); ok {
		return keepsForShoot(graph.KindSecret)(ctx, r)
	}
	return r.managedSeedBackupSecret(ctx)
}

// keepsIssuerSecret allows a Secret that ends with the UID of the shoot in its labels, as when it was created.
func (r *request) keepsIssuerSecret(ctx context.Context) error {
	if r.old == nil {
		return forbidden("%s", foreign(r.seed)) // the Secret does not exist
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

// issuedFor returns the shoot whose public keys an issuer's Secret has.
func issuedFor(secret metav1.Object) (namespace, name string, uid types.UID) {
	labels := secret.GetLabels()
	if at := strings.LastIndex(secret.GetName(), "--"); at >= 0 {
		uid = types.UID(secret.GetName()[at+len("--"):])
	}
	return labels[constants.LabelShootNamespace], labels[constants.LabelShootName], uid
}

// keepsForShoot returns a check that allows objects that are named after a shoot on the seed, or on the way to or from
// it.
func keepsForShoot(kind graph.Kind) check {
	return func(ctx context.Context, r *request) error {
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

// isLeftOver reports whether all owners of the object are gone, by the rules of the garbage collector, which will
// delete the object anyway: so its deletion loses nothing, and a gardenlet can clean up after a deleted shoot, whose
// seed is no longer known. Gardenlets cannot change the owners of objects that they could not create (update.go).
//
// An issuer's Secret is in another namespace than its shoot, so it has no owner; its labels and its name identify the
// shoot.
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

// ownerKind returns the resource and the namespace of an owner, if it is of a kind for which gardenlets keep objects.
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

// gone reports whether the object does not exist, or was recreated under the same name.
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

// landscapes returns the reason why an object belongs to the landscape, and to no seed even if there is only one; "" if
// it does not.
func (r *request) landscapes() string {
	if r.namespace == metav1.NamespaceSystem && r.name == constants.ClusterIdentity {
		return "it is the identity of the garden, which all seeds share"
	}
	if role := r.old.GetLabels()[constants.GardenRole]; role != "" && r.namespace == constants.GardenNamespace {
		return fmt.Sprintf("it is the landscape's (%s=%s)", constants.GardenRole, role)
	}
	return ""
}
