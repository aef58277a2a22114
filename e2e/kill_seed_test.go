package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// hasOneSeed waits until the landscape has one ready seed and what belongs to it, and nothing of the bootstrapping
// is left.
func (l *landscape) hasOneSeed(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		seeds, err := l.list(ctx, "core.gardener.cloud", "v1beta1", "seeds")
		if err != nil {
			return err
		}
		if len(seeds) != 1 || seeds[0].GetName() != "local" || !seedIsReady(seeds[0]) {
			return fmt.Errorf("the only Seed is not local, or not ready: %v", seeds)
		}
		buckets, err := l.list(ctx, "core.gardener.cloud", "v1beta1", "backupbuckets")
		if err != nil {
			return err
		}
		if len(buckets) != 1 || buckets[0].GetName() != string(seeds[0].GetUID()) {
			return fmt.Errorf("the only BackupBucket is not the Seed's: %v", buckets)
		}
		if err := l.nothingBootstraps(ctx); err != nil {
			return err
		}
		return l.installationsOnce(ctx)
	})
}

// seedIsReady reports whether a Seed has at least the four conditions that count, and all its conditions are true.
func seedIsReady(seed unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(seed.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition.(map[string]any)["status"] != "True" {
			return false
		}
	}
	return len(conditions) >= 4
}

// nothingBootstraps returns an error while there are bootstrap tokens, or more than one request for a certificate
// without a decision.
func (l *landscape) nothingBootstraps(ctx context.Context) error {
	secrets, err := l.list(ctx, "", "v1", "secrets")
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if kind, _, _ := unstructured.NestedString(secret.Object, "type"); kind == "bootstrap.kubernetes.io/token" {
			return fmt.Errorf("the bootstrap token %s/%s is still there", secret.GetNamespace(), secret.GetName())
		}
	}
	requests, err := l.list(ctx, "certificates.k8s.io", "v1", "certificatesigningrequests")
	if err != nil {
		return err
	}
	pending := 0
	for _, request := range requests {
		if conditions, _, _ := unstructured.NestedSlice(request.Object, "status", "conditions"); len(conditions) == 0 {
			pending++
		}
	}
	if pending > 1 {
		return fmt.Errorf("%d of %d requests for certificates are pending", pending, len(requests))
	}
	return nil
}

func (l *landscape) installationsOnce(ctx context.Context) error {
	installations, err := l.list(ctx, "core.gardener.cloud", "v1beta1", "controllerinstallations")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, installation := range installations {
		registration, _, _ := unstructured.NestedString(installation.Object, "spec", "registrationRef", "name")
		seed, _, _ := unstructured.NestedString(installation.Object, "spec", "seedRef", "name")
		if seen[registration+" "+seed] {
			return fmt.Errorf("ControllerRegistration %s has two ControllerInstallations in Seed %s", registration, seed)
		}
		seen[registration+" "+seed] = true
	}
	if len(seen) == 0 {
		return fmt.Errorf("there are no ControllerInstallations")
	}
	return nil
}

// killedUnderSeeds kills the process while it registers a second seed, and again while a user removes that seed:
// the Seed is deleted while its gardenlet runs, and then the seed is not started any more. Nothing of it is left in
// the garden.
func (l *landscape) killedUnderSeeds(t *testing.T, random *rand.Rand) {
	before := l.mustInventory(t)
	l.stop(t)
	removing := 500 * time.Millisecond // how long a removal takes, roughly
	for i := range kills() {
		registering := i%2 == 0 || !testutil.Soaking()
		if registering {
			delay := within(random, 3500*time.Millisecond)
			t.Logf("killed %s after a start with a second seed", delay)
			l.start(t, "--seeds", "2")
			l.killAfter(delay)
		}
		l.up(t, "--seeds", "2")
		if i%2 == 1 || !testutil.Soaking() {
			delay := within(random, 2*removing)
			t.Logf("killed %s after the removal of the second Seed began", delay)
			l.deleteSeed(t, "local-2")
			l.killAfter(delay)
			l.up(t, "--seeds", "1")
		} else {
			l.deleteSeed(t, "local-2")
			begin := time.Now()
			l.seedGoes(t, "local-2")
			removing = time.Since(begin)
			t.Logf("the removal took %s", removing)
			l.stop(t)
			l.up(t, "--seeds", "1")
		}
		if l.hasSeed(t, "local-2") { // its gardenlet is needed for the removal
			l.stop(t)
			l.start(t, "--seeds", "2")
			l.seedGoes(t, "local-2")
			l.kill()
			l.up(t, "--seeds", "1")
		}
		l.deleteSecretsOf(t, "local-2")
		l.becomes(t, before, fmt.Sprintf("after round %d", i))
		l.hasOneSeed(t)
		l.expectNothingForbidden(t)
		l.stop(t)
	}
	l.up(t, "--seeds", "2") // it is registered again, although its former certificate is revoked
	if !l.hasSeed(t, "local-2") {
		t.Error("the second seed is not registered again")
	}
}

func (l *landscape) deleteSeed(t *testing.T, name string) {
	t.Helper()
	seeds := l.dyn.Resource(seedsResource)
	_, err := seeds.Patch(t.Context(), name, types.MergePatchType, confirmed, metav1.PatchOptions{})
	must(t, err)
	must(t, seeds.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func (l *landscape) hasSeed(t *testing.T, name string) bool {
	t.Helper()
	_, err := l.dyn.Resource(seedsResource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func (l *landscape) seedGoes(t *testing.T, name string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		seed, err := l.dyn.Resource(seedsResource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			operation, _, _ := unstructured.NestedMap(seed.Object, "status", "lastOperation")
			err = fmt.Errorf("Seed %s is still there, with the finalizers %v: %v", name, seed.GetFinalizers(), operation)
		}
		return err
	})
}

// deleteSecretsOf deletes the Secrets that an operator creates for a Seed, and only the operator deletes. For the
// landscape's own seeds, "up" has created them. Nothing holds them any more.
func (l *landscape) deleteSecretsOf(t *testing.T, name string) {
	t.Helper()
	secrets := l.dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("garden")
	for _, secret := range []string{"seed-" + name + "-backup", "seed-" + name + "-dns"} {
		if err := secrets.Delete(t.Context(), secret, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}
