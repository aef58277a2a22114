package graph

import (
	"fmt"
	"testing"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkGraph measures the worst case for an index: all shoots are of one project, and use the same profiles,
// bindings and resources. A check is to take at most 1 µs however large the graph is, a change at most 100 µs (a
// deletion and an addition are two). The metric walk/check is how many times as long a plain depth-first walk takes for
// the same check.
func BenchmarkGraph(b *testing.B) {
	for _, size := range []benchLandscape{{1_000, 10}, {10_000, 100}, {100_000, 1_000}} {
		b.Run(fmt.Sprintf("%d-shoots-%d-seeds", size.shoots, size.seeds), func(b *testing.B) {
			objects := size.objects()
			g := New()
			for _, o := range objects {
				g.Set(o.owner, o.edges)
			}
			size.benchmarkChecks(b, g)
			size.benchmarkChanges(b, g, objects)
		})
	}
}

// benchmarkChecks checks, of each kind, the vertex with the most edges, with a seed that it has a path to and one that
// it has none to.
func (l benchLandscape) benchmarkChecks(b *testing.B, g *Graph) {
	next := map[Vertex][]Vertex{}
	for _, e := range g.Snapshot().Edges {
		next[e.From] = append(next[e.From], e.To)
	}
	largest := map[Kind]Vertex{KindSeed: seed(l.seed(0))}
	for v, to := range next {
		// Every seed reads the identity of the garden in kube-system: there is no miss for it.
		if v.Kind != KindSeed && v.Namespace != "kube-system" && len(to) > len(next[largest[v.Kind]]) {
			largest[v.Kind] = v
		}
	}
	for _, kind := range Kinds() {
		v := largest[kind]
		hit, miss := v, seed(l.seed(l.seeds-1)) // the seed that many other seeds have a path to
		for hit.Kind != KindSeed {
			hit = next[hit][0]
		}
		if walk(next, v, miss) {
			miss = seed(l.seed(1))
		}
		for _, c := range []struct {
			name string
			seed Vertex
			want bool
		}{{"hit", hit, true}, {"miss", miss, false}} {
			b.Run(fmt.Sprintf("check/%s/%s", kind, c.name), func(b *testing.B) {
				begin := time.Now()
				if walk(next, v, c.seed) != c.want {
					b.Fatalf("the walk from %s to %s does not return %v", v, c.seed, c.want)
				}
				walked := time.Since(begin)
				for b.Loop() {
					if g.HasPath(v, c.seed.Name) != c.want {
						b.Fatalf("HasPath(%s, %s) is not %v", v, c.seed.Name, c.want)
					}
				}
				b.ReportMetric(float64(walked)*float64(b.N)/float64(b.Elapsed()), "walk/check")
			})
		}
	}
}

// walk reports whether there is a path, by a plain depth-first walk.
func walk(next map[Vertex][]Vertex, from, goal Vertex) bool {
	seen := map[Vertex]bool{from: true}
	for todo := []Vertex{from}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v == goal {
			return true
		}
		for _, to := range next[v] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return false
}

// benchmarkChanges moves a shoot, and deletes and adds an object of each kind.
func (l benchLandscape) benchmarkChanges(b *testing.B, g *Graph, objects []benchObject) {
	there, elsewhere := benchObjectOf(l.shoot(0, l.seed(0))), benchObjectOf(l.shoot(0, l.seed(1)))
	b.Run("move/Shoot", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			to := []benchObject{elsewhere, there}[i%2]
			g.Set(to.owner, to.edges)
		}
	})
	measured := map[Kind]bool{}
	for _, o := range objects {
		if measured[o.owner.Kind] {
			continue
		}
		measured[o.owner.Kind] = true
		b.Run(fmt.Sprintf("delete-and-add/%s", o.owner.Kind), func(b *testing.B) {
			for b.Loop() {
				g.Delete(o.owner)
				g.Set(o.owner, o.edges)
			}
		})
	}
}

// benchLandscape has shoots on all seeds but the last tenth, which are ManagedSeeds whose own shoots run on the last
// seed: many seeds have a path to that one, and no object that shoots share has one.
type benchLandscape struct{ shoots, seeds int }

