package customverbauthorizer

import (
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// projectChanges is the first of a Project's changes that takes a verb. As in Gardener, one verb is enough: who may
// change the tolerations of a Project need not be able to manage its members in the same request.
func projectChanges(who user.Info, spec, old *gardencore.ProjectSpec) []change {
	switch {
	case whitelistChanges(spec.Tolerations, old.Tolerations):
		return []change{{"spec.tolerations.whitelist", verbModifyTolerationsWhitelist}}
	case humansChange(who, spec, old):
		return []change{{"spec.members", verbManageMembers}}
	case old.Owner != nil && !isOwner(who, old.Owner) && !same(spec.Owner, old.Owner):
		return []change{{"spec.owner", verbManageMembers}}
	}
	return nil
}

// whitelistChanges is true too if tolerations come or go that have an empty whitelist.
func whitelistChanges(tolerations, old *gardencore.ProjectTolerations) bool {
	if tolerations == nil || old == nil {
		return tolerations != old
	}
	return !same(tolerations.Whitelist, old.Whitelist)
}

// humansChange says whether a user who is not the owner adds or removes roles of users or groups. Service accounts
// belong to the project anyway, and so does the owner.
func humansChange(who user.Info, spec, old *gardencore.ProjectSpec) bool {
	if same(spec.Members, old.Members) || spec.Owner == nil || isOwner(who, spec.Owner) {
		return false
	}
	return !humans(spec.Members, spec.Owner).Equal(humans(old.Members, spec.Owner))
}

// membership is one role that a subject has; no role is one as well.
type membership struct{ subject, role string }

func humans(members []gardencore.ProjectMember, owner *rbacv1.Subject) sets.Set[membership] {
	found := sets.New[membership]()
	for _, member := range members {
		if isServiceAccount(member.Subject) || !isServiceAccount(*owner) && key(member.Subject) == key(*owner) {
			continue
		}
		roles := member.Roles
		if len(roles) == 0 {
			roles = []string{""}
		}
		for _, role := range roles {
			found.Insert(membership{key(member.Subject), role})
		}
	}
	return found
}

func key(subject rbacv1.Subject) string { return subject.Kind + subject.Name }

// isServiceAccount is false for the groups of service accounts: these may span projects.
func isServiceAccount(subject rbacv1.Subject) bool {
	switch {
	case subject.APIGroup == "":
		return subject.Kind == rbacv1.ServiceAccountKind
	case subject.APIGroup == rbacv1.GroupName:
		return subject.Kind == rbacv1.UserKind && strings.HasPrefix(subject.Name, serviceaccount.ServiceAccountUsernamePrefix)
	}
	return false
}

func isOwner(who user.Info, owner *rbacv1.Subject) bool {
	switch owner.Kind {
	case rbacv1.ServiceAccountKind:
		namespace, name, err := serviceaccount.SplitUsername(who.GetName())
		return err == nil && owner.Namespace == namespace && owner.Name == name
	case rbacv1.UserKind:
		return owner.Name == who.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(who.GetGroups(), owner.Name)
	}
	return false
}
