package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The users of testdata/project-roles.txt, in the order of its columns.
var projectUsers = []string{"owner", "admin", "viewer", "uam", "sam", "stranger"}

// specialVerbs are the verbs of Gardener and RBAC besides the usual ones.
var specialVerbs = []string{
	"manage-members", "modify-spec-tolerations-whitelist", "modify-spec-kubernetes", "modify-spec-machineimages",
	"modify-spec-providerconfig", "mark-self-hosted", "bind", "escalate", "impersonate",
}

// roleTable has what each user may do, by "where resource".
type roleTable map[string][]roleCell

type roleCell map[string]bool

func readRoleTable(t *testing.T) roleTable {
	t.Helper()
	data, err := os.ReadFile("testdata/project-roles.txt")
	must(t, err)
	table := roleTable{}
	for i, line := range strings.Split(string(data), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 2+len(projectUsers) {
			t.Fatalf("project-roles.txt:%d: %d columns, expected %d", i+1, len(fields), 2+len(projectUsers))
		}
		key := fields[0] + " " + fields[1]
		if table[key] != nil {
			t.Fatalf("project-roles.txt:%d: %s is there twice", i+1, key)
		}
		for _, field := range fields[2:] {
			cell := roleCell{}
			for word := range strings.SplitSeq(field, ",") {
				verbs := []string{word}
				switch word {
				case "rw":
					verbs = accessVerbs
				case "r":
					verbs = []string{"get", "list", "watch"}
				case "-":
					verbs = nil
				}
				for _, verb := range verbs {
					if !slices.Contains(accessVerbs, verb) && !slices.Contains(specialVerbs, verb) {
						t.Fatalf("project-roles.txt:%d: what is %q?", i+1, verb)
					}
					cell[verb] = true
				}
			}
			table[key] = append(table[key], cell)
		}
	}
	return table
}

// says reports whether a user may use a verb for a resource in a place, or everywhere.
func (r roleTable) says(where, resource string, user int, verb string) bool {
	for _, key := range []string{where + " " + resource, "all " + resource} {
		if cells := r[key]; cells != nil && cells[user][verb] {
			return true
		}
	}
	return false
}

// roleResource is a resource that the garden serves, or that the table names.
type roleResource struct {
	group, version, name string // name with the subresource
	namespaced           bool
	verbs                []string
}

func (r roleResource) String() string {
	return schema.GroupResource{Group: r.group, Resource: r.name}.String()
}

// roleResources returns all resources that the garden serves, and the others that the table names.
func roleResources(t *testing.T, table roleTable) []roleResource {
	t.Helper()
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	must(t, err)
	var all []roleResource
	known := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			resource := roleResource{gv.Group, gv.Version, r.Name, r.Namespaced, r.Verbs}
			if !known[resource.String()] { // the same rights in each version
				all = append(all, resource)
			}
			known[resource.String()] = true
		}
	}
	for key := range table {
		where, name, _ := strings.Cut(key, " ")
		if gr := schema.ParseGroupResource(name); !known[name] {
			if !strings.Contains(gr.Resource, "/") {
				t.Errorf("the garden does not serve %s", name)
			}
			known[name] = true
			all = append(all, roleResource{group: gr.Group, name: gr.Resource, namespaced: where != "all"})
		}
	}
	return all
}

// rolePass compares the garden's answers to all requests with the table.
type rolePass struct {
	table            roleTable
	project, other   string // Projects; their namespaces are "garden-" + name
	users            []*accessUser
	asked, requested atomic.Int64
	mu               sync.Mutex
	wrong            []string
}

