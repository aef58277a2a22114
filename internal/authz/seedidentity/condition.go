package seedidentity

import (
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Condition returns a CEL expression that is true for every user whose identity is not None, and false for nearly all
// others, so that an API server does not call the webhook for other users. The parameters are the fields with the
// user's name and groups; either may be absent.
func Condition(nameField, groupsField string) string {
	return fmt.Sprintf(`has(%[2]s) && (%[3]q in %[2]s || %[4]q in %[2]s && has(%[1]s) && %[1]s.startsWith(%[5]q))`,
		nameField, groupsField, constants.SeedsGroup, serviceaccount.AllServiceAccountsGroup,
		serviceaccount.ServiceAccountUsernamePrefix+NamespacePrefix)
}
