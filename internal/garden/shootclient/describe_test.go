package shootclient

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestDescribe(t *testing.T) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "garden-dev"}}
	at("Processing", 40)(shoot)
	shoot.Status.LastOperation.Description = "Waiting until Kubernetes API server rolled out, " +
		"Waiting until Shoot network plugin has been reconciled"
	shoot.Status.Conditions = []corev1beta1.Condition{{Type: "APIServerAvailable", Status: "True"}}
	shoot.Status.Constraints = []corev1beta1.Condition{{Type: "HibernationPossible", Status: "True"}}
	d := describe(shoot, "dev")
	if len(d.Operation.Tasks) != 2 || d.Operation.Text != "Create Processing (40%)" || d.Operation.Message != "" ||
		len(d.Conditions) != 2 {
		t.Errorf("%+v", d)
	}
	shoot.Status.LastOperation.Description = "Reconciliation of Shoot cluster initialized."
	if d := describe(shoot, "dev"); d.Operation.Tasks != nil ||
		d.Operation.Message != shoot.Status.LastOperation.Description {
		t.Errorf("%+v", d.Operation)
	}
	if d := describe(&corev1beta1.Shoot{}, "dev"); d.Operation.Text != "Pending" ||
		!strings.Contains(d.Operation.Message, "scheduler") {
		t.Errorf("%+v", d.Operation)
	}
}

// TestRotations: each phase says what to do next.
func TestRotations(t *testing.T) {
	early, late := ptr.To(metav1.NewTime(time.Unix(1, 0))), ptr.To(metav1.NewTime(time.Unix(2, 0)))
	type rotation = corev1beta1.ShootCredentialsRotation
	for name, test := range map[string]struct {
		rotation    rotation
		phase, next string
	}{
		"prepared": {rotation{CertificateAuthorities: &corev1beta1.CARotation{Phase: "Prepared"}},
			"Prepared", "gardenlite rotate ca dev/x --complete, once"},
		"preparing": {rotation{ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: "Preparing"}},
			"Preparing", "by itself"},
		"waits for workers": {rotation{CertificateAuthorities: &corev1beta1.CARotation{
			Phase:                  "WaitingForWorkersRollout",
			PendingWorkersRollouts: []corev1beta1.PendingWorkersRollout{{Name: "a"}, {Name: "b"}}}},
			"WaitingForWorkersRollout",
			"kubectl -n garden-dev annotate shoot x gardener.cloud/operation=rotate-rollout-workers=a,b"},
		"etcd": {rotation{ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: "Prepared"}},
			"Prepared", "gardenlite rotate credentials dev/x --complete"},
		"etcd in one step": {rotation{ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{
			Phase: "Prepared", AutoCompleteAfterPrepared: ptr.To(true)}}, "Prepared", "by itself"},
		"ssh goes on": {rotation{SSHKeypair: &corev1beta1.ShootSSHKeypairRotation{
			LastInitiationTime: late, LastCompletionTime: early}}, "Rotating", "by itself"},
		"ssh is done": {rotation{SSHKeypair: &corev1beta1.ShootSSHKeypairRotation{
			LastInitiationTime: early, LastCompletionTime: late}}, "Completed", ""},
		"observability": {rotation{Observability: &corev1beta1.ObservabilityRotation{LastInitiationTime: early}},
			"Rotating", "by itself"},
	} {
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "garden-dev"}}
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &test.rotation}
		if got := rotationsOf(shoot, "dev"); len(got) != 1 || got[0].Phase != test.phase ||
			!strings.Contains(got[0].Next, test.next) || (got[0].Next == "") != (test.next == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOperations: hibernation is set, and what has not failed is not retried, nor moved to where it is.
func TestOperations(t *testing.T) {
	c := garden(t, nil)
	ctx := t.Context()
	shoot, _, err := c.Create(ctx, Spec{Key: key, Seed: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, enabled := range []bool{true, true, false} {
		if err := c.Hibernate(ctx, key, enabled); err != nil {
			t.Fatal(err)
		}
		if shoot, err = c.Shoot(ctx, key); err != nil || *shoot.Spec.Hibernation.Enabled != enabled {
			t.Errorf("%v: %v", shoot.Spec.Hibernation, err)
		}
	}
	if err := c.Retry(ctx, key); err == nil || !strings.Contains(err.Error(), "has not failed (Pending)") {
		t.Error(err)
	}
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Failed"}
	if err := c.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.Retry(ctx, key); err != nil {
		t.Error(err)
	}
	if shoot, err = c.Shoot(ctx, key); err != nil || shoot.Annotations["gardener.cloud/operation"] != "retry" {
		t.Errorf("%v, %v", shoot.Annotations, err)
	}
	if err := c.Migrate(ctx, key, "local"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Error(err)
	}
	for _, err := range []error{c.Hibernate(ctx, Key{"dev", "none"}, true), c.Retry(ctx, Key{"dev", "none"}),
		c.Migrate(ctx, Key{"dev", "none"}, "x")} {
		if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}
