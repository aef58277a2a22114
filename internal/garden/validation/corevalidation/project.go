package corevalidation

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

const (
	// maxProjectNameLength leaves room for the other parts of technical IDs, shoot--<project>--<shoot>.
	maxProjectNameLength = 10
	// maxExtensionRoleLength leaves room for the other parts of the names of cluster roles.
	maxExtensionRoleLength = 20

	projectNamespacePrefix = "garden-"
)

var (
	reservedProjectNamespaces = []string{gardencore.GardenerSeedLeaseNamespace, gardencore.GardenerShootIssuerNamespace,
		gardencore.GardenerSystemPublicNamespace}
	projectRoles = []string{
		gardencore.ProjectMemberAdmin, gardencore.ProjectMemberOwner, gardencore.ProjectMemberServiceAccountManager,
		gardencore.ProjectMemberUserAccessManager, gardencore.ProjectMemberViewer,
	}
)

// ValidateProject checks a new project.
func ValidateProject(project *gardencore.Project) field.ErrorList {
	return validateProject(project, true, true)
}

// ValidateProjectUpdate checks a changed project: its creator and its namespace must not change once they are set,
// and its owner must not be removed. An unchanged description or purpose may contain characters that are not allowed
// any more.
func ValidateProjectUpdate(newProject, oldProject *gardencore.Project) field.ErrorList {
	newSpec, oldSpec, fldPath := &newProject.Spec, &oldProject.Spec, field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newProject.ObjectMeta, &oldProject.ObjectMeta, field.NewPath("metadata")),
		validateProject(newProject,
			!apiequality.Semantic.DeepEqual(newSpec.Description, oldSpec.Description),
			!apiequality.Semantic.DeepEqual(newSpec.Purpose, oldSpec.Purpose)),
		immutableOnceSet(newSpec.CreatedBy, oldSpec.CreatedBy, fldPath.Child("createdBy")),
		immutableOnceSet(newSpec.Namespace, oldSpec.Namespace, fldPath.Child("namespace")),
		InvalidIf(oldSpec.Owner != nil && newSpec.Owner == nil, fldPath.Child("owner"), nil, "must not be removed"),
	)
}

// ValidateProjectStatusUpdate refuses to remove the phase of a project.
func ValidateProjectStatusUpdate(newProject, oldProject *gardencore.Project) field.ErrorList {
	return InvalidIf(oldProject.Status.Phase != "" && newProject.Status.Phase == "", field.NewPath("status", "phase"),
		newProject.Status.Phase, "must not be removed")
}

func validateProject(project *gardencore.Project, checkDescription, checkPurpose bool) field.ErrorList {
	namePath, fldPath, spec := field.NewPath("metadata", "name"), field.NewPath("spec"), &project.Spec
	errs := apivalidation.ValidateObjectMeta(&project.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(project.Name) > maxProjectNameLength {
		errs = append(errs, field.TooLong(namePath, project.Name, maxProjectNameLength))
	}
	errs = append(errs, validateNameConsecutiveHyphens(project.Name, namePath)...)

	if spec.Namespace != nil && slices.Contains(reservedProjectNamespaces, *spec.Namespace) {
		return append(errs, field.Invalid(fldPath.Child("namespace"), *spec.Namespace,
			fmt.Sprintf("must not be one of Gardener's own namespaces %v", reservedProjectNamespaces)))
	}
	errs = append(errs, Optional(spec.Namespace, fldPath.Child("namespace"), validateProjectNamespace)...)
	errs = append(errs, validateProjectMembers(spec.Members, fldPath.Child("members"))...)
	errs = append(errs, Optional(spec.CreatedBy, fldPath.Child("createdBy"), ValidateSubject)...)
	errs = append(errs, Optional(spec.Owner, fldPath.Child("owner"), ValidateSubject)...)
	errs = append(errs, validateProjectText(spec.Description, checkDescription, fldPath.Child("description"))...)
	errs = append(errs, validateProjectText(spec.Purpose, checkPurpose, fldPath.Child("purpose"))...)
	if tolerations := spec.Tolerations; tolerations != nil {
		defaultsPath, whitelistPath := fldPath.Child("tolerations", "defaults"), fldPath.Child("tolerations", "whitelist")
		errs = append(errs, ValidateTolerations(tolerations.Defaults, defaultsPath)...)
		errs = append(errs, ValidateTolerations(tolerations.Whitelist, whitelistPath)...)
		errs = append(errs, ValidateTolerationsAgainstAllowlist(tolerations.Defaults, tolerations.Whitelist, defaultsPath)...)
	}
	return append(errs, validateDualApproval(spec.DualApprovalForDeletion, fldPath.Child("dualApprovalForDeletion"))...)
}

func validateProjectNamespace(namespace string, fldPath *field.Path) field.ErrorList {
	allowed := namespace == constants.GardenNamespace || strings.HasPrefix(namespace, projectNamespacePrefix)
	return append(
		InvalidIf(!allowed, fldPath, namespace, fmt.Sprintf("must be %s or start with %s", constants.GardenNamespace, projectNamespacePrefix)),
		InvalidEach(fldPath, namespace, namespaceName(namespace))...,
	)
}

func validateProjectText(text *string, checkCharacters bool, fldPath *field.Path) field.ErrorList {
	if text == nil {
		return nil
	}
	errs := Required(fldPath, *text)
	if checkCharacters {
		errs = append(errs, ValidateFreeFormText(*text, fldPath)...)
	}
	return errs
}

// ---- members ----

// validateProjectMembers checks that the members are distinct, and that at most one is the owner.
func validateProjectMembers(members []gardencore.ProjectMember, fldPath *field.Path) field.ErrorList {
	var (
		errs       field.ErrorList
		seen       = sets.New[rbacv1.Subject]()
		ownerFound bool
	)
	for i, member := range members {
		idxPath := fldPath.Index(i)
		subject, err := canonicalSubject(member.Subject)
		if err != nil {
			errs = append(errs, field.Invalid(idxPath.Child("name"), member.Name, err.Error()))
			continue
		}
		if !insertNew(seen, subject) {
			errs = append(errs, field.Duplicate(idxPath, member))
		}
		errs = append(errs, validateProjectMember(member, idxPath)...)
		for j, role := range member.Roles {
			errs = append(errs, ForbiddenIf(role == gardencore.ProjectMemberOwner && ownerFound,
				idxPath.Child("roles").Index(j), "must not be given to a second member")...)
			ownerFound = ownerFound || role == gardencore.ProjectMemberOwner
		}
	}
	return errs
}

// canonicalSubject returns the service account for a user name like system:serviceaccount:<namespace>:<name>, and the
// subject itself for all others.
func canonicalSubject(subject rbacv1.Subject) (rbacv1.Subject, error) {
	if subject.Kind != rbacv1.UserKind || !strings.HasPrefix(subject.Name, serviceaccount.ServiceAccountUsernamePrefix) {
		return subject, nil
	}
	parts := strings.Split(subject.Name, serviceaccount.ServiceAccountUsernameSeparator)
	if len(parts) < 4 {
		return subject, fmt.Errorf("must look like %s<namespace>%s<name>", serviceaccount.ServiceAccountUsernamePrefix,
			serviceaccount.ServiceAccountUsernameSeparator)
	}
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[2], Name: parts[3]}, nil
}

