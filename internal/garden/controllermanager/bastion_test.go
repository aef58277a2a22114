package controllermanager

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func atBastion(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(kittest.Start.Add(d))) }

// bastion returns a Bastion that is created at kittest.Start and expires an hour later. It has the finalizer of the
// gardenlet.
func bastion(changes ...func(*operationsv1alpha1.Bastion)) *operationsv1alpha1.Bastion {
	b := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-dev", Name: "b", UID: "b", CreationTimestamp: *atBastion(0), Finalizers: []string{"gardener"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: "s", UID: "s", Controller: ptr.To(true)}},
	}}
	b.Spec.ShootRef.Name, b.Spec.SeedName = "s", ptr.To("seed")
	b.Status.ExpirationTimestamp = atBastion(time.Hour)
	for _, change := range changes {
		change(b)
	}
	return b
}

func shootBastion(changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s", UID: "s", Finalizers: []string{"gardener"}}}
	s.Spec.SeedName = ptr.To("seed")
	for _, change := range changes {
		change(s)
	}
	return s
}

func expires(t *metav1.Time) func(*operationsv1alpha1.Bastion) {
	return func(b *operationsv1alpha1.Bastion) { b.Status.ExpirationTimestamp = t }
}

func on(seed string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) { s.Spec.SeedName = &seed }
}

func withoutSSH(s *corev1beta1.Shoot) {
	s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}
}

func isDeleted(s *corev1beta1.Shoot) { s.DeletionTimestamp = atBastion(0) }

func named(name string) func(*corev1beta1.Shoot) { return func(s *corev1beta1.Shoot) { s.Name = name } }

func TestDeletes(t *testing.T) {
	another := shootBastion(func(s *corev1beta1.Shoot) { s.UID = "another" })
	for name, test := range map[string]struct {
		bastion *operationsv1alpha1.Bastion
		shoot   *corev1beta1.Shoot
		after   time.Duration
		again   time.Duration // 0 if the Bastion must be deleted
	}{
		"new":                       {bastion(), shootBastion(), 0, time.Hour},
		"a moment before it ends":   {bastion(), shootBastion(), time.Hour - time.Nanosecond, time.Nanosecond},
		"the moment it ends":        {bastion(), shootBastion(), time.Hour, 0},
		"long after":                {bastion(), shootBastion(), 100 * time.Hour, 0},
		"kept alive":                {bastion(expires(atBastion(2 * time.Hour))), shootBastion(), time.Hour, time.Hour},
		"no end yet":                {bastion(expires(nil)), shootBastion(), time.Hour, 2 * time.Hour},
		"kept alive for too long":   {bastion(expires(atBastion(30 * time.Hour))), shootBastion(), 2 * time.Hour, time.Hour},
		"a moment before too old":   {bastion(expires(atBastion(30 * time.Hour))), shootBastion(), 3*time.Hour - time.Second, time.Second},
		"too old":                   {bastion(expires(atBastion(30 * time.Hour))), shootBastion(), 3 * time.Hour, 0},
		"too old, no end":           {bastion(expires(nil)), shootBastion(), 3 * time.Hour, 0},
		"no shoot":                  {bastion(), shootBastion(named("other")), 0, 0},
		"shoot of another project":  {bastion(), shootBastion(func(s *corev1beta1.Shoot) { s.Namespace = "garden-other" }), 0, 0},
		"another shoot of its name": {bastion(), another, 0, 0},
		"no owner":                  {bastion(func(b *operationsv1alpha1.Bastion) { b.OwnerReferences = nil }), another, 0, time.Hour},
		"shoot is being deleted":    {bastion(), shootBastion(isDeleted), 0, 0},
		"shoot without SSH":         {bastion(), shootBastion(withoutSSH), 0, 0},
		"shoot has moved":           {bastion(), shootBastion(on("other")), 0, 0},
		"shoot has no seed":         {bastion(), shootBastion(func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := kittest.New(t, test.bastion, test.shoot)
			g.After(test.after)
			r := &Bastion{Base: g.Base(), MaxLifetime: 3 * time.Hour}
			result := g.MustReconcile(reconcile.AsReconciler(g, r), test.bastion)
			if deleted := test.bastion.DeletionTimestamp != nil; deleted != (test.again == 0) || result.RequeueAfter != test.again {
				t.Errorf("deleted %v, again after %s", deleted, result.RequeueAfter)
			}
		})
	}
}

func TestDefaultMaxLifetime(t *testing.T) {
	b := bastion(expires(nil))
	g := kittest.New(t, b, shootBastion())
	if result := g.MustReconcile(reconcile.AsReconciler(g, &Bastion{Base: g.Base()}), b); result.RequeueAfter != 24*time.Hour {
		t.Errorf("again after %s", result.RequeueAfter)
	}
}

// keeper is a client whose Delete fails.
type keeper struct{ client.Client }

func (keeper) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errors.New("asked to delete")
}

