package gardenwebhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	admissionconfig "github.com/gardener/gardener/pkg/apis/config/admissioncontroller/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ReadLimits reads the resourceAdmissionConfiguration of Gardener's admission controller from a file: the limits of
// validate-resource-size.gardener.cloud.
func ReadLimits(file string) (*admissionconfig.ResourceAdmissionConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the limits of resources: %w", err)
	}
	limits := &admissionconfig.ResourceAdmissionConfiguration{}
	if err := yaml.UnmarshalStrict(data, limits); err != nil {
		return nil, fmt.Errorf("reading the limits of resources in %s: %w", file, err)
	}
	if errs := validateLimits(limits); len(errs) > 0 {
		return nil, fmt.Errorf("the limits of resources in %s are not valid: %w", file, errs.ToAggregate())
	}
	return limits, nil
}

func validateLimits(limits *admissionconfig.ResourceAdmissionConfiguration) field.ErrorList {
	var errs field.ErrorList
	modes := []admissionconfig.ResourceAdmissionWebhookMode{
		admissionconfig.AdmissionModeBlock, admissionconfig.AdmissionModeLog}
	if mode := limits.OperationMode; mode != nil && !slices.Contains(modes, *mode) {
		errs = append(errs, field.NotSupported(field.NewPath("operationMode"), *mode, modes))
	}
	for i, limit := range limits.Limits {
		path := field.NewPath("limits").Index(i)
		for name, values := range map[string][]string{
			"apiGroups": limit.APIGroups, "apiVersions": limit.APIVersions, "resources": limit.Resources} {
			if len(values) == 0 {
				errs = append(errs, field.Required(path.Child(name), "must not be empty"))
			}
		}
		if limit.Size == nil && limit.Count == nil {
			errs = append(errs, field.Required(path.Child("size"), "either size or count must be set"))
		}
		if limit.Size != nil && limit.Size.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("size"), limit.Size.String(), "must not be negative"))
		}
		if limit.Count != nil && *limit.Count < 0 {
			errs = append(errs, field.Invalid(path.Child("count"), *limit.Count, "must not be negative"))
		}
	}
	for i, subject := range limits.UnrestrictedSubjects {
		path := field.NewPath("unrestrictedSubjects").Index(i)
		switch subject.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			if subject.Namespace != "" {
				errs = append(errs, field.Invalid(path.Child("namespace"), subject.Namespace, "must be empty for this kind"))
			}
		case rbacv1.ServiceAccountKind:
			if subject.Namespace == "" {
				errs = append(errs, field.Required(path.Child("namespace"), "must be set for a ServiceAccount"))
			}
		default:
			errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind,
				[]string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
		}
		if subject.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must not be empty"))
		}
	}
	return errs
}

// limitRules returns the rules of the webhook for the limits.
func limitRules(limits *admissionconfig.ResourceAdmissionConfiguration) []admissionregistrationv1.RuleWithOperations {
	var all []admissionregistrationv1.RuleWithOperations
	for _, limit := range limits.Limits {
		all = append(all, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{created, updated},
			Rule: admissionregistrationv1.Rule{
				APIGroups: limit.APIGroups, APIVersions: limit.APIVersions, Resources: limit.Resources, Scope: allScopes,
			},
		})
	}
	return all
}

// CountRules returns the permissions that the webhook needs to count resources.
func CountRules(limits *admissionconfig.ResourceAdmissionConfiguration) (rules []rbacv1.PolicyRule) {
	if limits == nil {
		return nil
	}
	for _, limit := range limits.Limits {
		if limit.Count != nil {
			rules = append(rules,
				rbacv1.PolicyRule{APIGroups: limit.APIGroups, Resources: limit.Resources, Verbs: []string{"list"}})
		}
	}
	return rules
}

// resourceSize refuses objects that are larger than their limit, and cluster-scoped ones beyond the number of their
// limit.
func (h *handlers) resourceSize(ctx context.Context, request *admissionv1.AdmissionRequest) (changedLabels, error) {
	if h.isUnrestricted(request.UserInfo) {
		return nil, nil
	}
	// The resource of the request, before the API server converted it.
	resource := request.Resource
	if request.RequestResource != nil {
		resource = *request.RequestResource
	}
	i := slices.IndexFunc(h.limits.Limits, func(limit admissionconfig.ResourceLimit) bool {
		return matches(limit.APIGroups, resource.Group) && matches(limit.APIVersions, resource.Version) &&
			matches(limit.Resources, resource.Resource)
	})
	if i < 0 {
		return nil, nil
	}
	limit := h.limits.Limits[i]
	refuse := func(reason, format string, args ...any) error {
		if mode := h.limits.OperationMode; mode != nil && *mode == admissionconfig.AdmissionModeLog {
			return nil
		}
		h.rejected(request, reason)
		group := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
		return apierrors.NewForbidden(group, request.Name, fmt.Errorf(format, args...))
	}
	if limit.Count != nil && request.Namespace == "" && request.Operation == admissionv1.Create {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(
			schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: request.Kind.Kind + "List"})
		if err := h.reader.List(ctx, list, client.Limit(*limit.Count+1)); err != nil {
			return nil, fmt.Errorf("failed to list resources for counting: %w", err)
		}
		if int64(len(list.Items)) >= *limit.Count {
			if err := refuse(reasonCount, "maximum resource count exceeded! max allowed: %d", *limit.Count); err != nil {
				return nil, err
			}
		}
	}
	if limit.Size != nil {
		size, err := relevantSize(request.Object.Raw)
		if err != nil {
			return nil, err
		}
		if limit.Size.CmpInt64(size) < 0 {
			return nil, refuse(reasonSize, "maximum resource size exceeded! Size in request: %d bytes, max allowed: %s", size,
				limit.Size)
		}
	}
	return nil, nil
}

func matches(values []string, value string) bool {
	return slices.Contains(values, value) || slices.Contains(values, admissionconfig.WildcardAll)
}

// relevantSize returns the size of an object in JSON without what its author does not write.
func relevantSize(raw []byte) (int64, error) {
	object := map[string]any{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("decoding the object: %v", err))
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	written, err := json.Marshal(object)
	return int64(len(written)), err
}

func (h *handlers) isUnrestricted(user authenticationv1.UserInfo) bool {
	account := strings.HasPrefix(user.Username, serviceaccount.ServiceAccountUsernamePrefix)
	return slices.ContainsFunc(h.limits.UnrestrictedSubjects, func(subject rbacv1.Subject) bool {
		all := subject.Name == admissionconfig.WildcardAll
		switch {
		case account && subject.Kind == rbacv1.ServiceAccountKind && all:
			return strings.HasPrefix(user.Username, serviceaccount.ServiceAccountUsernamePrefix+subject.Namespace+":")
		case account:
			return subject.Kind == rbacv1.ServiceAccountKind &&
				serviceaccount.MatchesUsername(subject.Namespace, subject.Name, user.Username)
		case subject.Kind == rbacv1.UserKind:
			return all || subject.Name == user.Username
		case subject.Kind == rbacv1.GroupKind:
			return all || slices.Contains(user.Groups, subject.Name)
		}
		return false
	})
}
