package leastprivilege

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// The users of the components that have roles.
const (
	ControllerManager = "gardener.cloud:system:controller-manager"
	Scheduler         = "gardener.cloud:system:scheduler"
	Admission         = "gardener.cloud:system:admission-controller"
	GardenletInSeed   = "gardener.cloud:system:gardenlet"
	Provider          = "extensions.gardener.cloud:provider-local"
	ControlPlanes     = "gardenlite:control-planes"
	// Bootstrapper stands for every user with a bootstrap token.
	Bootstrapper = "system:bootstrap:*"
)

// Component is a user in a cluster, garden or seed.
type Component struct{ Cluster, User string }

// Components returns all components that have roles, except the resource-manager: it applies the content of
// ManagedResources, for which it has all rights.
func Components() []Component {
	return []Component{
		{"garden", ControllerManager}, {"garden", Scheduler}, {"garden", Admission}, {"garden", Bootstrapper},
		{"seed", GardenletInSeed}, {"seed", Provider}, {"seed", ControlPlanes},
	}
}

// Request is a request of a component. A namespace or a name that no role mentions is Any.
type Request struct {
	Component
	Verb, Group, Resource, Subresource, Namespace, Name string
}

// Any stands for a namespace or a name that no role mentions.
const Any = "*"

// namespaces and names are those that roles mention.
var (
	namespaces = []string{"garden", "gardener-system-seed-lease", "kube-system"}
	names      = []string{"cluster-identity", "gardenlet-kubeconfig", "kube-apiserver", "kube-controller-manager"}
)

// FromAudit returns the request of an audit event, and false if it is not a component's request for a resource.
func FromAudit(cluster string, event *auditv1.Event) (Request, bool) {
	ref, user := event.ObjectRef, event.User.Username
	if strings.HasPrefix(user, "system:bootstrap:") {
		user = Bootstrapper
	}
	c := Component{Cluster: cluster, User: user}
	if ref == nil || ref.Resource == "" || !slices.Contains(Components(), c) {
		return Request{}, false
	}
	return Request{
		Component: c, Verb: event.Verb, Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource,
		Namespace: orAny(ref.Namespace, namespaces), Name: orAny(ref.Name, names),
	}, true
}

func orAny(value string, known []string) string {
	if value == "" || slices.Contains(known, value) {
		return value
	}
	return Any
}

// String returns the request as a line of the recording.
func (r Request) String() string {
	return strings.Join([]string{r.Cluster, r.User, r.Verb, r.resource(), cmp.Or(r.Namespace, none), cmp.Or(r.Name, none)}, " ")
}

// resource returns the resource as kubectl writes it, such as deployments.apps/scale.
func (r Request) resource() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return resource
}

const none = "-"

//go:embed requests.txt
var recording string

// Recorded returns the requests of the recording.
func Recorded() (all []Request, err error) {
	for line := range strings.Lines(recording) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parse(line)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func parse(line string) (Request, error) {
	f := strings.Fields(line)
	if len(f) != 6 {
		return Request{}, fmt.Errorf("a recorded request has six columns, %q has not: record them again", line)
	}
	resource, subresource, _ := strings.Cut(f[3], "/")
	resource, group, _ := strings.Cut(resource, ".")
	r := Request{Component: Component{f[0], f[1]}, Verb: f[2], Group: group, Resource: resource, Subresource: subresource,
		Namespace: f[4], Name: f[5]}
	for _, value := range []*string{&r.Namespace, &r.Name} {
		if *value == none {
			*value = ""
		}
	}
	return r, nil
}

// Record returns the text of a recording of requests.
func Record(requests []Request) string {
	lines := []string{}
	for _, r := range requests {
		lines = append(lines, r.String()+"\n")
	}
	slices.Sort(lines)
	return "# Recorded by TestLeastPrivilege of package e2e: cluster, user, verb, resource, namespace, name.\n" +
		strings.Join(slices.Compact(lines), "")
}
