package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// gardenTest is a garden with a project and a CloudProfile, and a reconciler in it.
type gardenTest struct {
	*reconciler
	t      *testing.T
	events *events.FakeRecorder
	now    time.Time
	// bindError, if set, is returned for a binding. If lost is set, the Shoot is bound nevertheless.
	bindError error
	lost      bool
	// stale hides bindings from lists, like a cache that is not up to date.
	stale bool
	// listed is how often the Shoots were listed.
	listed int
}

func newGardenTest(t *testing.T, objects ...client.Object) *gardenTest {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, gardencorev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g := &gardenTest{t: t, events: events.NewFakeRecorder(100), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	objects = append(objects,
		&gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}},
		&gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"},
			Spec: gardencorev1beta1.ProjectSpec{Namespace: ptr.To("garden-dev")}})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: g.bindShoot, List: g.list}).Build()
	g.reconciler = &reconciler{
		client: c, recorder: g.events, clock: testclock.NewFakePassiveClock(g.now),
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
	}
	return g
}

// bindShoot implements the binding subresource for the fake client.
func (g *gardenTest) bindShoot(ctx context.Context, c client.Client, subResource string, obj client.Object,
	_ ...client.SubResourceUpdateOption) error {
	if subResource != "binding" {
		return fmt.Errorf("the scheduler must not update %s", subResource)
	}
	if g.bindError != nil && !g.lost {
		return g.bindError
	}
	if err := c.Update(ctx, obj.DeepCopyObject().(client.Object)); err != nil {
		return err
	}
	return g.bindError
}

func (g *gardenTest) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.List(ctx, list, opts...); err != nil {
		return err
	}
	if shoots, ok := list.(*gardencorev1beta1.ShootList); ok {
		g.listed++ // the lock of the reservations is held
		for i := 0; g.stale && i < len(shoots.Items); i++ {
			shoots.Items[i].Spec.SeedName = nil
		}
	}
	return nil
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "garden-dev", Name: name}}
}

func (g *gardenTest) reconcile(name string) reconcile.Result {
	g.t.Helper()
	result, err := g.Reconcile(g.t.Context(), requestFor(name))
	if err != nil {
		g.t.Fatal(err)
	}
	return result
}

func (g *gardenTest) shoot(name string) *gardencorev1beta1.Shoot {
	g.t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := g.client.Get(g.t.Context(), requestFor(name).NamespacedName, shoot); err != nil {
		g.t.Fatal(err)
	}
	return shoot
}

func (g *gardenTest) wantSeed(shoot, want string) {
	g.t.Helper()
	if got := ptr.Deref(g.shoot(shoot).Spec.SeedName, ""); got != want {
		g.t.Errorf("Shoot %s is on seed %q, want %q", shoot, got, want)
	}
}

// wantEvent checks the next event. An empty prefix means that there must be none.
func (g *gardenTest) wantEvent(prefix string) {
	g.t.Helper()
	select {
	case got := <-g.events.Events:
		if prefix == "" || !strings.HasPrefix(got, prefix) {
			g.t.Errorf("got event %q, want %q", got, prefix)
		}
	default:
		if prefix != "" {
			g.t.Errorf("got no event, want %q", prefix)
		}
	}
}

func named(name string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Name, s.UID = name, types.UID(name) }
}

func TestReconcileBinds(t *testing.T) {
	g := newGardenTest(t, newShoot(), newSeed("a"))
	if result := g.reconcile("shoot"); result.RequeueAfter != 0 {
		t.Errorf("a bound Shoot is looked at again after %s", result.RequeueAfter)
	}
	g.wantSeed("shoot", "a")
	g.wantEvent(`Normal SchedulingSuccessful Scheduled to seed "a"`)
	g.reconcile("shoot")
	g.wantEvent("")
}

