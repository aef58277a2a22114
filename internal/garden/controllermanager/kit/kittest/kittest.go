// Package kittest is a garden for tests of controllers: a client without a server behind it, and a clock that stands.
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
)

// Start is when a garden's clock begins.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Garden is a garden with things in it.
type Garden struct {
	*testing.T
	client.Client
	Clock *testclock.FakePassiveClock
}

// New makes a garden with these things.
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

// Reconcile lets a controller look at the thing with the name of obj, and returns its error.
func (g Garden) Reconcile(r reconcile.Reconciler, obj client.Object) (reconcile.Result, error) {
	g.Helper()
	return r.Reconcile(g.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
}

// MustReconcile is Reconcile without an error, which also reads what obj is then.
func (g Garden) MustReconcile(r reconcile.Reconciler, obj client.Object) reconcile.Result {
	g.Helper()
	result, err := g.Reconcile(r, obj)
	g.Must(err)
	g.Exists(obj)
	return result
}

// Exists says whether there is such a thing, and reads it into obj.
func (g Garden) Exists(obj client.Object) bool {
	g.Helper()
	err := g.Get(g.Context(), client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		g.Must(err)
	}
	return err == nil
}

// Must ends the test with an error.
func (g Garden) Must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// After lets the clock continue.
func (g Garden) After(d time.Duration) { g.Clock.SetTime(g.Clock.Now().Add(d)) }
