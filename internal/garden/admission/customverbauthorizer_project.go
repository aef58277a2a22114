package admission

import (
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// projectChanges returns only the first change of a Project that requires a verb. As in Gardener, one verb is enough: a
// user who may change the tolerations of a Project need not be allowed to manage its members in the same request.
func projectChanges(who user.Info, spec, old *gardencore.ProjectSpec) []customVerbChange {
	switch {
	case whitelistChanges(spec.Tolerations, old.Tolerations):
		return []customVerbChange{{"spec.tolerations.whitelist", verbModifyTolerationsWhitelist}}
	case userRolesChange(who, spec, old):
		return []customVerbChange{{"spec.members", verbManageMembers}}
	case old.Owner != nil && !isOwner(who, old.Owner) && !same(spec.Owner, old.Owner):
		return []customVerbChange{{"spec.owner", verbManageMembers}}
	}
	return nil
}

// whitelistChanges also returns true if tolerations with an empty whitelist are added or removed.
func whitelistChanges(tolerations, old *gardencore.ProjectTolerations) bool {
	if tolerations == nil || old == nil {
		return tolerations != old
	}
	return !same(tolerations.Whitelist, old.Whitelist)
}

// userRolesChange reports whether a user who is not the owner adds or removes roles of users or groups. Service
// accounts and the owner are not compared: they belong to the project anyway.
func userRolesChange(who user.Info, spec, old *gardencore.ProjectSpec) bool {
	if same(spec.Members, old.Members) || spec.Owner == nil || isOwner(who, spec.Owner) {
		return false
	}
	return !userRoles(spec.Members, spec.Owner).Equal(userRoles(old.Members, spec.Owner))
}

// membership is one role of a subject; a subject without roles has the role "".
type membership struct{ subject, role string }

func userRoles(members []gardencore.ProjectMember, owner *rbacv1.Subject) sets.Set[membership] {
	found := sets.New[membership]()
	for _, member := range members {
		if isServiceAccount(member.Subject) || !isServiceAccount(*owner) && subjectKey(member.Subject) == subjectKey(*owner) {
			continue
		}
		roles := member.Roles
		if len(roles) == 0 {
			roles = []string{""}
		}
		for _, role := range roles {
			found.Insert(membership{subjectKey(member.Subject), role})
		}
	}
	return found
}

func subjectKey(subject rbacv1.Subject) string { return subject.Kind + subject.Name }

// isServiceAccount returns false for the groups of service accounts, which may span projects.
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