type benchObject struct {
	owner Vertex
	edges []Edge
}

func benchObjectOf(obj any) benchObject {
	owner, edges, _ := EdgesOf(obj, garden{})
	return benchObject{owner, edges}
}

func (benchLandscape) seed(i int) string { return fmt.Sprintf("seed-%04d", i) }

func (benchLandscape) shoot(i int, seed string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: meta("garden-dev", fmt.Sprintf("shoot-%06d", i))}
	shoot.Spec.SeedName, shoot.Status.SeedName = &seed, &seed
	kind := []string{"CloudProfile", "NamespacedCloudProfile"}[i%2]
	shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: kind, Name: "profile"}
	shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName = to("binding"), to("binding")
	shoot.Spec.ExposureClassName = to("internet")
	shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{resource("v1 ConfigMap shared"),
		resource("security.gardener.cloud/v1alpha1 WorkloadIdentity shared")}
	return shoot
}

// objects returns the objects with their edges. The first ones of each kind are those that shoots share.
func (l benchLandscape) objects() (all []benchObject) {
	add := func(obj any) { all = append(all, benchObjectOf(obj)) }
	last, used := l.seed(l.seeds-1), l.seeds-l.seeds/10
	add(&gardencorev1beta1.Project{ObjectMeta: meta("", "dev"),
		Spec: gardencorev1beta1.ProjectSpec{Namespace: to("garden-dev")}})
	add(&gardencorev1beta1.SecretBinding{ObjectMeta: meta("garden-dev", "binding"),
		SecretRef: corev1.SecretReference{Namespace: "garden-dev", Name: "shared"}})
	add(&securityv1alpha1.CredentialsBinding{ObjectMeta: meta("garden-dev", "binding"),
		CredentialsRef: ref("v1 Secret garden-dev/shared")})
	add(&gardencorev1.ControllerDeployment{ObjectMeta: meta("", "extension"), Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}}}})
	add(&corev1.ServiceAccount{ObjectMeta: meta("garden", "gardenlet-bootstrap-"+last),
		Secrets: []corev1.ObjectReference{{Name: "token"}}})
	request := Vertex{Kind: KindCertificateSigningRequest, Name: "request"}
	all = append(all, benchObject{request, []Edge{{request, seed(l.seed(0))}}})
	for i := range l.shoots {
		name := l.seed(i * 7919 % used)
		shoot := l.shoot(i, name)
		add(shoot)
		entry := &gardencorev1beta1.BackupEntry{ObjectMeta: meta("garden-dev", "shoot--dev--"+shoot.Name)}
		entry.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: shoot.Name}}
		entry.Spec.BucketName, entry.Spec.SeedName, entry.Status.SeedName = "bucket-"+name, &name, &name
		add(entry)
	}
	for i := range l.seeds {
		name := l.seed(i)
		add(&gardencorev1beta1.Seed{ObjectMeta: meta("", name)})
		add(&seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", name)})
		add(&gardencorev1beta1.BackupBucket{ObjectMeta: meta("", "bucket-"+name), Spec: gardencorev1beta1.BackupBucketSpec{
			SeedName: &name, CredentialsRef: to(ref("v1 Secret garden-dev/backup-" + name))}})
		add(&operationsv1alpha1.Bastion{ObjectMeta: meta("garden-dev", "bastion-"+name),
			Spec: operationsv1alpha1.BastionSpec{SeedName: &name}})
		if i < used {
			installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: meta("", "extension-"+name)}
			installation.Spec.SeedRef, installation.Spec.RegistrationRef.Name = &corev1.ObjectReference{Name: name}, "extension"
			installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: "extension"}
			add(installation)
			continue
		}
		managed := managedSeedOf("garden", to(seedmanagementv1alpha1.BootstrapServiceAccount), "", "")
		managed.Name, managed.Spec.Shoot.Name = name, name
		add(managed)
		add(&gardencorev1beta1.Shoot{ObjectMeta: meta("garden", name), Spec: gardencorev1beta1.ShootSpec{SeedName: &last}})
	}
	return all
}