// validateProjectMember checks that the subject is valid and its roles are distinct. Each role must be a known one or
// an extension role, whose name becomes a part of the name of a cluster role.
func validateProjectMember(member gardencore.ProjectMember, fldPath *field.Path) field.ErrorList {
	errs := ValidateSubject(member.Subject, fldPath)
	seen := sets.New[string]()
	for i, role := range member.Roles {
		rolePath := fldPath.Child("roles").Index(i)
		errs = append(errs, Distinct(rolePath, seen, role)...)
		extension, ofExtension := strings.CutPrefix(role, gardencore.ProjectMemberExtensionPrefix)
		if !ofExtension {
			if !slices.Contains(projectRoles, role) {
				errs = append(errs, field.NotSupported(rolePath, role, append(slices.Clone(projectRoles), gardencore.ProjectMemberExtensionPrefix+"*")))
			}
			continue
		}
		if len(extension) > maxExtensionRoleLength {
			errs = append(errs, field.TooLong(rolePath, role, maxExtensionRoleLength))
		}
		if messages := path.IsValidPathSegmentName(extension); len(messages) > 0 {
			errs = append(errs, field.Invalid(rolePath, role, strings.Join(messages, ", ")))
		}
	}
	return errs
}

// ValidateSubject checks a subject as RBAC does.
func ValidateSubject(subject rbacv1.Subject, fldPath *field.Path) field.ErrorList {
	namePath, groupPath, namespacePath := fldPath.Child("name"), fldPath.Child("apiGroup"), fldPath.Child("namespace")
	errs := Required(namePath, subject.Name)
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.Name != "" {
			errs = append(errs, InvalidEach(namePath, subject.Name, apivalidation.ValidateServiceAccountName(subject.Name, false))...)
		}
		errs = append(errs, Supported(groupPath, subject.APIGroup, "")...)
		errs = append(errs, requiredName(namespacePath, subject.Namespace, namespaceName)...)
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, Supported(groupPath, subject.APIGroup, rbacv1.GroupName)...)
		errs = append(errs, ForbiddenIf(subject.Namespace != "", namespacePath, "must not be set for users and groups")...)
	default:
		errs = append(errs, field.NotSupported(fldPath.Child("kind"), subject.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return errs
}

// validateDualApproval checks that the resources are distinct and support dual approval.
func validateDualApproval(configs []gardencore.DualApprovalForDeletion, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, config := range configs {
		idxPath := fldPath.Index(i)
		resourcePath := idxPath.Child("resource")
		if config.Resource != "" {
			errs = append(errs, Supported(resourcePath, config.Resource, "shoots")...)
		}
		errs = append(errs, distinctName(resourcePath, seen, config.Resource)...)
		errs = append(errs, metav1validation.ValidateLabelSelector(
			ptr.To(config.Selector), metav1validation.LabelSelectorValidationOptions{}, idxPath.Child("selector"))...)
	}
	return errs
}
