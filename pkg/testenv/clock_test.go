package testenv_test

import (
	"testing"
	"time"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// publicKey is of no private key that anyone has kept.
const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3VfYBDSkmgIgOQx7SWpTCGeTO8d1RUaXVqOqVZ6w5o test"

// TestClock: a Bastion that lives for days is gone at once, by the clock of the landscape.
func TestClock(t *testing.T) {
	expectClosed(t)
	env := testenv.Start(t)
	env.CreateShoot(t, "one", testenv.WithWorkers(1))
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "short"}}
	bastion.Spec.ShootRef, bastion.Spec.SSHPublicKey = corev1.LocalObjectReference{Name: "one"}, publicKey
	bastion.Spec.Ingress = []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "127.0.0.1/32"}}}
	if err := env.Client().Create(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	if err := env.Clock().SetRate(0); err != nil {
		t.Fatal(err)
	}
	before := env.Clock().Now()
	if now := env.Clock().Now(); !now.Equal(before) {
		t.Errorf("a clock that stands still went from %s to %s", before, now)
	}
	if err := env.Clock().Advance(t.Context(), 48*time.Hour); err != nil {
		t.Fatal(err)
	}
	if passed := env.Clock().Since(before); passed < 48*time.Hour || passed > 49*time.Hour {
		t.Errorf("%s have passed", passed)
	}
	err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(bastion), &operationsv1alpha1.Bastion{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Bastion is still there: %v", err)
	}
}
