package seedhost

import (
	"bytes"
	"errors"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
)

// TestSeedLogin checks that the Secret is written once its Seed exists, is owned by the Seed, and is written again only when
// its kubeconfig is not good any more.
func TestSeedLogin(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	authority, err := pki.Load(pki.Config{Dir: t.TempDir(), Name: "seed-local", Hosts: []string{"127.0.0.1"}, Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).Build()
	key, secret := client.ObjectKey{Namespace: "garden", Name: "local.login"}, &corev1.Secret{}
	login := &seedLogin{
		seed: "local", context: "seed", server: "https://127.0.0.1:1", caPEM: authority.CAPEM(), issue: authority.Issue, clock: clk,
		garden: garden,
	}
	var before []byte
	reconcile := func(when string, isNew bool) {
		t.Helper()
		if _, err := login.reconcile(t.Context()); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if err := garden.Get(t.Context(), key, secret); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		now := secret.Data["kubeconfig"]
		if got := !bytes.Equal(before, now); got != isNew {
			t.Errorf("%s: the kubeconfig is new: %v", when, got)
		}
		before = now
		config, err := clientcmd.Load(now)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		certs, err := certutil.ParseCertsPEM(config.AuthInfos["seed"].ClientCertificateData)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		cert := certs[0]
		if left := cert.NotAfter.Sub(clk.Now()); left < seedLoginLife/2 || left > seedLoginLife ||
			cert.Subject.CommonName != seedLoginUser || len(cert.Subject.Organization) > 0 {
			t.Errorf("%s: the certificate is for %s and valid for %s", when, cert.Subject, left)
		}
		if config.Clusters["seed"].Server != login.server || config.CurrentContext != "seed" {
			t.Errorf("%s: the kubeconfig is for %s", when, config.Clusters["seed"].Server)
		}
	}

	if _, err := login.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := garden.Get(t.Context(), key, secret); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Secret without a Seed: %v", err)
	}
	first := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "1"}}
	if err := garden.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	reconcile("with a Seed", true)
	reconcile("again", false)
	clk.Step(seedLoginLife/2 - time.Minute)
	reconcile("before half of its life", false)
	clk.Step(2 * time.Minute)
	reconcile("after half of its life", true)
	clk.Step(-seedLoginLife)
	reconcile("before it is valid, because the clock was ahead", true)
	login.server = "https://127.0.0.1:2"
	reconcile("at another port", true)
	if err := garden.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.Kind != "Seed" || owner.Name != "local" || owner.UID != "1" {
		t.Errorf("the owner is %v", owner)
	}
	secret.Data["kubeconfig"] = []byte("other")
	if err := garden.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	reconcile("after it was overwritten", true)
	second := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "2"}}
	if err := errors.Join(garden.Delete(t.Context(), first), garden.Create(t.Context(), second)); err != nil {
		t.Fatal(err)
	}
	reconcile("of another Seed of the name", true)
}
