package managedseed

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	registered = seedmanagementv1alpha1.SeedRegistered
	shootReady = seedmanagementv1alpha1.ManagedSeedShootReconciled
)

func TestShootNotReconciled(t *testing.T) {
	for what, change := range map[string]func(*corev1beta1.Shoot){
		"never":       func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil },
		"not yet":     func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing },
		"not as it's": func(s *corev1beta1.Shoot) { s.Generation = 2 },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, seedmanagementv1alpha1.BootstrapToken, change)
			if wait := w.reconcile(); wait != 15*time.Second {
				t.Errorf("waits %s", wait)
			}
			w.wantCondition(shootReady, corev1beta1.ConditionFalse, "Reconciling", `"garden/s"`)
			if !controllerutil.ContainsFinalizer(w.managedSeed(), "gardener") || len(w.deployer.deployed) > 0 {
				t.Error("no finalizer, or deployed already")
			}
		})
	}
}

func TestNotResponsible(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken, func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("other") })
	if wait := w.reconcile(); wait != 0 || len(w.deployer.deployed) > 0 || len(w.managedSeed().Finalizers) > 0 {
		t.Error("a ManagedSeed of another seed's Shoot was touched")
	}
}

func TestBootstrap(t *testing.T) {
	for method, made := range map[seedmanagementv1alpha1.Bootstrap]int{
		seedmanagementv1alpha1.BootstrapToken: 1, seedmanagementv1alpha1.BootstrapServiceAccount: 2, seedmanagementv1alpha1.BootstrapNone: 0,
	} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t, method)
			if wait := w.reconcile(); wait != time.Hour {
				t.Errorf("waits %s", wait)
			}
			w.wantCondition(shootReady, corev1beta1.ConditionTrue, "Reconciled", "garden/s")
			w.wantCondition(registered, corev1beta1.ConditionTrue, "Reconciled", "Seed a has been registered")
			g := w.last()
			if g.SeedName != "a" || g.Shoot.Name != "s" || g.Owner.Kind != "ManagedSeed" || g.Config.SeedConfig.Name != "a" || g.Renew {
				t.Errorf("%+v", g)
			}
			if !strings.HasPrefix(g.Deployment.PodAnnotations[backupChecksum], "backup-") {
				t.Errorf("annotations %v", g.Deployment.PodAnnotations)
			}
			first := w.tokenIn(g.Bootstrap)
			if (first != "") != (made > 0) || len(w.credentials()) != made {
				t.Errorf("token %q, %d objects", first, len(w.credentials()))
			}
			if w.reconcile(); w.tokenIn(w.last().Bootstrap) != first {
				t.Error("another token while the first is valid")
			}
			w.register()
			w.reconcile()
			if g := w.last(); g.Bootstrap != nil || g.Renew || len(w.credentials()) > 0 {
				t.Error("credentials were made for a gardenlet that is bootstrapped")
			}
		})
	}
}

func TestServiceAccount(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapServiceAccount)
	w.reconcile()
	account, binding := &corev1.ServiceAccount{}, &rbacv1.ClusterRoleBinding{}
	if err := w.garden.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-bootstrap-a"}, account); err != nil {
		t.Fatal(err)
	}
	if len(account.OwnerReferences) != 1 || account.OwnerReferences[0].UID != "1" {
		t.Errorf("owners %v", account.OwnerReferences)
	}
	if err := w.garden.Get(t.Context(),
		client.ObjectKey{Name: "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a"}, binding); err != nil {
		t.Fatal(err)
	}
	if want := (rbacv1.Subject{Kind: "ServiceAccount", Namespace: "garden", Name: "gardenlet-bootstrap-a"}); len(binding.Subjects) != 1 ||
		binding.Subjects[0] != want ||
		binding.RoleRef.Name != "gardener.cloud:system:seed-bootstrapper" {
		t.Errorf("%+v", binding)
	}
}

func TestRenew(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
	w.reconcile()
	w.register()
	managedSeed := w.managedSeed()
	managedSeed.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig", "x": "y"}
	if err := w.garden.Update(t.Context(), managedSeed); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if g := w.last(); !g.Renew || w.tokenIn(g.Bootstrap) == "" {
		t.Errorf("renews: %v", g.Renew)
	}
	if a := w.managedSeed().Annotations; len(a) != 1 || a["x"] != "y" {
		t.Errorf("annotations %v", a)
	}
	// Until the gardenlet has its new identity, no further credentials are created for it.
	w.reconcile()
	if g := w.last(); g.Renew || g.Bootstrap != nil {
		t.Error("renewed a second time")
	}
	w.wantCondition(registered, corev1beta1.ConditionTrue, "Reconciled", "")
}

