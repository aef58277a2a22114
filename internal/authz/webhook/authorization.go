package webhook

import (
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

var subjectAccessReviewKind = authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview")

// authorize answers a SubjectAccessReview. The answer has only a status, because the API server knows the request.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if !s.config.Synced() {
		s.metrics.failure(AuthorizationPath, http.StatusServiceUnavailable)
		w.Header().Set("Retry-After", "1")
		writeText(w, http.StatusServiceUnavailable, s.notReady())
		return
	}
	var review authorizationv1.SubjectAccessReview
	err := decode(w, r, maxAuthorizationBody, subjectAccessReviewKind, &review, &review.TypeMeta)
	var attributes authorizer.AttributesRecord
	if err == nil {
		attributes, err = attributesOf(&review.Spec)
	}
	if err != nil {
		s.fail(w, AuthorizationPath, err)
		return
	}
	decision, reason, err := s.config.Authorizer.Authorize(r.Context(), attributes)
	status := authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow && err == nil, Reason: oneLine(reason)}
	if err != nil {
		s.config.Log.Error(err, "An authorization failed", "resource", attributes.Resource, "verb", attributes.Verb)
		status.EvaluationError = oneLine(err.Error())
	}
	s.metrics.authorization(attributes, seedidentity.OfUser(attributes.User).Type, status.Allowed)
	writeJSON(w, authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: subjectAccessReviewKind.Kind},
		Status:   status,
	})
}

// attributesOf returns the attributes of the request in a review, or the reason why the review is invalid.
func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec) (record authorizer.AttributesRecord, err error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return record, malformed("the review names neither a user nor groups")
	}
	info := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	if len(spec.Extra) > 0 {
		info.Extra = make(map[string][]string, len(spec.Extra))
		for key, value := range spec.Extra {
			info.Extra[key] = value
		}
	}
	switch resource, other := spec.ResourceAttributes, spec.NonResourceAttributes; {
	case resource != nil && other != nil, resource == nil && other == nil:
		return record, malformed("exactly one of resourceAttributes and nonResourceAttributes must be set")
	case other != nil:
		if other.Verb == "" {
			return record, malformed("the review names no verb")
		}
		return authorizer.AttributesRecord{User: info, Verb: other.Verb, Path: other.Path}, nil
	case resource.Verb == "" || resource.Resource == "":
		return record, malformed("the review names no verb or no resource")
	default:
		record = authorizer.AttributesRecord{
			User: info, Verb: resource.Verb, Namespace: resource.Namespace,
			APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
			Subresource: resource.Subresource, Name: resource.Name, ResourceRequest: true,
		}
		if record.FieldSelectorRequirements, err = requirementsOf(resource.FieldSelector); err != nil {
			return record, err
		}
		record.LabelSelectorRequirements, err = labelRequirementsOf(resource.LabelSelector)
		return record, err
	}
}

// requirementsOf returns the parsed requirements of a field selector. It ignores the raw selector, which the API server
// has parsed, and requirements that the package fields cannot express: a request with fewer requirements is the broader
// one.
func requirementsOf(selector *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if selector == nil {
		return nil, nil
	}
	if selector.RawSelector != "" && len(selector.Requirements) > 0 {
		return nil, malformed("rawSelector and requirements of a field selector exclude each other")
	}
	var all fields.Requirements
	for _, requirement := range selector.Requirements {
		if len(requirement.Values) != 1 {
			continue
		}
		one := fields.Requirement{Field: requirement.Key, Value: requirement.Values[0]}
		switch requirement.Operator {
		case metav1.FieldSelectorOpIn:
			one.Operator = selection.Equals
		case metav1.FieldSelectorOpNotIn:
			one.Operator = selection.NotEquals
		default:
			continue
		}
		all = append(all, one)
	}
	return all, nil
}

// labelRequirementsOf is requirementsOf for a label selector.
func labelRequirementsOf(selector *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if selector == nil {
		return nil, nil
	}
	if selector.RawSelector != "" && len(selector.Requirements) > 0 {
		return nil, malformed("rawSelector and requirements of a label selector exclude each other")
	}
	var all labels.Requirements
	for _, requirement := range selector.Requirements {
		operator, known := labelOperators[requirement.Operator]
		if !known {
			continue
		}
		if one, err := labels.NewRequirement(requirement.Key, operator, requirement.Values); err == nil {
			all = append(all, *one)
		}
	}
	return all, nil
}

var labelOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn:           selection.In,
	metav1.LabelSelectorOpNotIn:        selection.NotIn,
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}
