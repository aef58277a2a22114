// Package kittest provides a garden for tests of controllers: a fake client, and a clock that is advanced explicitly.
//
// It may import API types and controller-runtime. Only tests import it.
package kittest

import (
	"testing"
	"time"

	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// Start is the initial time of a garden's clock.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Garden is a garden with a fake client and a fake clock.
type Garden struct {
	*testing.T
	client.Client
	Clock *testclock.FakePassiveClock
}

// New creates a garden with the objects.
func New(t *testing.T, objects ...client.Object) Garden {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme,
		operationsv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&corev1beta1.Project{}, &corev1beta1.Shoot{}, &corev1beta1.Seed{},
			&seedmanagementv1alpha1.ManagedSeed{}, &seedmanagementv1alpha1.ManagedSeedSet{}).
		WithIndex(&corev1beta1.Shoot{}, core.ShootSeedName, func(obj client.Object) []string {
			return []string{ptr.Deref(obj.(*corev1beta1.Shoot).Spec.SeedName, "")}
		}).Build()
	return Garden{t, c, testclock.NewFakePassiveClock(Start)}
}

// Base returns the Base of a Reconciler in the garden.
func (g Garden) Base() kit.Base { return kit.Base{Client: g, Reader: g, Clock: g.Clock} }

// Reconcile calls r with the name of obj.
func (g Garden) Reconcile(r reconcile.Reconciler, obj client.Object) (reconcile.Result, error) {
	g.Helper()
	return r.Reconcile(g.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
}

// MustReconcile calls r with the name of obj, ends the test if it returns an error, and reads the object into obj.
func (g Garden) MustReconcile(r reconcile.Reconciler, obj client.Object) reconcile.Result {
	g.Helper()
	result, err := g.Reconcile(r, obj)
	g.Must(err)
	g.Exists(obj)
	return result
}

// Exists reads the object into obj and reports whether it exists.
func (g Garden) Exists(obj client.Object) bool {
	g.Helper()
	err := g.Get(g.Context(), client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		g.Must(err)
	}
	return err == nil
}

// Must ends the test if err is not nil.
func (g Garden) Must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// After advances the clock.
func (g Garden) After(d time.Duration) { g.Clock.SetTime(g.Clock.Now().Add(d)) }
