package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
)

// right is what a rule of a role allows, taken to pieces.
type right struct{ role, group, resource, name, verb string }

func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		resource += "." + r.group
	}
	if r.name != "" {
		resource += " " + r.name
	}
	return r.role + ": " + r.verb + " " + resource
}

// audit is what the audit log of an API server says: the rights that were used, and what was forbidden to whom.
type audit struct {
	used      map[right]bool
	forbidden map[string][]string
}

// allowedBy finds the role in RBAC's reason for allowing a request; before it, the namespace of the role if it has one.
var allowedBy = regexp.MustCompile(`^RBAC: allowed by (?:ClusterRoleBinding|RoleBinding) "[^"/]*(?:/([^"]*))?" of (?:ClusterRole|Role) "(.*)" to (User|Group) `)

// readAudit reads an audit log that may still be written to.
func readAudit(t *testing.T, file string) *audit {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	a := &audit{used: map[right]bool{}, forbidden: map[string][]string{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the last line, half written
		}
		if event.Level != auditv1.LevelMetadata || event.RequestObject != nil || event.ResponseObject != nil {
			t.Fatalf("the audit log has more than metadata: %s", lines.Text())
		}
		a.add(&event)
	}
	must(t, lines.Err())
	return a
}

func (a *audit) add(event *auditv1.Event) {
	user := event.User.Username
	if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
		a.forbidden[user] = append(a.forbidden[user], event.Verb+" "+event.RequestURI+": "+event.ResponseStatus.Message)
	}
	match := allowedBy.FindStringSubmatch(event.Annotations["authorization.k8s.io/reason"])
	if match == nil || event.ObjectRef == nil {
		return
	}
	role := match[2]
	if namespace := match[1]; namespace != "" {
		role = namespace + "/" + role
	}
	if match[3] == "Group" {
		role = user // what everybody may do, its own role must still give: everybody's may be taken away
	}
	r := right{role: role, group: event.ObjectRef.APIGroup, resource: event.ObjectRef.Resource, verb: event.Verb}
	if event.ObjectRef.Subresource != "" {
		r.resource += "/" + event.ObjectRef.Subresource
	}
	a.used[r] = true
	r.name = event.ObjectRef.Name
	a.used[r] = true
}

// granted are the rights of the roles of a component, which are named alike in all namespaces.
func granted(t *testing.T, client kubernetes.Interface, role string) (all []right) {
	t.Helper()
	note := func(name string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, object := range orEvery(rule.ResourceNames) {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							all = append(all, right{name, group, resource, object, verb})
						}
					}
				}
			}
		}
	}
	clusterRole, err := client.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
	must(t, err)
	note(role, clusterRole.Rules)
	roles, err := client.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + role})
	must(t, err)
	for _, r := range roles.Items {
		note(r.Namespace+"/"+role, r.Rules)
	}
	return all
}

// orEvery has one empty name where a rule is for all names.
func orEvery(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// unused are the rights that the log does not show in use. What is watched may be listed as well: caches do so where the
// API server refuses to stream its first state.
func (a *audit) unused(rights []right) (unused []string) {
	for _, r := range rights {
		watched := r
		watched.verb = "watch"
		if !a.used[r] && !(r.verb == "list" && a.used[watched]) {
			unused = append(unused, r.String())
		}
	}
	slices.SortFunc(unused, strings.Compare)
	return unused
}