func TestReconcileReportsAndTriesAgain(t *testing.T) {
	g := newGardenTest(t, newShoot(), newSeed("a", deleting, func(s *gardencorev1beta1.Seed) { s.Finalizers = []string{"gardener"} }))
	first, second := g.reconcile("shoot").RequeueAfter, g.reconcile("shoot").RequeueAfter
	if first != time.Second || second != 2*time.Second {
		t.Errorf("tried again after %s and %s, want 1s and 2s", first, second)
	}
	const want = "Failed to schedule Shoot: 0/1 seeds are eligible: {a => seed is being deleted}"
	g.wantEvent("Warning SchedulingFailed " + want)
	last := g.shoot("shoot").Status.LastOperation
	if last == nil {
		t.Fatal("the status does not say why")
	}
	if last.Type != "Create" || last.State != "Pending" || last.Description != want || !last.LastUpdateTime.Time.Equal(g.now) {
		t.Errorf("got last operation %+v", last)
	}
	if err := g.client.Create(t.Context(), newSeed("b")); err != nil {
		t.Fatal(err)
	}
	g.reconcile("shoot")
	g.wantSeed("shoot", "b")
	if g.backoff.NumRequeues(requestFor("shoot")) != 0 {
		t.Error("the back-off is kept for a Shoot that is scheduled")
	}
}

func TestReconcileLeavesOthersAlone(t *testing.T) {
	for name, change := range map[string]func(*gardencorev1beta1.Shoot){
		"another scheduler": func(s *gardencorev1beta1.Shoot) { s.Spec.SchedulerName = ptr.To("mine") },
		"being deleted": func(s *gardencorev1beta1.Shoot) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"f"}
		},
		"self-hosted": func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].ControlPlane = &gardencorev1beta1.WorkerControlPlane{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGardenTest(t, newShoot(change), newSeed("a"))
			g.reconcile("shoot")
			g.wantSeed("shoot", "")
			g.wantEvent("")
		})
	}
	newGardenTest(t).reconcile("gone")
}

func TestReconcileConfiguration(t *testing.T) {
	gold := gardencorev1beta1.CloudProfileSpec{SeedSelector: selector("tier", "gold")}
	near := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "distances",
		Labels:      map[string]string{"scheduling.gardener.cloud/purpose": "region-config"},
		Annotations: map[string]string{"scheduling.gardener.cloud/cloudprofiles": "other, local"}},
		Data: map[string]string{"eu-west-1": "us: 1\neu-west-2: 2"}}
	for _, test := range []struct {
		name    string
		objects []client.Object
		shoot   func(*gardencorev1beta1.Shoot)
		// want is the expected seed, message the expected reason if there is none.
		strategy      Strategy
		want, message string
	}{
		{name: "CloudProfile by its old name",
			shoot: func(s *gardencorev1beta1.Shoot) { s.Spec.CloudProfile, s.Spec.CloudProfileName = nil, ptr.To("gold") },
			objects: []client.Object{newSeed("a"), newSeed("b", labelled("tier", "gold")),
				&gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Spec: gold}}, want: "b"},
		{name: "NamespacedCloudProfile", shoot: func(s *gardencorev1beta1.Shoot) {
			s.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "mine"}
		}, objects: []client.Object{newSeed("a"), newSeed("b", labelled("tier", "gold")), &gardencorev1beta1.NamespacedCloudProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "mine"},
			Status:     gardencorev1beta1.NamespacedCloudProfileStatus{CloudProfileSpec: gold}}}, want: "b"},
		{name: "no such CloudProfile", shoot: func(s *gardencorev1beta1.Shoot) { s.Spec.CloudProfile.Name = "none" },
			message: "CloudProfile none of the Shoot does not exist"},
		{name: "no CloudProfile", shoot: func(s *gardencorev1beta1.Shoot) { s.Spec.CloudProfile = nil },
			message: "the Shoot has no cloud profile, which tells its seeds; set spec.cloudProfile"},
		{name: "distances", objects: []client.Object{near, newSeed("a", region("eu-west-2")), newSeed("b", region("us"))},
			strategy: "MinimalDistance", want: "b"},
		{name: "no project", objects: []client.Object{newSeed("a")}, shoot: func(s *gardencorev1beta1.Shoot) { s.Namespace = "default" },
			message: "namespace default belongs to no project"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shoot := newShoot()
			if test.shoot != nil {
				test.shoot(shoot)
			}
			g := newGardenTest(t, append(test.objects, shoot)...)
			g.strategy = test.strategy
			if _, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); err != nil {
				t.Fatal(err)
			}
			if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if got := ptr.Deref(shoot.Spec.SeedName, ""); got != test.want {
				t.Errorf("got seed %q, want %q", got, test.want)
			}
			if test.message != "" &&
				(shoot.Status.LastOperation == nil || shoot.Status.LastOperation.Description != "Failed to schedule Shoot: "+test.message) {
				t.Errorf("got %+v, want %q", shoot.Status.LastOperation, test.message)
			}
		})
	}
}

