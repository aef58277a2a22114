package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	kubeauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/graphview"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// Question is a request that is to be explained.
type Question struct {
	User `json:",inline"`
	Verb string `json:"verb"`
	// Resource is entered by a user: a plural, singular or short name, with or without group, with or without
	// /SUBRESOURCE.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// FieldSelector and LabelSelector are those of a list or watch.
	FieldSelector string `json:"fieldSelector,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
}

// Explanation explains whether a request is allowed, by which authorizer and why.
type Explanation struct {
	Allowed bool `json:"allowed"`
	// By is RBAC, SeedAuthorizer, or empty if neither allows it.
	By string `json:"by,omitempty"`
	// User and Groups are those of the request; Identity is how SeedAuthorizer interprets them, such as "gardenlet of
	// seed local".
	User     string   `json:"user"`
	Groups   []string `json:"groups"`
	Identity string   `json:"identity"`
	// The following fields are the request as the garden receives it.
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`

	SeedAuthorizer authorizer.Explanation `json:"seedAuthorizer"`
	RBAC           authorizer.Explanation `json:"rbac"`
	// Garden is the answer of the API server itself.
	Garden authorizer.Explanation `json:"garden"`
	// Notes explain the answer.
	Notes []string `json:"notes,omitempty"`
}

// Values of Explanation.By.
const (
	byRBAC           = "RBAC"
	bySeedAuthorizer = "SeedAuthorizer"
	// rbacReason is the prefix of the reason of Kubernetes' RBAC authorizer for an allowed request.
	rbacReason = "RBAC: allowed by "
)

// Explain decides on a request like the garden, and explains the decision. It returns a usage error if the request is
// invalid.
func (i *Inspector) Explain(ctx context.Context, q Question) (*Explanation, error) {
	who, err := q.info()
	if err != nil {
		return nil, err
	}
	all, err := i.served()
	if err != nil {
		return nil, err
	}
	resource, err := resolve(all, q.Resource)
	if err != nil {
		return nil, err
	}
	attrs, notes, err := attributesOf(who, q, resource)
	if err != nil {
		return nil, err
	}
	identity := seedidentity.OfUser(who)
	e := &Explanation{
		User: who.Name, Groups: who.Groups, Identity: identity.String(), Notes: notes,
		Verb: attrs.Verb, Group: attrs.APIGroup, Resource: attrs.Resource, Subresource: attrs.Subresource,
		Namespace: attrs.Namespace, Name: attrs.Name, SeedAuthorizer: i.authorizer.Explain(attrs),
	}
	if of := &e.SeedAuthorizer; !of.Allowed && of.Rule != "" && len(of.Path) == 0 {
		of.Path = i.farthest(resource.Kind, attrs)
	}
	if e.Garden, err = i.review(ctx, attrs); err != nil {
		return nil, err
	}
	if e.Garden.Allowed && strings.HasPrefix(e.Garden.Reason, rbacReason) {
		e.RBAC = e.Garden
	}
	e.conclude()
	e.Notes = append(e.Notes, i.notes(ctx, e, resource, identity)...)
	return e, nil
}

func (e *Explanation) conclude() {
	switch {
	case e.RBAC.Allowed:
		e.Allowed, e.By = true, byRBAC
	case e.SeedAuthorizer.Allowed:
		e.Allowed, e.By = true, bySeedAuthorizer
	}
	if e.Allowed != e.Garden.Allowed {
		e.Notes = append(e.Notes, fmt.Sprintf("the garden's API server says otherwise (allowed: %t, reason: %q): it does "+
			"not reach the webhook, or something changed just now; see \"gardenlite status\"", e.Garden.Allowed, e.Garden.Reason))
	}
}

// attributesOf returns the request as the garden would receive it, or a usage error.
func attributesOf(who user.Info, q Question, r served) (attrs kubeauthorizer.AttributesRecord, notes []string, err error) {
	switch {
	case q.Verb == "":
		return attrs, nil, usage.Errorf("say a verb, one of %s", strings.Join(authorizer.AllVerbs(), ", "))
	case !r.Namespaced && q.Namespace != "":
		return attrs, nil, usage.Errorf("%s are not in namespaces: say the name alone", r)
	case r.Namespaced && q.Namespace == "" && q.Name != "":
		return attrs, nil, usage.Errorf("%s are in namespaces: say NAMESPACE/%s, or the namespace with -n", r, q.Name)
	}
	attrs = kubeauthorizer.AttributesRecord{
		User: who, Verb: q.Verb, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: q.Namespace, Name: q.Name, ResourceRequest: true,
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, q.Verb) {
		notes = append(notes, fmt.Sprintf("the garden has no verb %q for %s: it has %s", q.Verb, r, strings.Join(r.Verbs, ", ")))
	}
	if q.Verb == "create" && r.Subresource == "" && q.Name != "" {
		// The name is in the body, which authorizers do not see.
		attrs.Name = ""
		notes = append(notes, "a request to create does not carry the object's name, so authorization cannot depend on it")
	}
	if (q.Verb == "list" || q.Verb == "watch") && q.Name != "" {
		notes = append(notes, "list and watch carry a name with the field selector metadata.name="+q.Name)
	}
	if (q.FieldSelector != "" || q.LabelSelector != "") && q.Verb != "list" && q.Verb != "watch" {
		return attrs, nil, usage.Errorf("a selector is for list and watch, not for %s", q.Verb)
	}
	attrs.FieldSelectorRequirements, attrs.LabelSelectorRequirements, err = parseSelectors(q.FieldSelector,
		q.LabelSelector)
	if err != nil {
		return attrs, nil, err
	}
	if r.Resource == "namespaces" && r.Group == "" {
		attrs.Namespace = attrs.Name // as in the API server's interpretation of the path
	}
	return attrs, notes, nil
}

