package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	kubeauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Values of Row.Verbs, from the most to the least access.
const (
	RBAC   = "rbac"   // RBAC allows it, for all objects
	Free   = "free"   // SeedAuthorizer allows it without the graph
	Graph  = "graph"  // SeedAuthorizer allows it for objects that lead to the seed
	Within = "within" // SeedAuthorizer allows it in namespaces that lead to the seed
	// Selector is for list and watch: SeedAuthorizer allows them with the selector of the row, and for single objects
	// that lead to the seed.
	Selector = "select"
	None     = "none"
)

// Matrix is everything that a user may do.
type Matrix struct {
	User     string   `json:"user"`
	Groups   []string `json:"groups"`
	Identity string   `json:"identity"`
	Rows     []Row    `json:"rows"`
	// Namespace is the namespace of the rows of namespaced resources; if empty, they are for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Tried is the number of requests on which the garden's API server decided.
	Tried int `json:"tried"`
	// Disagreements are answers of the API server that differ from the table. There should be none.
	Disagreements []string `json:"disagreements,omitempty"`
	// OtherBindings are bindings that give the user more access than the rows show.
	OtherBindings []string `json:"elsewhere,omitempty"`
}

// Row has the access of a user to the objects of one resource or subresource.
type Row struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Namespace and Name restrict the row to some objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Verbs has the access for every verb of the resource.
	Verbs map[string]string `json:"verbs"`
	// FieldSelector or LabelSelector is the one of the verbs that are allowed with a selector.
	FieldSelector string `json:"fieldSelector,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Objects is the number of objects that lead to the seed, if the access for a verb depends on the graph.
	Objects *int `json:"objects,omitempty"`

	namespaced bool
	version    string
	kind       graph.Kind
}

// Title returns the row's resource and subresource, with the group only if full.
func (r Row) Title(full bool) string {
	if full {
		return resourceName(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Subresource)
	}
	return resourceName(schema.GroupResource{Resource: r.Resource}, r.Subresource)
}

// Only returns the objects that the row is restricted to; "" for all.
func (r Row) Only() string {
	switch {
	case r.Namespace == "":
		return r.Name
	case r.Name == "":
		return "in " + r.Namespace
	}
	return r.Namespace + "/" + r.Name
}

// Empty reports whether no verb is allowed.
func (r Row) Empty() bool {
	for _, access := range r.Verbs {
		if access != None {
			return false
		}
	}
	return true
}

const concurrentReviews = 16

// Matrix determines the access for every verb of every resource.
func (i *Inspector) Matrix(ctx context.Context, u User) (*Matrix, error) {
	who, err := u.info()
	if err != nil {
		return nil, err
	}
	all, err := i.served()
	if err != nil {
		return nil, err
	}
	identity := seedidentity.OfUser(who)
	m := &Matrix{User: who.Name, Groups: who.Groups, Identity: identity.String(), Rows: i.rowsOf(all, identity)}
	if u.Stack != "" {
		m.Identity = "stack " + u.Stack
		m.Namespace, _, _ = strings.Cut(u.Stack, "/")
	}
	if err := i.try(ctx, m, who); err != nil {
		return nil, err
	}
	i.count(m, identity.Seed)
	m.OtherBindings, err = i.elsewhere(ctx, who, m.Namespace)
	return m, err
}

// rowsOf returns a row for each served resource, followed by one for each rule that is restricted to some of its
// objects.
func (i *Inspector) rowsOf(all []served, who seedidentity.Identity) (rows []Row) {
	rules := i.authorizer.Rules()
	for _, s := range all {
		row := Row{Group: s.Group, Resource: s.Resource, Subresource: s.Subresource, Verbs: map[string]string{},
			namespaced: s.Namespaced, version: s.Version}
		for _, verb := range s.Verbs {
			row.Verbs[verb] = None
		}
		var some []authorizer.Rule
		for _, rule := range rules {
			grant := rule.For(who.Type)
			if rule.Group != s.Group || rule.Resource != s.Resource || s.Subresource != "" && !slices.Contains(grant.Subresources, s.Subresource) {
				continue
			}
			if rule.Namespace == "" && rule.Name == "" {
				row.give(grant, rule.Kind)
				if grant.Selected != 0 {
					row.FieldSelector, row.LabelSelector = grant.Selector.Of(who.Seed)
				}
			} else if grant.Free != 0 || grant.Graph != 0 || grant.Within != 0 {
				some = append(some, rule)
			}
		}
		rows = append(rows, row)
		for _, rule := range some {
			rows = append(rows, row.forSome(rule, rule.For(who.Type), who))
		}
	}
	return rows
}

// give sets the verbs that a rule grants.
func (r *Row) give(grant authorizer.Grant, kind graph.Kind) {
	for verb := range r.Verbs {
		switch {
		case grant.Free.Has(verb):
			r.Verbs[verb] = Free
		case grant.Selected.Has(verb) && r.Verbs[verb] != Free:
			r.Verbs[verb] = Selector
		case grant.Graph.Has(verb) && r.Verbs[verb] != Free:
			r.Verbs[verb], r.kind = Graph, kind
		case grant.Within.Has(verb) && r.Verbs[verb] == None:
			r.Verbs[verb] = Within
		}
	}
}

// forSome returns the row of a rule that is restricted to some objects. It allows more than the row for all objects.
func (r Row) forSome(rule authorizer.Rule, grant authorizer.Grant, who seedidentity.Identity) Row {
	r.Verbs = maps.Clone(r.Verbs)
	r.give(grant, rule.Kind)
	r.kind = 0 // objects are counted in the row for all
	rule = rule.OfSeed(who.Seed)
	r.Namespace, r.Name = rule.Namespace, rule.Name
	return r
}

// try asks the API server about every cell. If RBAC allows the request, the cell is RBAC; if the answer differs from
// the authorizer's, that is recorded as a disagreement.
func (i *Inspector) try(ctx context.Context, m *Matrix, who user.Info) error {
	type cell struct {
		row      *Row
		verb     string
		decision authorizer.Explanation
		expected bool
	}
	var cells []*cell
	for n := range m.Rows {
		for verb := range m.Rows[n].Verbs {
			cells = append(cells, &cell{row: &m.Rows[n], verb: verb})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReviews)
	for _, c := range cells {
		group.Go(func() (err error) {
			request := c.row.request(who, c.verb, m.Namespace)
			c.expected = i.authorizer.Explain(request).Allowed
			c.decision, err = i.review(ctx, request)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.Tried = len(cells)
	for _, c := range cells {
		switch {
		case c.decision.Allowed && strings.HasPrefix(c.decision.Reason, rbacReason):
			c.row.Verbs[c.verb] = RBAC
		case c.decision.Allowed != c.expected:
			m.Disagreements = append(m.Disagreements, fmt.Sprintf("%s %s %s: the rules say allowed: %t, the API server says allowed: %t (%s)",
				c.verb, c.row.Title(true), c.row.Only(), c.expected, c.decision.Allowed, c.decision.Reason))
		}
	}
	slices.Sort(m.Disagreements)
	return nil
}

// request returns the request for all objects of the row; for namespaced resources, in the given namespace.
func (r *Row) request(who user.Info, verb, namespace string) kubeauthorizer.AttributesRecord {
	request := kubeauthorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: r.Group, APIVersion: r.version, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
	}
	if r.Verbs[verb] == Selector {
		request.FieldSelectorRequirements, request.LabelSelectorRequirements, _ = parseSelectors(r.FieldSelector,
			r.LabelSelector)
	}
	switch {
	case !r.namespaced || r.Namespace != "":
	case r.Name != "":
		request.Namespace = "default" // the rule is for the name in every namespace
	default:
		request.Namespace = namespace
	}
	return request
}

// count counts the objects that lead to the seed, for the rows that depend on the graph.
func (i *Inspector) count(m *Matrix, seed string) {
	counts := map[graph.Kind]int{}
	for _, vertex := range i.graph.Snapshot().Vertices {
		if vertex.Kind == graph.KindSeed && vertex.Name == seed || i.graph.HasPath(vertex.Vertex, seed) {
			counts[vertex.Kind]++
		}
	}
	for n := range m.Rows {
		if row := &m.Rows[n]; row.kind != 0 {
			count := counts[row.kind]
			row.Objects = &count
		}
	}
}

// elsewhere returns bindings for the user that the table does not show: RoleBindings in other namespaces than that of
// the table, and if the table is for one namespace, ClusterRoleBindings.
func (i *Inspector) elsewhere(ctx context.Context, who user.Info, namespace string) (found []string, err error) {
	bindings, err := i.kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing RoleBindings: %w", err)
	}
	for _, b := range bindings.Items {
		if b.Namespace != namespace && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return isFor(s, b.Namespace, who) }) {
			found = append(found, fmt.Sprintf("in namespace %s what %s %s allows (RoleBinding %s)", b.Namespace, b.RoleRef.Kind,
				b.RoleRef.Name, b.Name))
		}
	}
	if namespace == "" {
		return found, nil
	}
	everywhere, err := i.kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	for _, b := range everywhere.Items {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind && isFor(s, "", who) }) {
			found = append(found, fmt.Sprintf("in all namespaces what ClusterRole %s allows (ClusterRoleBinding %s)", b.RoleRef.Name, b.Name))
		}
	}
	return found, nil
}

func isFor(s rbacv1.Subject, namespace string, who user.Info) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == who.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(who.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return serviceaccount.MatchesUsername(namespace, s.Name, who.GetName())
	}
	return false
}