// TestNothingToDo checks that Bastions that do not exist or are being deleted are ignored.
func TestNothingToDo(t *testing.T) {
	b := bastion(expires(atBastion(0)), func(b *operationsv1alpha1.Bastion) { b.DeletionTimestamp = atBastion(0) })
	g := kittest.New(t, b)
	r := &Bastion{Base: kit.Base{Client: keeper{g}, Reader: g, Clock: g.Clock}}
	if result := g.MustReconcile(reconcile.AsReconciler(g, r), b); result.RequeueAfter != 0 {
		t.Errorf("again after %s", result.RequeueAfter)
	}
	if result, err := g.Reconcile(reconcile.AsReconciler(g, r), &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "other"}}); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%v, again after %s", err, result.RequeueAfter)
	}
}

// TestAsksTheGardenLast checks that a Bastion is not deleted because of an outdated Shoot in the cache.
func TestAsksTheGardenLast(t *testing.T) {
	for name, cached := range map[string]*corev1beta1.Shoot{
		"not seen yet":     shootBastion(named("other")),
		"scheduled since":  shootBastion(func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }),
		"moved since":      shootBastion(on("old")),
		"made anew since":  shootBastion(func(s *corev1beta1.Shoot) { s.UID = "old" }),
		"seen as it is":    shootBastion(),
		"old and going on": shootBastion(isDeleted),
	} {
		cache, garden := kittest.New(t, bastion(), cached), kittest.New(t, shootBastion())
		b := bastion()
		r := &Bastion{Base: kit.Base{Client: cache, Reader: garden, Clock: cache.Clock}}
		result := cache.MustReconcile(reconcile.AsReconciler(cache, r), b)
		if b.DeletionTimestamp != nil || result.RequeueAfter != time.Hour {
			t.Errorf("%s: deleted %v, again after %s", name, b.DeletionTimestamp, result.RequeueAfter)
		}
	}
}

// TestKeptAliveMeanwhile checks that a Bastion is not deleted if the API server has a newer version than the cache.
func TestKeptAliveMeanwhile(t *testing.T) {
	b := bastion()
	g := kittest.New(t, b, shootBastion())
	g.Must(g.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	seen := b.DeepCopy()
	b.Status.ExpirationTimestamp = atBastion(2 * time.Hour)
	g.Must(g.Update(t.Context(), b))
	r := &Bastion{Base: g.Base()}
	if err := r.delete(t.Context(), seen, "test"); !apierrors.IsConflict(err) {
		t.Errorf("deleted: %v", err)
	}
	g.After(time.Hour)
	if result := g.MustReconcile(reconcile.AsReconciler(g, r), b); b.DeletionTimestamp != nil || result.RequeueAfter != time.Hour {
		t.Errorf("deleted %v, again after %s", b.DeletionTimestamp, result.RequeueAfter)
	}
}

func TestChanges(t *testing.T) {
	type test struct {
		predicate     predicate.Predicate
		before, after client.Object
		looks         bool
	}
	ready := bastion(func(b *operationsv1alpha1.Bastion) { b.Status.ObservedGeneration = ptr.To[int64](1) })
	for name, test := range map[string]test{
		"bastion, status":     {endMoves(), bastion(), ready, false},
		"bastion, kept alive": {endMoves(), bastion(), bastion(expires(atBastion(2 * time.Hour))), true},
		"bastion, deleted":    {endMoves(), bastion(), bastion(func(b *operationsv1alpha1.Bastion) { b.Generation++ }), true},
		"shoot, status":       {shootGone(), shootBastion(), shootBastion(func(s *corev1beta1.Shoot) { s.Status.ObservedGeneration = 1 }), false},
		"shoot, still going":  {shootGone(), shootBastion(isDeleted), shootBastion(isDeleted), false},
		"shoot, deleted":      {shootGone(), shootBastion(), shootBastion(isDeleted), true},
		"shoot, without SSH":  {shootGone(), shootBastion(), shootBastion(withoutSSH), true},
		"shoot, moved":        {shootGone(), shootBastion(), shootBastion(on("other")), true},
		"shoot, another one":  {shootGone(), shootBastion(), shootBastion(func(s *corev1beta1.Shoot) { s.UID = "other" }), true},
	} {
		if got := test.predicate.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.looks {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !endMoves().Create(event.CreateEvent{Object: bastion()}) || endMoves().Delete(event.DeleteEvent{Object: bastion()}) {
		t.Error("Bastions are looked at when they come, not when they are gone")
	}
	if shootGone().Create(event.CreateEvent{Object: shootBastion()}) || !shootGone().Delete(event.DeleteEvent{Object: shootBastion()}) {
		t.Error("Bastions are looked at when their Shoot is gone, not when it comes")
	}
}

func TestBastionsOf(t *testing.T) {
	other := bastion(func(b *operationsv1alpha1.Bastion) { b.Name, b.Spec.ShootRef.Name = "other", "other" })
	elsewhere := bastion(func(b *operationsv1alpha1.Bastion) { b.Namespace = "garden-other" })
	second := bastion(func(b *operationsv1alpha1.Bastion) { b.Name = "c" })
	g := kittest.New(t, bastion(), second, other, elsewhere)
	got := (&Bastion{Base: g.Base()}).bastionsOf(t.Context(), shootBastion())
	if len(got) != 2 || got[0].Name != "b" || got[1].Name != "c" || got[0].Namespace != "garden-dev" {
		t.Errorf("requests %v", got)
	}
}
