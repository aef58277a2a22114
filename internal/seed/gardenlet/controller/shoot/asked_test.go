package shoot

import (
	"context"
	"strings"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/node"
)

// lateReader calls a function once after it has read.
type lateReader struct {
	client.Reader
	then func()
}

func (l *lateReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, obj, opts...)
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return err
}

func annotated(operations string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Generation++
		s.Annotations = map[string]string{"gardener.cloud/operation": operations}
	}
}

// expectRotated expects that the SSH key pair has been rotated since it was this one, and that nothing is asked for any more.
func (w *world) expectRotated(before string) {
	w.Helper()
	if now := w.secrets(); now["ssh-keypair"] == before || now["ssh-keypair.old"] != before {
		w.Errorf("the SSH key pair %q is not rotated: %q, before that %q", before, now["ssh-keypair"], now["ssh-keypair.old"])
	}
	if shoot := w.shoot(); len(operations(shoot)) > 0 || sshRotates(shoot) {
		w.Errorf("the rotation goes on: %v", shoot.Annotations)
	}
}

// TestAskedMeanwhile: what is asked for in the moment in which another operation begins is not lost.
func TestAskedMeanwhile(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	before := w.secrets()["ssh-keypair"]
	w.change(annotated("rotate-observability-credentials"))
	w.reconciler.GardenReader = &lateReader{w.garden, func() { w.change(annotated("rotate-observability-credentials;rotate-ssh-keypair")) }}
	w.settle()
	w.expectRotated(before)
}

// TestTake: of what is asked for, only what has begun is taken.
func TestTake(t *testing.T) {
	w := newWorld(t, aShoot(annotated("rotate-observability-credentials")), aSeed())
	read := w.shoot()
	w.change(annotated("rotate-ssh-keypair;rotate-observability-credentials"))
	if err := w.reconciler.removeOperations(t.Context(), read, []string{"rotate-observability-credentials"}); err != nil {
		t.Fatal(err)
	}
	if left := w.shoot().Annotations["gardener.cloud/operation"]; left != "rotate-ssh-keypair" {
		t.Errorf("left is %q", left)
	}
}

// TestAskedInMigration: what is asked for while a Shoot moves begins on the other seed.
func TestAskedInMigration(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	before := w.secrets()["ssh-keypair"]
	w.change(annotated("rotate-ssh-keypair"))
	w.moves("b")
	w.seed = fake.NewClientBuilder().WithScheme(w.seed.Scheme()).WithStatusSubresource(
		w.seedStatuses()...).WithInterceptorFuncs(w.watched("seed")).Build()
	w.restart()
	w.reconciler.SeedName = "b"
	w.settle()
	w.expectRotated(before)
}

// TestRotationWaitsForNodes: nodes that have not applied their current configuration are named, and the key pair is rotated
// when they have.
func TestRotationWaitsForNodes(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	before := w.secrets()["ssh-keypair"]
	worker := get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{})
	secret := get(w, w.inside, node.SecretNamespace, *worker.Spec.Pools[0].NodeAgentSecretName, &corev1.Secret{})
	late := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "late", Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret.Name}}}
	if err := w.inside.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	w.change(annotated("rotate-ssh-keypair"))
	for range 3 {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.simulate()
	}
	shoot := w.shoot()
	if shoot.Annotations["gardener.cloud/operation"] != "rotate-ssh-keypair" || sshRotates(shoot) || w.secrets()["ssh-keypair"] != before {
		t.Errorf("the rotation has begun: %v, %+v", shoot.Annotations, shoot.Status.Credentials)
	}
	named := false
	for _, told := range w.told {
		named = named || strings.Contains(told.Description, "when these nodes have applied their current configuration: late")
	}
	if !named {
		t.Errorf("no message names the node: %+v", w.told)
	}
	secret = get(w, w.inside, node.SecretNamespace, secret.Name, secret)
	late.Annotations = map[string]string{node.AnnotationChecksum: secret.Annotations[node.AnnotationChecksumSecret]}
	if err := w.inside.Update(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	for range 60 { // with the new key pair there is another configuration, which the node applies
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.simulate()
		current := get(w, w.inside, node.SecretNamespace, secret.Name, &corev1.Secret{})
		late.Annotations[node.AnnotationChecksum] = current.Annotations[node.AnnotationChecksumSecret]
		if err := w.inside.Update(t.Context(), late); err != nil {
			t.Fatal(err)
		}
	}
	w.expectRotated(before)
}

// TestOldKeyFirst: while the keys in the project are written, the key before is always in one of the Secrets.
func TestOldKeyFirst(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	for range 5 { // the order was one of chance
		var wrote []string
		w.before = func(cluster, _ string, obj client.Object) error {
			if _, is := obj.(*corev1.Secret); is && cluster == "garden" && strings.Contains(obj.GetName(), ".ssh-keypair") {
				wrote = append(wrote, obj.GetName())
			}
			return nil
		}
		w.requestOperation("rotate-ssh-keypair")
		w.before = nil
		if len(wrote) != 2 || wrote[0] != "y.ssh-keypair.old" || wrote[1] != "y.ssh-keypair" {
			t.Fatalf("written: %v", wrote)
		}
	}
}
