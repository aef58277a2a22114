package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// What a user may do with a verb, from most to least.
const (
	AccessRBAC  = "rbac"  // RBAC allows it, for all objects
	AccessFree  = "free"  // SeedAuthorizer allows it at once
	AccessGraph = "graph" // SeedAuthorizer allows it for objects that lead to the seed
	AccessNone  = "none"
)

// AccessMatrix is everything that a user may do.
type AccessMatrix struct {
	User     string      `json:"user"`
	Groups   []string    `json:"groups"`
	Identity string      `json:"identity"`
	Rows     []AccessRow `json:"rows"`
	// Tried is how many requests the garden's API server was asked about.
	Tried int `json:"tried"`
	// Disagreements are answers of the API server that differ from the table; there should be none.
	Disagreements []string `json:"disagreements,omitempty"`
	// Elsewhere are RoleBindings that give the user more in single namespaces.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// AccessRow is what a user may do with the objects of one resource or subresource.
type AccessRow struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Namespace and Name restrict the row to some objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Verbs has every verb that the resource has.
	Verbs map[string]string `json:"verbs"`
	// Objects is how many objects there are that lead to the seed, where a verb asks the graph.
	Objects *int `json:"objects,omitempty"`

	namespaced bool
	version    string
	kind       graph.Kind
}

// Title is the row's resource and subresource, with the group only if full.
func (r AccessRow) Title(full bool) string {
	if full {
		return resourceName(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Subresource)
	}
	return resourceName(schema.GroupResource{Resource: r.Resource}, r.Subresource)
}

// Only says which objects the row is for, in words; "" for all.
func (r AccessRow) Only() string {
	switch {
	case r.Namespace == "":
		return r.Name
	case r.Name == "":
		return "in " + r.Namespace
	}
	return r.Namespace + "/" + r.Name
}

// Empty says that nothing is allowed.
func (r AccessRow) Empty() bool {
	for _, access := range r.Verbs {
		if access != AccessNone {
			return false
		}
	}
	return true
}

// concurrentReviews is how many questions the API server is asked at once.
const concurrentReviews = 16

// matrix tries every verb of every resource.
func (a *access) matrix(ctx context.Context, u AccessUser) (*AccessMatrix, error) {
	who, err := u.info()
	if err != nil {
		return nil, err
	}
	all, err := a.served()
	if err != nil {
		return nil, err
	}
	identity := identityOf(who)
	m := &AccessMatrix{User: who.Name, Groups: who.Groups, Identity: identity.String(), Rows: rowsOf(all, identity)}
	if err := a.try(ctx, m, who); err != nil {
		return nil, err
	}
	a.count(m, identity.Seed)
	m.Elsewhere, err = a.elsewhere(ctx, who)
	return m, err
}

// rowsOf is a row for everything that is served, and below it one for each rule that is for some of its objects.
func rowsOf(all []served, who seedidentity.Identity) (rows []AccessRow) {
	rules := authorizer.Rules()
	for _, s := range all {
		row := AccessRow{Group: s.Group, Resource: s.Resource, Subresource: s.Subresource, Verbs: map[string]string{}, namespaced: s.Namespaced, version: s.Version}
		for _, verb := range s.Verbs {
			row.Verbs[verb] = AccessNone
		}
		var some []authorizer.Rule
		for _, rule := range rules {
			grant := rule.For(who.Type)
			if rule.Group != s.Group || rule.Resource != s.Resource || s.Subresource != "" && !slices.Contains(grant.Subresources, s.Subresource) {
				continue
			}
			if rule.Namespace == "" && rule.Name == "" {
				row.give(grant, rule.Kind)
			} else if grant.Free != 0 || grant.Graph != 0 {
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

// give writes what a rule grants.
func (r *AccessRow) give(grant authorizer.Grant, kind graph.Kind) {
	for verb := range r.Verbs {
		switch {
		case grant.Free.Has(verb):
			r.Verbs[verb] = AccessFree
		case grant.Graph.Has(verb) && r.Verbs[verb] != AccessFree:
			r.Verbs[verb], r.kind = AccessGraph, kind
		}
	}
}

// forSome is the row of a rule that is for some objects only, which have what all have and more.
func (r AccessRow) forSome(rule authorizer.Rule, grant authorizer.Grant, who seedidentity.Identity) AccessRow {
	r.Verbs = maps.Clone(r.Verbs)
	r.give(grant, rule.Kind)
	r.kind = 0 // what the seed may touch is counted in the row for all
	r.Namespace, r.Name = fill(rule.Namespace, who.Seed), fill(rule.Name, who.Seed)
	return r
}

// fill puts the seed, and the ID of its gardenlet's bootstrap token, where a rule has holes for them.
func fill(pattern, seed string) string {
	id := sha256.Sum256([]byte("garden--" + seed))
	return strings.NewReplacer("<seed>", seed, "<token-id>", hex.EncodeToString(id[:3])).Replace(pattern)
}

// try asks the API server about every cell: where it allows because of RBAC, that counts; where it answers something
// else than the authorizer, that is worth to know.
func (a *access) try(ctx context.Context, m *AccessMatrix, who user.Info) error {
	type cell struct {
		row      *AccessRow
		verb     string
		decision AccessDecision
		expected bool
	}
	var cells []*cell
	for i := range m.Rows {
		for verb := range m.Rows[i].Verbs {
			cells = append(cells, &cell{row: &m.Rows[i], verb: verb})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReviews)
	for _, c := range cells {
		group.Go(func() (err error) {
			request := c.row.request(who, c.verb)
			c.expected = a.authorizer.Explain(request).Allowed()
			c.decision, err = a.review(ctx, request)
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
			c.row.Verbs[c.verb] = AccessRBAC
		case c.decision.Allowed != c.expected:
			m.Disagreements = append(m.Disagreements, fmt.Sprintf("%s %s %s: the rules say allowed: %t, the API server says allowed: %t (%s)",
				c.verb, c.row.Title(true), c.row.Only(), c.expected, c.decision.Allowed, c.decision.Reason))
		}
	}
	slices.Sort(m.Disagreements)
	return nil
}

func (r *AccessRow) request(who user.Info, verb string) kubeauthorizer.AttributesRecord {
	request := kubeauthorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: r.Group, APIVersion: r.version, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
	}
	if r.Namespace == "" && r.Name != "" && r.namespaced {
		request.Namespace = "default" // the rule is for the name in every namespace
	}
	return request
}

// count counts the objects that lead to the seed, for the rows that ask the graph.
func (a *access) count(m *AccessMatrix, seed string) {
	counts := map[graph.Kind]int{}
	for _, vertex := range a.graph.Snapshot().Vertices {
		if vertex.Kind == graph.KindSeed && vertex.Name == seed || a.graph.HasPath(vertex.Vertex, seed) {
			counts[vertex.Kind]++
		}
	}
	for i := range m.Rows {
		if row := &m.Rows[i]; row.kind != 0 {
			n := counts[row.kind]
			row.Objects = &n
		}
	}
}

// elsewhere finds RoleBindings for the user: the table is for requests beyond a single namespace.
func (a *access) elsewhere(ctx context.Context, who user.Info) (found []string, err error) {
	bindings, err := a.kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing RoleBindings: %w", err)
	}
	for _, b := range bindings.Items {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return isFor(s, b.Namespace, who) }) {
			found = append(found, fmt.Sprintf("in namespace %s what %s %s allows (RoleBinding %s)", b.Namespace, b.RoleRef.Kind, b.RoleRef.Name, b.Name))
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