func TestIdentityExpired(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
	w.reconcile()
	w.register()
	seed := &corev1beta1.Seed{}
	if err := w.garden.Get(t.Context(), client.ObjectKey{Name: "a"}, seed); err != nil {
		t.Fatal(err)
	}
	seed.Status.ClientCertificateExpirationTimestamp = ptr.To(metav1.NewTime(w.clock.Now().Add(time.Hour)))
	if err := w.garden.Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Hour + time.Second)
	w.reconcile()
	if g := w.last(); !g.Renew || w.tokenIn(g.Bootstrap) == "" {
		t.Error("a gardenlet whose certificate has expired got nothing to bootstrap with")
	}
}

func TestErrors(t *testing.T) {
	for what, c := range map[string]struct {
		prepare func(*world)
		message string
	}{
		"no backup secret": {func(w *world) {
			if err := w.garden.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}}); err != nil {
				w.Fatal(err)
			}
		}, "the configured backup secret does not exist"},
		"another seed's cluster": {func(w *world) {
			w.deployer.status.Deployed, w.deployer.status.SeedName = true, "b"
		}, "has a gardenlet of seed b"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
			c.prepare(w)
			if _, err := w.tryReconcile(); err == nil || !strings.Contains(err.Error(), c.message) {
				t.Error(err)
			}
			w.wantCondition(shootReady, corev1beta1.ConditionTrue, "Reconciled", "")
			w.wantCondition(registered, corev1beta1.ConditionFalse, "ReconcileError", c.message)
			if len(w.deployer.deployed) > 0 || len(w.credentials()) > 0 {
				t.Error("deployed nevertheless")
			}
		})
	}
}

func (w *world) deleteManagedSeed() {
	w.Helper()
	if err := w.garden.Delete(w.Context(), w.managedSeed()); err != nil {
		w.Fatal(err)
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
	w.reconcile()
	w.register()
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	finalizers := func(all ...string) {
		t.Helper()
		if err := w.garden.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
			t.Fatal(err)
		}
		seed.Finalizers = all
		if err := w.garden.Update(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
	finalizers("gardener")
	w.deleteManagedSeed()
	for range 2 {
		if wait := w.reconcile(); wait != 15*time.Second || w.deployer.deleted > 0 {
			t.Errorf("waits %s; the gardenlet was deleted %d times before its Seed is gone", wait, w.deployer.deleted)
		}
		w.wantCondition(registered, corev1beta1.ConditionFalse, "Deleting", `Waiting for seed "a"`)
	}
	finalizers()
	if wait := w.reconcile(); wait != 15*time.Second || w.deployer.deleted != 1 {
		t.Errorf("waits %s; the gardenlet was deleted %d times", wait, w.deployer.deleted)
	}
	w.wantCondition(registered, corev1beta1.ConditionFalse, "Deleting", "Waiting for gardenlet")
	w.reconcile()
	if w.managedSeed().Name != "" {
		t.Error("the ManagedSeed is still there")
	}
}

// TestDeletedInStaleCache checks that nothing is written for a deleted ManagedSeed that the cache still has.
func TestDeletedInStaleCache(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
	w.reconcile()
	w.deleteManagedSeed()
	w.reconcile()
	stale := w.managedSeed()
	w.reconcile()
	if w.managedSeed().Name != "" {
		t.Fatal("the ManagedSeed is still there")
	}
	w.r.GardenClient = interceptor.NewClient(w.garden, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			stale.DeepCopyInto(obj.(*seedmanagementv1alpha1.ManagedSeed))
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			t.Errorf("deletes %T %s", obj, obj.GetName())
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			t.Errorf("patches %T %s", obj, obj.GetName())
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, _ client.Patch,
			_ ...client.SubResourcePatchOption) error {
			t.Errorf("patches the status of %T %s", obj, obj.GetName())
			return nil
		},
	})
	w.reconcile()
}

func TestDeleteBeforeBootstrapped(t *testing.T) {
	for _, method := range []seedmanagementv1alpha1.Bootstrap{seedmanagementv1alpha1.BootstrapToken,
		seedmanagementv1alpha1.BootstrapServiceAccount} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t, method)
			w.reconcile()
			w.deleteManagedSeed()
			w.reconcile()
			w.reconcile()
			if w.managedSeed().Name != "" {
				t.Error("the ManagedSeed is still there")
			}
			for _, obj := range w.credentials() {
				// The garbage collector deletes the account with its owner.
				if binding, ok := obj.(*rbacv1.ClusterRoleBinding); ok && len(binding.Subjects) == 0 || len(obj.GetOwnerReferences()) > 0 {
					continue
				}
				t.Errorf("%T %s can still be used", obj, obj.GetName())
			}
		})
	}
}

// TestDeleteWithoutGardenlet covers a gardenlet that registered its Seed while the gardenlet was being deleted.
func TestDeleteWithoutGardenlet(t *testing.T) {
	w := newWorld(t, seedmanagementv1alpha1.BootstrapToken)
	w.reconcile()
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"gardener"}}}
	if err := w.garden.Create(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	w.deployer.status.Deployed = false
	w.deleteManagedSeed()
	w.reconcile()
	before := len(w.deployer.deployed)
	if w.reconcile(); len(w.deployer.deployed) != before+1 {
		t.Error("there is no gardenlet to release the Seed")
	}
}