func (p *rolePass) report(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// rolePlace is where a request goes to: the table's word, and the namespace and name that it stands for.
type rolePlace struct{ where, namespace, name string }

func (p *rolePass) places(r roleResource) []rolePlace {
	if r.namespaced {
		return []rolePlace{{"own", "garden-" + p.project, ""}, {"other", "garden-" + p.other, ""}, {"garden", "garden", ""}, {"all", "", ""}}
	}
	places := []rolePlace{{"all", "", ""}}
	switch strings.Split(r.name, "/")[0] {
	case "projects":
		places = append(places, rolePlace{"self", "", p.project}, rolePlace{"other", "", p.other})
	case "namespaces":
		places = append(places, rolePlace{"self", "", "garden-" + p.project}, rolePlace{"other", "", "garden-" + p.other})
	}
	return places
}

// check compares the garden's answers with the table, for every resource × place × verb × user.
func (p *rolePass) check(t *testing.T) {
	t.Helper()
	start := time.Now()
	work := make(chan func(context.Context), 16)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for ask := range work {
				ask(t.Context())
			}
		})
	}
	for _, r := range roleResources(t, p.table) {
		for user := range p.users {
			for _, place := range p.places(r) {
				work <- func(ctx context.Context) { p.review(ctx, user, r, place) }
				if place.where == "own" || place.where == "self" || place.where == "other" {
					work <- func(ctx context.Context) { p.request(ctx, user, r, place) }
				}
			}
		}
	}
	for key := range p.table {
		where, resource, _ := strings.Cut(key, " ")
		if namespace, name, ok := strings.Cut(where, "/"); ok {
			for user := range p.users {
				work <- func(ctx context.Context) {
					p.review(ctx, user, roleResource{name: resource}, rolePlace{where, namespace, name})
				}
			}
		}
	}
	close(work)
	group.Wait()
	t.Logf("%d reviews and %d requests in %s", p.asked.Load(), p.requested.Load(), time.Since(start).Round(time.Millisecond))
	slices.Sort(p.wrong)
	for _, wrong := range p.wrong[:min(len(p.wrong), 40)] {
		t.Error(wrong)
	}
	if len(p.wrong) > 0 {
		t.Errorf("%d answers are not those of project-roles.txt", len(p.wrong))
	}
}

// review asks with SelfSubjectAccessReviews, for all verbs.
func (p *rolePass) review(ctx context.Context, user int, r roleResource, place rolePlace) {
	resource, sub, _ := strings.Cut(r.name, "/")
	verbs := accessVerbs
	if strings.HasSuffix(r.group, ".gardener.cloud") || r.group == "" || r.group == "rbac.authorization.k8s.io" {
		verbs = slices.Concat(accessVerbs, specialVerbs)
	}
	for _, verb := range verbs {
		p.asked.Add(1)
		got, err := mayDo(ctx, p.users[user], authorizationv1.ResourceAttributes{
			Verb: verb, Group: r.group, Resource: resource, Subresource: sub, Namespace: place.namespace, Name: place.name,
		})
		want := p.table.says(place.where, r.String(), user, verb)
		if err != nil || got != want {
			p.report("%s: %s %s in %+v: %t, expected %t (%v)", projectUsers[user], verb, r, place, got, want, err)
		}
	}
}

// mayDo reports whether a user is authorized.
func mayDo(ctx context.Context, user *accessUser, attributes authorizationv1.ResourceAttributes) (bool, error) {
	allowed, _, err := user.May(ctx, attributes)
	return allowed, err
}

// request sends real requests that change nothing: for objects that do not exist, or without a valid body. A user
// without the right is refused with 403 before that is checked.
func (p *rolePass) request(ctx context.Context, user int, r roleResource, place rolePlace) {
	resource, sub, _ := strings.Cut(r.name, "/")
	for _, verb := range r.verbs {
		name := place.name
		if name == "" {
			name = "there-is-none"
		}
		if strings.Contains(verb, "delete") && place.name != "" || place.where != "own" &&
			(verb == "create" || verb == "list" || verb == "watch") && place.namespace == "" {
			continue // it would change something, or is no request for this object
		}
		path := "/apis/" + r.group + "/" + r.version
		if r.group == "" {
			path = "/api/" + r.version
		}
		if place.namespace != "" {
			path += "/namespaces/" + place.namespace
		}
		path += "/" + resource
		if sub != "" || slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
			path += "/" + name
		}
		if sub != "" {
			path += "/" + sub
		}
		method := map[string]string{"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}[verb]
		switch verb {
		case "get", "list":
			method = "GET"
		case "watch":
			method, path = "GET", path+"?watch=true&timeoutSeconds=1"
		case "deletecollection":
			path += "?dryRun=All&fieldSelector=metadata.name%3Dthere-is-none"
		default:
			path += "?dryRun=All"
		}
		p.requested.Add(1)
		a, err := p.users[user].Send(ctx, method, path, strings.NewReader("{}"), verb == "patch", verb == "watch")
		want := p.table.says(place.where, r.String(), user, verb)
		if err != nil || want == a.NoOpinion() || !want && a.Code != http.StatusForbidden {
			p.report("%s: %s %s in %+v, a real request: %s, expected %t (%v)", projectUsers[user], verb, r, place, a, want, err)
		}
	}
}

// TestProjectRoles makes all requests as each of the users, who have certificates.
func TestProjectRoles(t *testing.T) {
	t.Parallel()
	w := newProjectWorld(t, "roles")
	other := newProjectWorld(t, "other")
	pass := &rolePass{table: readRoleTable(t), project: w.name, other: other.name}
	for _, user := range projectUsers {
		pass.users = append(pass.users, w.users[user])
	}
	pass.check(t)
}