func TestReconcileBindingFails(t *testing.T) {
	resource := gardencorev1beta1.Resource("shoots")
	for _, test := range []struct {
		name  string
		err   error
		event string
		// free says that another Shoot gets the place on the seed.
		free bool
	}{
		{"conflict", apierrors.NewConflict(resource, "shoot", errors.New("changed")), "", true},
		{"refused", apierrors.NewForbidden(resource, "shoot", errors.New("not here")),
			"Warning SchedulingFailed Failed to schedule Shoot: binding the Shoot to seed a: ", true},
		{"no answer", errors.New("connection reset"),
			"Warning SchedulingFailed Failed to schedule Shoot: binding the Shoot to seed a: connection reset", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGardenTest(t, newShoot(), newShoot(named("other")), newSeed("a", room("1")))
			g.bindError = test.err
			if g.reconcile("shoot").RequeueAfter == 0 {
				t.Error("the Shoot is not tried again")
			}
			g.wantEvent(test.event)
			g.bindError = nil
			g.reconcile("other")
			if test.free {
				g.wantSeed("other", "a")
				return
			}
			g.wantSeed("other", "")
			g.reconcile("shoot")
			g.wantSeed("shoot", "a")
		})
	}
}

// TestReconcileBindingAnswerLost checks that the place on the seed stays reserved if the response to a successful
// binding is lost, and the next try results in a conflict.
func TestReconcileBindingAnswerLost(t *testing.T) {
	g := newGardenTest(t, newShoot(), newShoot(named("other")), newSeed("a", room("1")))
	g.stale, g.lost, g.bindError = true, true, errors.New("connection reset")
	old := g.shoot("shoot")
	g.reconcile("shoot")
	g.wantSeed("shoot", "a")
	g.lost, g.bindError = false, nil
	if err := g.schedule(t.Context(), old); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	g.reconcile("other")
	g.wantSeed("other", "")
}

// TestReconcileCountsForCandidates checks that Shoots are counted only if a seed is left for which their number matters.
func TestReconcileCountsForCandidates(t *testing.T) {
	for name, test := range map[string]struct {
		seeds []client.Object
		want  int
	}{
		"no seed":              {nil, 0},
		"a seed that does not": {[]client.Object{newSeed("a", invisible)}, 0},
		"one of two":           {[]client.Object{newSeed("a", invisible), newSeed("b")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGardenTest(t, append(test.seeds, newShoot())...)
			g.reconcile("shoot")
			if g.listed != test.want {
				t.Errorf("the Shoots are listed %d times, not %d", g.listed, test.want)
			}
		})
	}
}

func TestReconcileManyAtOnce(t *testing.T) {
	const shoots, capacity = 40, 7
	objects := []client.Object{newSeed("a", room("3")), newSeed("b", room("4"))}
	for i := range shoots {
		objects = append(objects, newShoot(named(fmt.Sprintf("s%d", i))))
	}
	g := newGardenTest(t, objects...)
	g.stale = true // the cache shows none of the bindings
	var group sync.WaitGroup
	for i := range shoots {
		group.Go(func() {
			if _, err := g.Reconcile(t.Context(), requestFor(fmt.Sprintf("s%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	bound := map[string]int{}
	for i := range shoots {
		bound[ptr.Deref(g.shoot(fmt.Sprintf("s%d", i)).Spec.SeedName, "")]++
	}
	if bound["a"] != 3 || bound["b"] != 4 || bound[""] != shoots-capacity {
		t.Errorf("got %v, want 3 on a, 4 on b and the others waiting", bound)
	}
	g.stale = false
	g.reserved.decide(newShoot(), func() ([]gardencorev1beta1.Shoot, error) { return g.reconciler.shoots(t.Context()) },
		func(count func() (map[string]int, error)) string {
			if usage, err := count(); err != nil || usage["a"] != 3 || usage["b"] != 4 {
				t.Errorf("once the cache shows the bindings, they are counted as %v, %v", usage, err)
			}
			return ""
		})
	if len(g.reserved.seeds) != 0 {
		t.Errorf("%d reservations are kept for ever", len(g.reserved.seeds))
	}
}

func TestShorten(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("ü", 1000)} {
		got := shorten(text, maxEventNote)
		if len(got) > maxEventNote || !utf8.ValidString(got) || len(text) <= maxEventNote && got != text ||
			len(text) > maxEventNote && (!strings.HasSuffix(got, "...") || len(got) < maxEventNote-5) {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
}
