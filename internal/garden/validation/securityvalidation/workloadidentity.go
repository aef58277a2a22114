package securityvalidation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"

	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// maxSubClaimLength is the limit of OpenID Connect for the claim "sub", in bytes.
const maxSubClaimLength = 255

// SubClaim returns the claim "sub" of the tokens of a workload identity, which must have a name and a UID. With the
// UID, a later identity of the same name does not inherit the permissions of this one.
func SubClaim(identity *gardensecurity.WorkloadIdentity) string {
	return strings.Join([]string{"gardener.cloud", "workloadidentity", identity.Namespace, identity.Name, string(identity.UID)}, ":")
}

// ValidateWorkloadIdentity checks a workload identity without comparing it to an old one. The storage sets its UID
// and status.sub before.
func ValidateWorkloadIdentity(identity *gardensecurity.WorkloadIdentity) field.ErrorList {
	spec := field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&identity.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")),
		validateAudiences(identity.Spec.Audiences, spec.Child("audiences")),
		validateType(identity.Spec.TargetSystem.Type, spec.Child("targetSystem", "type")),
		validateSubClaim(identity.Status.Sub, SubClaim(identity), subClaimPath()),
	)
}

// ValidateWorkloadIdentityUpdate checks a changed workload identity. The type of its target system and, once it is
// set, its subject must not change.
func ValidateWorkloadIdentityUpdate(newIdentity, oldIdentity *gardensecurity.WorkloadIdentity) field.ErrorList {
	errs := slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newIdentity.ObjectMeta, &oldIdentity.ObjectMeta, field.NewPath("metadata")),
		apivalidation.ValidateImmutableField(newIdentity.Spec.TargetSystem.Type, oldIdentity.Spec.TargetSystem.Type,
			field.NewPath("spec", "targetSystem", "type")),
		ValidateWorkloadIdentity(newIdentity),
	)
	if oldIdentity.Status.Sub != "" {
		errs = append(errs, apivalidation.ValidateImmutableField(newIdentity.Status.Sub, oldIdentity.Status.Sub, subClaimPath())...)
	}
	return errs
}

func subClaimPath() *field.Path { return field.NewPath("status", "sub") }

func validateAudiences(audiences []string, path *field.Path) field.ErrorList {
	if len(audiences) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one audience")}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, audience := range audiences {
		errs = append(errs, corevalidation.Required(path.Index(i), audience)...)
		errs = append(errs, corevalidation.Distinct(path.Index(i), seen, audience)...)
	}
	return errs
}

// validateSubClaim checks that claim is the expected one, and that the expected one is allowed in a token.
func validateSubClaim(claim, expected string, path *field.Path) field.ErrorList {
	nonASCII := strings.IndexFunc(expected, func(r rune) bool { return r > unicode.MaxASCII })
	return slices.Concat(
		corevalidation.RequiredIf(claim == "", path, "must be set"),
		corevalidation.InvalidIf(claim != expected, path, claim, fmt.Sprintf("must be %q", expected)),
		corevalidation.InvalidIf(nonASCII >= 0, path, expected, fmt.Sprintf("must consist of ASCII characters, unlike the one at %d", nonASCII)),
		corevalidation.InvalidIf(len(expected) > maxSubClaimLength, path, expected,
			fmt.Sprintf("must have at most %d characters, not %d: a shorter name helps", maxSubClaimLength, len(expected))),
	)
}
