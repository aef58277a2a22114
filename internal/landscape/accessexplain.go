package landscape

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// AccessQuestion is a request that somebody might make of the garden.
type AccessQuestion struct {
	AccessUser `json:",inline"`
	Verb       string `json:"verb"`
	// Resource is as it is typed: a plural, singular or short name, with or without group, with or without /SUBRESOURCE.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// AccessExplanation says whether a request is allowed, by whom and why.
type AccessExplanation struct {
	Allowed bool `json:"allowed"`
	// By is RBAC, SeedAuthorizer, or empty if nobody allows it.
	By string `json:"by,omitempty"`
	// User and Groups are who asks; Identity is what SeedAuthorizer takes it for, such as "gardenlet of seed local".
	User     string   `json:"user"`
	Groups   []string `json:"groups"`
	Identity string   `json:"identity"`
	// The request as the garden understands it.
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`

	SeedAuthorizer AccessDecision `json:"seedAuthorizer"`
	RBAC           AccessDecision `json:"rbac"`
	// Garden is what the API server itself answers.
	Garden AccessDecision `json:"garden"`
	// Notes are what there is to know beside.
	Notes []string `json:"notes,omitempty"`
}

// AccessDecision is one authorizer's answer.
type AccessDecision struct {
	Allowed bool `json:"allowed"`
	// Rule is the row of the table that allows it, or the nearest.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Path leads through the graph to the seed that asks; or, where there is no such path, to where the object leads.
	Path []graph.Vertex `json:"path,omitempty"`
}

// By is who allowed a request.
const (
	byRBAC           = "RBAC"
	bySeedAuthorizer = "SeedAuthorizer"
	// rbacReason is how Kubernetes' RBAC authorizer begins when it allows.
	rbacReason = "RBAC: allowed by "
)

// explain decides on a request as the garden would, and says why.
func (a *access) explain(ctx context.Context, q AccessQuestion) (*AccessExplanation, error) {
	who, err := q.info()
	if err != nil {
		return nil, err
	}
	all, err := a.served()
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
	e := &AccessExplanation{
		User: who.Name, Groups: who.Groups, Identity: identityOf(who).String(), Notes: notes,
		Verb: attrs.Verb, Group: attrs.APIGroup, Resource: attrs.Resource, Subresource: attrs.Subresource, Namespace: attrs.Namespace, Name: attrs.Name,
	}
	decision := a.authorizer.Explain(attrs)
	e.SeedAuthorizer = AccessDecision{Allowed: decision.Allowed(), Rule: decision.Rule, Reason: decision.Reason, Path: decision.Path}
	if !e.SeedAuthorizer.Allowed && decision.Rule != "" && len(decision.Path) == 0 {
		e.SeedAuthorizer.Path = a.wayFrom(resource.Kind, attrs)
	}
	if e.Garden, err = a.review(ctx, attrs); err != nil {
		return nil, err
	}
	if e.Garden.Allowed && strings.HasPrefix(e.Garden.Reason, rbacReason) {
		e.RBAC = e.Garden
	}
	e.conclude()
	e.Notes = append(e.Notes, a.notes(ctx, e, resource, identityOf(who))...)
	return e, nil
}

func (e *AccessExplanation) conclude() {
	switch {
	case e.RBAC.Allowed:
		e.Allowed, e.By = true, byRBAC
	case e.SeedAuthorizer.Allowed:
		e.Allowed, e.By = true, bySeedAuthorizer
	}
	if e.Allowed != e.Garden.Allowed {
		e.Notes = append(e.Notes, fmt.Sprintf("the garden's API server says otherwise (allowed: %t, reason: %q): it does not reach the webhook, or something changed just now; see \"gardenlite status\"", e.Garden.Allowed, e.Garden.Reason))
	}
}

// attributesOf makes the request that the garden would be sent, or says what is wrong with the question.
func attributesOf(who user.Info, q AccessQuestion, r served) (attrs authorizer.AttributesRecord, notes []string, err error) {
	switch {
	case q.Verb == "":
		return attrs, nil, &UsageError{fmt.Errorf("say a verb, one of %s", strings.Join(AccessVerbs(), ", "))}
	case !r.Namespaced && q.Namespace != "":
		return attrs, nil, &UsageError{fmt.Errorf("%s are not in namespaces: say the name alone", r)}
	case r.Namespaced && q.Namespace == "" && q.Name != "":
		return attrs, nil, &UsageError{fmt.Errorf("%s are in namespaces: say NAMESPACE/%s, or the namespace with -n", r, q.Name)}
	}
	attrs = authorizer.AttributesRecord{
		User: who, Verb: q.Verb, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: q.Namespace, Name: q.Name, ResourceRequest: true,
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, q.Verb) {
		notes = append(notes, fmt.Sprintf("the garden has no verb %q for %s: it has %s", q.Verb, r, strings.Join(r.Verbs, ", ")))
	}
	if q.Verb == "create" && r.Subresource == "" && q.Name != "" {
		// What is created has its name in the body, which no authorizer sees.
		attrs.Name = ""
		notes = append(notes, "a request to create does not carry the object's name, so authorization cannot depend on it")
	}
	if (q.Verb == "list" || q.Verb == "watch") && q.Name != "" {
		notes = append(notes, "list and watch carry a name with the field selector metadata.name="+q.Name)
	}
	if r.Resource == "namespaces" && r.Group == "" {
		attrs.Namespace = attrs.Name // as the API server understands the path
	}
	return attrs, notes, nil
}

// review asks the garden's API server, so RBAC first and then the webhook.
func (a *access) review(ctx context.Context, attrs authorizer.AttributesRecord) (AccessDecision, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: attrs.User.GetName(), Groups: attrs.User.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: attrs.Verb, Group: attrs.APIGroup, Version: attrs.APIVersion, Resource: attrs.Resource, Subresource: attrs.Subresource,
			Namespace: attrs.Namespace, Name: attrs.Name,
		},
	}}
	review, err := a.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return AccessDecision{}, fmt.Errorf("asking the garden: %w", err)
	}
	return AccessDecision{Allowed: review.Status.Allowed, Reason: review.Status.Reason}, nil
}

// notes are what may explain an answer that surprises.
func (a *access) notes(ctx context.Context, e *AccessExplanation, r served, who seedidentity.Identity) (notes []string) {
	if who.Seed != "" && !a.graph.Has(graph.Vertex{Kind: graph.KindSeed, Name: who.Seed}) {
		notes = append(notes, "there is no Seed "+who.Seed)
	}
	if e.Name != "" && !a.exists(ctx, r.GroupVersionResource, namespaceOf(e, r), e.Name) {
		notes = append(notes, "there is no such object now")
	}
	if who.Type != seedidentity.None && e.Allowed && isRestricted(e) {
		notes = append(notes, "SeedRestriction then looks at the object itself, and refuses what does not belong to Seed "+who.Seed)
	}
	return notes
}

func namespaceOf(e *AccessExplanation, r served) string {
	if !r.Namespaced {
		return ""
	}
	return e.Namespace
}

// isRestricted says whether the admission webhook is sent such a request.
func isRestricted(e *AccessExplanation) bool {
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

// wayFrom is how far an object that leads to no seed leads: to the end of the longest way from it. It explains, for
// example, that what a binding refers to belongs to a Shoot that has no seed yet.
func (a *access) wayFrom(kind string, attrs authorizer.AttributesRecord) []graph.Vertex {
	from := graph.Vertex{Namespace: attrs.Namespace, Name: attrs.Name}
	var known bool
	if from.Kind, known = graph.ParseKind(kind); from.Kind == graph.KindNamespace {
		from.Namespace = ""
	}
	if !known || !a.graph.Has(from) {
		return nil
	}
	return newPart(a.graph.Snapshot()).farthest(from)
}
