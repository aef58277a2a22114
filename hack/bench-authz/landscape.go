package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// landscape makes the objects of a landscape: one CloudProfile; a project with 10,000 shoots (or a half of them all) and
// many with ten; a credentials binding a project; a backup bucket a seed and an entry a shoot; every tenth seed on a
// shoot on the first seed. The last seed is there, but nothing but what belongs to it reaches it.
type landscape struct {
	shoots, seeds int
}

const shootsOfProject = 10

func (l landscape) big() int { return min(10_000, l.shoots/2) }

func (l landscape) project(i int) string {
	if i < l.big() {
		return "big"
	}
	return fmt.Sprintf("p%06d", i/shootsOfProject)
}

func (l landscape) namespace(i int) string { return "garden-" + l.project(i) }
func (l landscape) shootName(i int) string { return fmt.Sprintf("shoot-%06d", i) }
func (l landscape) seedName(i int) string  { return fmt.Sprintf("seed-%04d", i) }
func (l landscape) seedOf(i int) int       { return int(uint64(i)*2654435761%4294967296) % (l.seeds - 1) }

func (l landscape) shoot(i, seed int) *gardencorev1beta1.Shoot {
	seedName := l.seedName(seed)
	binding := "credentials"
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace(i), Name: l.shootName(i)},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			CredentialsBindingName: &binding,
			SeedName:               &seedName,
		},
		Status: gardencorev1beta1.ShootStatus{SeedName: &seedName},
	}
}

// objects visits every object.
func (l landscape) objects(visit func(any)) {
	last := ""
	for i := range l.shoots {
		visit(l.shoot(i, l.seedOf(i)))
		if project := l.project(i); project != last {
			last = project
			l.projectObjects(project, visit)
		}
		seedName := l.seedName(l.seedOf(i))
		visit(&gardencorev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: l.namespace(i), Name: "shoot--" + l.project(i) + "--" + l.shootName(i),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: l.shootName(i)}},
			},
			Spec:   gardencorev1beta1.BackupEntrySpec{BucketName: "bucket-" + seedName, SeedName: &seedName},
			Status: gardencorev1beta1.BackupEntryStatus{SeedName: &seedName},
		})
	}
	for i := range l.seeds {
		l.seedObjects(i, visit)
	}
}

func (l landscape) projectObjects(project string, visit func(any)) {
	namespace := "garden-" + project
	visit(&gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: project}, Spec: gardencorev1beta1.ProjectSpec{Namespace: &namespace}})
	visit(&securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "credentials"},
	})
}

func (l landscape) seedObjects(i int, visit func(any)) {
	name := l.seedName(i)
	visit(&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}})
	visit(&gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-" + name}, Spec: gardencorev1beta1.BackupBucketSpec{SeedName: &name}})
	if i%10 == 9 {
		first := l.seedName(0)
		visit(&seedmanagementv1alpha1.ManagedSeed{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
			Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: name}},
		})
		visit(&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Spec: gardencorev1beta1.ShootSpec{SeedName: &first}})
	}
}

// notLooked says that no Seed is there, and what time it is.
type notLooked struct{}

func (notLooked) Seed(string) *gardencorev1beta1.Seed { return nil }
func (notLooked) Now() time.Time                      { return time.Time{} }

// graph makes the graph of the landscape.
func (l landscape) graph() *graph.Graph {
	g := graph.New()
	l.objects(func(obj any) {
		owner, edges, _ := graph.EdgesOf(obj, notLooked{})
		g.Set(owner, edges)
	})
	return g
}

// query is a path check, with strings of its own as a request has them.
type query struct {
	from graph.Vertex
	seed string
}

// queries returns random ones: a shoot or one of what belongs to it, and its seed or another.
func (l landscape) queries(n int, hit bool) []query {
	r := rand.New(rand.NewPCG(1, 1))
	all := make([]query, n)
	for at := range all {
		i := r.IntN(l.shoots)
		kind, name := graph.KindShoot, l.shootName(i)
		switch r.IntN(3) {
		case 0:
			kind, name = graph.KindSecret, name+".ssh-keypair"
		case 1:
			kind, name = graph.KindConfigMap, name+".ca-kubelet"
		}
		seed := l.seeds - 1
		if hit {
			seed = l.seedOf(i)
		}
		all[at] = query{graph.Vertex{Kind: kind, Namespace: l.namespace(i), Name: name}, l.seedName(seed)}
	}
	return all
}

func (l landscape) oneOfShoot(kind graph.Kind, suffix string, hit bool) []query {
	q := l.one(kind, l.shootName(0)+suffix, hit)
	q[0].from.Namespace = l.namespace(0)
	return q
}

func (l landscape) one(kind graph.Kind, name string, hit bool) []query {
	seed := l.seeds - 1
	if hit {
		seed = l.seedOf(0)
	}
	return []query{{graph.Vertex{Kind: kind, Name: name}, l.seedName(seed)}}
}
