package graph

import (
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edgeCase has the edges that an object causes, one on each line, in any order.
type edgeCase struct {
	name  string
	obj   any
	ctx   Objects
	owner string
	edges string
}

func runEdgeCases(t *testing.T, cases []edgeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = garden{}
			}
			owner, edges, ok := EdgesOf(c.obj, c.ctx)
			if !ok || owner.String() != c.owner {
				t.Errorf("owner %q, %v, want %q", owner, ok, c.owner)
			}
			var got []string
			for _, e := range edges {
				got = append(got, e.String())
			}
			want := lines(c.edges)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("edges\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// garden has the existing Seeds. Its time is noon.
type garden map[string]*gardencorev1beta1.Seed

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func (g garden) Seed(name string) *gardencorev1beta1.Seed { return g[name] }
func (garden) Now() time.Time                             { return noon }

// gardenWith returns a garden with one Seed and the expiration of its client certificate.
func gardenWith(name string, expires time.Time) garden {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !expires.IsZero() {
		seed.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: expires}
	}
	return garden{name: seed}
}

func to[T any](v T) *T { return &v }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// ref parses a reference such as "v1 Secret garden/backup".
func ref(text string) corev1.ObjectReference {
	fields := strings.Fields(text)
	namespace, name, _ := strings.Cut(fields[2], "/")
	return corev1.ObjectReference{APIVersion: fields[0], Kind: fields[1], Namespace: namespace, Name: name}
}

// resource parses a reference such as "v1 Secret backup", for spec.resources.
func resource(text string) gardencorev1beta1.NamedResourceReference {
	return gardencorev1beta1.NamedResourceReference{Name: "any", ResourceRef: *crossRef(text)}
}

func crossRef(text string) *autoscalingv1.CrossVersionObjectReference {
	fields := strings.Fields(text)
	return &autoscalingv1.CrossVersionObjectReference{APIVersion: fields[0], Kind: fields[1], Name: fields[2]}
}

func TestNoEdgesOfOthers(t *testing.T) {
	for _, obj := range []any{nil, &corev1.Secret{}, &corev1.Namespace{}, &gardencorev1beta1.CloudProfile{}, "text"} {
		if owner, edges, ok := EdgesOf(obj, garden{}); ok || edges != nil || owner != (Vertex{}) {
			t.Errorf("%T: %v %v %v", obj, owner, edges, ok)
		}
	}
}

func TestDependents(t *testing.T) {
	got := Dependents(&gardencorev1beta1.Seed{ObjectMeta: meta("", "local")})
	if len(got) != 2 || got[0].String() != "ManagedSeed garden/local" || got[1].String() != "Gardenlet garden/local" {
		t.Errorf("of a Seed: %v", got)
	}
	if got := Dependents(&gardencorev1beta1.Shoot{ObjectMeta: meta("garden", "local")}); got != nil {
		t.Errorf("of a Shoot: %v", got)
	}
}
