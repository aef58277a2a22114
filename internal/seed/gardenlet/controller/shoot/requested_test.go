package shoot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/node"
)

// lateReader calls a function once, after its first read.
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

// expectRotated expects that the SSH key pair has been rotated since the given one, and that nothing is requested any
// more.
func (w *world) expectRotated(before string) {
	w.Helper()
	if now := w.secrets(); now["ssh-keypair"] == before || now["ssh-keypair.old"] != before {
		w.Errorf("the SSH key pair %q is not rotated: %q, before that %q", before, now["ssh-keypair"], now["ssh-keypair.old"])
	}
	if shoot := w.shoot(); len(operations(shoot)) > 0 || sshRotates(shoot) {
		w.Errorf("the rotation goes on: %v", shoot.Annotations)
	}
}

// TestAskedMeanwhile checks that a request is not lost if it is made at the moment when another operation begins.
func TestAskedMeanwhile(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	before := w.secrets()["ssh-keypair"]
	w.change(annotated("rotate-observability-credentials"))
	w.reconciler.GardenReader = &lateReader{w.garden, func() { w.change(annotated("rotate-observability-credentials;rotate-ssh-keypair")) }}
	w.settle()
	w.expectRotated(before)
}

// TestTake checks that only operations that have begun are removed from the annotation.
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

// TestAskedInMigration checks that an operation which is requested during a migration begins on the other seed.
func TestAskedInMigration(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	before := w.secrets()["ssh-keypair"]
	w.change(annotated("rotate-ssh-keypair"))
	w.moves("b")
	w.onSeed("b")
	w.settle()
	w.expectRotated(before)
}

// TestRotationWaitsForNodes checks that nodes which have not applied their current configuration are named, and that
// the key pair is rotated when they have.
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
	w.expectEvent("RotationPostponed", "late")
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

// expectEvent expects an event with all these texts among the events that were not read yet.
func (w *world) expectEvent(texts ...string) {
	w.Helper()
	var all []string
	for len(w.events.Events) > 0 {
		event := <-w.events.Events
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(event, text) }) {
			return
		}
		all = append(all, event)
	}
	w.Errorf("no event has %q: %q", texts, all)
}

// TestAskedWhileRotating checks that a rotation in progress does not begin again, and that an event says so.
func TestAskedWhileRotating(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	secret := *get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools[0].NodeAgentSecretName
	applied := get(w, w.inside, node.SecretNamespace, secret, &corev1.Secret{}).Annotations[node.AnnotationChecksumSecret]
	slow := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "slow",
		Labels:      map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret},
		Annotations: map[string]string{node.AnnotationChecksum: applied}}}
	if err := w.inside.Create(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	var during string
	for range 2 { // the second time, the node has not applied the new key yet
		w.change(annotated("rotate-ssh-keypair"))
		w.clock.Step(time.Minute)
		for range 20 {
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.simulate()
		}
		if now := w.secrets()["ssh-keypair"]; during == "" {
			during = now
		} else if now != during {
			t.Error("the key pair is rotated once more")
		}
	}
	if shoot := w.shoot(); len(operations(shoot)) > 0 || !sshRotates(shoot) {
		t.Errorf("asked for is %v", operations(shoot))
	}
	w.expectEvent("RotationInProgress")
}

// TestOldKeyFirst checks that the old key is written first, in the seed and in the project, so that it is always in one
// of the Secrets.
func TestOldKeyFirst(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	for range 5 { // the order used to be random
		wrote := map[string][]string{}
		w.before = func(cluster, _ string, obj client.Object) error {
			if _, is := obj.(*corev1.Secret); is && strings.Contains(obj.GetName(), "ssh-keypair") {
				wrote[cluster] = append(wrote[cluster], obj.GetName())
			}
			return nil
		}
		w.requestOperation("rotate-ssh-keypair")
		w.before = nil
		if !slices.Equal(wrote["seed"], []string{"ssh-keypair.old", "ssh-keypair"}) ||
			!slices.Equal(wrote["garden"], []string{"y.ssh-keypair.old", "y.ssh-keypair"}) {
			t.Fatalf("written: %v", wrote)
		}
	}
}

// TestSSHAccess checks that without SSH access there is no key pair and the SSH servers of the machines are stopped,
// and that SSH access brings a new key pair.
func TestSSHAccess(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	before := w.secrets()["ssh-keypair"]
	for _, enabled := range []bool{false, true} {
		w.requestOperation("", func(s *corev1beta1.Shoot) {
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{Enabled: enabled}}
		})
		configs := &extensionsv1alpha1.OperatingSystemConfigList{}
		if err := w.seed.List(t.Context(), configs, client.InNamespace(id)); err != nil {
			t.Fatal(err)
		}
		for _, config := range configs.Items {
			at := slices.IndexFunc(config.Spec.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == node.UnitSSH })
			if at < 0 {
				if config.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
					t.Errorf("%s says nothing of the SSH server", config.Name)
				}
				continue
			}
			if unit := config.Spec.Units[at]; *unit.Enable != enabled || (*unit.Command == extensionsv1alpha1.CommandStart) != enabled {
				t.Errorf("SSH access is %t, the unit is enabled %t, and to %s", enabled, *unit.Enable, *unit.Command)
			}
		}
		inSeed := w.secrets()["ssh-keypair"]
		inProject := get(w, w.garden, key.Namespace, "y.ssh-keypair", &corev1.Secret{}).Name
		if (inSeed != "") != enabled || (inProject != "") != enabled || inSeed == before {
			t.Errorf("SSH access is %t, the key pair in the seed is %q, that in the project %q", enabled, inSeed, inProject)
		}
	}
}