// review asks the garden's API server, which asks RBAC first and then the webhook.
func (i *Inspector) review(ctx context.Context, attrs kubeauthorizer.AttributesRecord) (authorizer.Explanation, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: attrs.User.GetName(), Groups: attrs.User.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: attrs.Verb, Group: attrs.APIGroup, Version: attrs.APIVersion, Resource: attrs.Resource, Subresource: attrs.Subresource,
			Namespace: attrs.Namespace, Name: attrs.Name,
			FieldSelector: fieldSelectorOf(attrs), LabelSelector: labelSelectorOf(attrs),
		},
	}}
	review, err := i.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authorizer.Explanation{}, fmt.Errorf("asking the garden: %w", err)
	}
	return authorizer.Explanation{Allowed: review.Status.Allowed, Reason: review.Status.Reason}, nil
}

func parseSelectors(field, label string) (fields.Requirements, labels.Requirements, error) {
	ofFields, err := fields.ParseSelector(field)
	if err != nil {
		return nil, nil, usage.Errorf("--field-selector %q: %w", field, err)
	}
	ofLabels, err := labels.ParseToRequirements(label)
	if err != nil {
		return nil, nil, usage.Errorf("--selector %q: %w", label, err)
	}
	return ofFields.Requirements(), ofLabels, nil
}

func fieldSelectorOf(attrs kubeauthorizer.AttributesRecord) *authorizationv1.FieldSelectorAttributes {
	if len(attrs.FieldSelectorRequirements) == 0 {
		return nil
	}
	var terms []fields.Selector
	for _, r := range attrs.FieldSelectorRequirements {
		if r.Operator == selection.NotEquals {
			terms = append(terms, fields.OneTermNotEqualSelector(r.Field, r.Value))
		} else {
			terms = append(terms, fields.OneTermEqualSelector(r.Field, r.Value))
		}
	}
	return &authorizationv1.FieldSelectorAttributes{RawSelector: fields.AndSelectors(terms...).String()}
}

func labelSelectorOf(attrs kubeauthorizer.AttributesRecord) *authorizationv1.LabelSelectorAttributes {
	if len(attrs.LabelSelectorRequirements) == 0 {
		return nil
	}
	selector := labels.NewSelector().Add(attrs.LabelSelectorRequirements...)
	return &authorizationv1.LabelSelectorAttributes{RawSelector: selector.String()}
}

// notes returns notes that may explain an unexpected answer.
func (i *Inspector) notes(ctx context.Context, e *Explanation, r served, who seedidentity.Identity) (notes []string) {
	if who.Seed != "" && !i.graph.Has(graph.Vertex{Kind: graph.KindSeed, Name: who.Seed}) {
		notes = append(notes, "there is no Seed "+who.Seed)
	}
	namespace := ""
	if r.Namespaced {
		namespace = e.Namespace // a request for a Namespace carries one as well
	}
	if e.Name != "" && !i.exists(ctx, r.GroupVersionResource, namespace, e.Name) {
		notes = append(notes, "there is no such object now")
	}
	if who.Type != seedidentity.None && e.Allowed && isRestricted(e) {
		notes = append(notes, "SeedRestriction then looks at the object itself, and refuses what does not belong to Seed "+who.Seed)
	}
	return notes
}

// isRestricted reports whether the API server sends such a request to the admission webhook.
func isRestricted(e *Explanation) bool {
	operation, found := map[string]admissionregistrationv1.OperationType{
		"create": admissionregistrationv1.Create, "update": admissionregistrationv1.Update, "patch": admissionregistrationv1.Update,
		"delete": admissionregistrationv1.Delete, "deletecollection": admissionregistrationv1.Delete,
	}[e.Verb]
	resource := e.Resource
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	return found && slices.ContainsFunc(restriction.Rules(), func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.Operations, operation) && slices.Contains(r.APIGroups, e.Group) && slices.Contains(r.Resources, resource)
	})
}

// farthest returns a path from the object to the most distant object to which it leads. It explains, for example, that
// the object of a binding belongs to a Shoot that has no seed yet.
func (i *Inspector) farthest(kind string, attrs kubeauthorizer.AttributesRecord) []graph.Vertex {
	from := graph.Vertex{Namespace: attrs.Namespace, Name: attrs.Name}
	var known bool
	if from.Kind, known = graph.ParseKind(kind); !known {
		return nil
	}
	if from.Kind == graph.KindNamespace {
		from.Namespace = ""
	}
	return graphview.Farthest(i.graph.Snapshot(), from)
}
