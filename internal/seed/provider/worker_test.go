package provider

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func (w *shootWorld) mustSettle() {
	w.Helper()
	if err := w.settle(); err != nil {
		w.Fatal(err)
	}
}

func TestWorkerLife(t *testing.T) {
	w := newShootWorld(t, pool("one", 3, "a", "b"), pool("two", 1))
	w.mustSettle()
	w.expectSucceeded("Create", 4)
	byZone := map[string]int{}
	nodes := &corev1.NodeList{}
	if err := w.shoot.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		byZone[n.Labels["pool"]+" "+n.Labels[corev1.LabelTopologyZone]]++
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Value != n.Labels["pool"] ||
			n.Labels[corev1.LabelInstanceTypeStable] != "small" || n.Spec.ProviderID == "" {
			t.Errorf("node %+v", n)
		}
	}
	if !maps.Equal(byZone, map[string]int{"one a": 2, "one b": 1, "two local": 1}) {
		t.Errorf("nodes by pool and zone: %v", byZone)
	}
	status := w.getWorker().Status
	if len(status.MachineDeployments) != 3 || status.MachineDeployments[0].Name != "shoot--dev--a-one-z1" ||
		status.MachineDeployments[0].Minimum != 2 ||
		status.MachineDeployments[0].Maximum != 3 || status.MachineDeploymentsLastUpdateTime == nil {
		t.Errorf("status %+v", status.MachineDeployments)
	}

	// Labels and taints change without a new machine.
	created := w.cloud.created
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) {
		worker.Spec.Pools[1].Labels = map[string]string{"other": "label"}
		worker.Spec.Pools[1].Taints = nil
	})
	w.mustSettle()
	w.expectSucceeded("Reconcile", 4)
	if err := w.shoot.List(t.Context(), nodes, client.MatchingLabels{"other": "label"}); err != nil ||
		len(nodes.Items) != 1 || len(nodes.Items[0].Spec.Taints) != 0 ||
		nodes.Items[0].Labels["pool"] != "" || w.cloud.created != created {
		t.Errorf("nodes with the new label: %+v, %d instances made", nodes.Items, w.cloud.created-created)
	}

	// More machines than the minimum stay; a larger minimum makes more.
	d := &machinev1alpha1.MachineDeployment{}
	if err := w.seed.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: "shoot--dev--a-two-z1"}, d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Replicas = 2
	if err := w.seed.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools[0].Minimum = 4 })
	w.mustSettle()
	w.expectSucceeded("Reconcile", 6)

	// A pool is removed; a smaller maximum removes machines.
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) {
		worker.Spec.Pools = worker.Spec.Pools[1:]
		worker.Spec.Pools[0].Maximum = 1
	})
	w.mustSettle()
	w.expectSucceeded("Reconcile", 1)

	if err := w.seed.Delete(t.Context(), w.getWorker()); err != nil {
		t.Fatal(err)
	}
	w.mustSettle()
	w.expectNothing()
	if len(w.cloud.instances) > 0 {
		t.Errorf("instances are left: %v", w.cloud.ids())
	}
}

func TestHibernation(t *testing.T) {
	w := newShootWorld(t, pool("one", 2, "a", "b"))
	w.mustSettle()
	w.hibernate(true)
	w.ask("reconcile", nil)
	w.mustSettle()
	w.expectSucceeded("Reconcile", 0)
	w.down = true
	w.ask("reconcile", nil)
	w.mustSettle()
	w.expectSucceeded("Reconcile", 0)
	w.down = false
	w.hibernate(false)
	w.ask("reconcile", nil)
	w.mustSettle()
	w.expectSucceeded("Reconcile", 2)
}

func TestDeletionWithoutShoot(t *testing.T) {
	for name, lose := range map[string]func(*shootWorld){
		"down": func(w *shootWorld) { w.down = true },
		"no access": func(w *shootWorld) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "machine-controller-manager"}}
			if err := w.seed.Delete(w.Context(), secret); err != nil {
				w.Fatal(err)
			}
			w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "third"}})
		},
		"no Cluster": func(w *shootWorld) {
			if err := w.seed.Delete(w.Context(), &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: technicalID}}); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShootWorld(t, pool("one", 2))
			w.mustSettle()
			lose(w)
			if err := w.seed.Delete(t.Context(), w.getWorker()); err != nil {
				t.Fatal(err)
			}
			w.mustSettle()
			w.expectNothing()
			if len(w.cloud.instances) > 0 {
				t.Errorf("instances are left: %v", w.cloud.ids())
			}
		})
	}
}

func TestRolling(t *testing.T) {
	for name, test := range map[string]struct {
		surge, unavailable intstr.IntOrString
		most, least        int
	}{
		"surge":       {intstr.FromInt32(1), intstr.FromInt32(0), 4, 3},
		"percentage":  {intstr.FromString("50%"), intstr.FromInt32(0), 5, 3},
		"unavailable": {intstr.FromInt32(0), intstr.FromInt32(1), 3, 2},
		"both":        {intstr.FromInt32(1), intstr.FromInt32(2), 4, 1},
		"neither":     {intstr.FromInt32(0), intstr.FromInt32(0), 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool("one", 3)
			p.MaxSurge, p.MaxUnavailable = test.surge, test.unavailable
			w := newShootWorld(t, p)
			w.mustSettle()
			before := w.cloud.ids()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: before[0]}}
			if err := w.shoot.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			most, least := 0, 99
			w.each = func() {
				active, running := 0, 0
				for _, m := range w.listMachines() {
					if m.DeletionTimestamp == nil {
						active++
						if m.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
							running++
						}
					}
				}
				most, least = max(most, active), min(least, running)
			}
			w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools[0].NodeAgentSecretName = ptr.To("second") })
			w.mustSettle()
			w.expectSucceeded("Reconcile", 3)
			for _, id := range w.cloud.ids() {
				if slices.Contains(before, id) {
					t.Errorf("instance %s is of before", id)
				}
			}
			if most != test.most || least != test.least {
				t.Errorf("at most %d machines, at least %d running; want %d and %d", most, least, test.most, test.least)
			}
			if err := w.shoot.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err == nil {
				t.Error("a pod is left on a Node that is gone")
			}
			classes, sets := &machinev1alpha1.MachineClassList{}, &machinev1alpha1.MachineSetList{}
			if err := errors.Join(w.seed.List(t.Context(), classes), w.seed.List(t.Context(), sets)); err != nil ||
				len(classes.Items) != 1 || len(sets.Items) != 1 {
				t.Errorf("%d classes, %d sets: %v", len(classes.Items), len(sets.Items), err)
			}
		})
	}
}

// TestNodesGo checks that a machine in deletion waits for the API server of its shoot, so that no Node stays, unless the
// Node is not needed any more. A Node that is left is deleted when the API server responds again.
func TestNodesGo(t *testing.T) {
	t.Run("fewer machines", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 1), pool("two", 1))
		w.mustSettle()
		w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools = worker.Spec.Pools[:1] })
		w.down = true
		w.mustSettle()
		all := w.listMachines()
		waits := slices.IndexFunc(all, func(m machinev1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
		if waits < 0 || !strings.Contains(all[waits].Status.LastOperation.Description, "waiting for the API server") || len(w.cloud.ids()) != 2 {
			t.Errorf("machines %+v, instances %v", all, w.cloud.ids())
		}
		w.down = false
		w.mustSettle()
		w.expectSucceeded("Reconcile", 1)
	})
	t.Run("after the instance", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 1), pool("two", 1))
		w.mustSettle()
		w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools = worker.Spec.Pools[:1] })
		w.cloud.deleted = func() { w.down = true }
		w.mustSettle()
		if len(w.listMachines()) != 2 || len(w.cloud.ids()) != 1 {
			t.Errorf("%d machines, instances %v", len(w.listMachines()), w.cloud.ids())
		}
		w.cloud.deleted, w.down = nil, false
		w.mustSettle()
		w.expectSucceeded("Reconcile", 1)
	})
	t.Run("sleep without an API server", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 2))
		w.mustSettle()
		w.hibernate(true)
		w.ask("reconcile", nil)
		w.down = true
		w.mustSettle()
		if left := w.listMachines(); len(left) > 0 {
			t.Errorf("%d machines are left", len(left))
		}
		w.down = false
		w.hibernate(false)
		w.ask("reconcile", nil)
		w.mustSettle()
		w.expectSucceeded("Reconcile", 2)
	})
	t.Run("awake again before one has gone", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 2))
		w.mustSettle()
		w.hibernate(true)
		w.ask("reconcile", nil)
		w.down = true
		_ = w.round()
		w.hibernate(false)
		w.ask("reconcile", nil)
		w.mustSettle()
		w.down = false
		w.mustSettle()
		w.expectSucceeded("Reconcile", 2)
	})
	t.Run("migration while one goes", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 1), pool("two", 1))
		w.mustSettle()
		w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools = worker.Spec.Pools[:1] })
		w.down = true
		w.mustSettle()
		w.migrate()
		w.down = false
		w.mustSettle()
		w.expectSucceeded("Restore", 1)
	})
	t.Run("of another owner", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 1))
		other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{ProviderID: "elsewhere:///other"}}
		if err := w.shoot.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		w.mustSettle()
		if err := w.shoot.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
			t.Error(err)
		}
	})
}

func TestMigration(t *testing.T) {
	w := newShootWorld(t, pool("one", 3, "a", "b"))
	w.mustSettle()
	before, created := w.cloud.ids(), w.cloud.created
	w.migrate()
	w.mustSettle()
	w.expectSucceeded("Restore", 3)
	if !slices.Equal(w.cloud.ids(), before) || w.cloud.created != created {
		t.Errorf("instances %v have become %v", before, w.cloud.ids())
	}
	w.ask("reconcile", nil)
	w.mustSettle()
	w.expectSucceeded("Reconcile", 3)
	if w.cloud.created != created {
		t.Errorf("%d new instances", w.cloud.created-created)
	}
}

// TestChangedBeforeMigration restores a Shoot that was changed shortly before its migration: no machine that it does not need
// any more stays.
func TestChangedBeforeMigration(t *testing.T) {
	t.Run("fewer pools", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 1), pool("two", 2))
		w.mustSettle()
		w.migrate()
		w.ask("restore", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools = worker.Spec.Pools[:1] })
		w.mustSettle()
		w.expectSucceeded("Restore", 1)
	})
	t.Run("another machine type", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 2))
		w.mustSettle()
		w.migrate()
		w.ask("restore", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools[0].MachineType = "local-large" })
		w.mustSettle()
		w.expectSucceeded("Restore", 2)
	})
	t.Run("hibernated", func(t *testing.T) {
		w := newShootWorld(t, pool("one", 2))
		w.mustSettle()
		w.migrate()
		w.hibernate(true)
		w.mustSettle()
		w.expectSucceeded("Restore", 0)
	})
}

// TestMigrationKeepsInstancesOfOthers checks that a migration does not delete an instance in the network of another shoot, even
// if a Machine that is being deleted has its name.
func TestMigrationKeepsInstancesOfOthers(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	w.mustSettle()
	for name, network := range map[string]string{"own": technicalID, "foreign": "shoot--other"} {
		w.cloud.instances[name] = cloud.InstanceSpec{ID: name, Network: network}
		machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: technicalID, Name: name, Finalizers: []string{machines.Finalizer}}}
		w.create(machine)
		if err := w.seed.Delete(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	w.ask("migrate", nil)
	if _, err := w.workers.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.getWorker())}); err != nil {
		t.Fatal(err)
	}
	_, own := w.cloud.instances["own"]
	if _, foreign := w.cloud.instances["foreign"]; own || !foreign {
		t.Errorf("instances %v", w.cloud.ids())
	}
}

// migrate migrates and deletes the Worker, and requests its restoration in another seed.
func (w *shootWorld) migrate() {
	w.Helper()
	w.ask("migrate", nil)
	w.mustSettle()
	old := w.getWorker()
	if err := w.seed.Delete(w.Context(), old); err != nil {
		w.Fatal(err)
	}
	w.mustSettle()
	w.expectNothing()
	w.restoreElsewhere(old)
}

func (w *shootWorld) restoreElsewhere(old *extensionsv1alpha1.Worker) {
	w.Helper()
	w.newSeed()
	fresh := w.worker(old.Spec.Pools...)
	fresh.Annotations = map[string]string{"gardener.cloud/operation": "wait-for-state"}
	w.create(fresh)
	w.start()
	fresh.Status.State = old.Status.State
	if err := w.seed.Status().Update(w.Context(), fresh); err != nil {
		w.Fatal(err)
	}
	w.ask("restore", nil)
}

// phase returns the phase of the only machine, and the description of its last operation.
func (w *shootWorld) phase() (machinev1alpha1.MachinePhase, string) {
	w.Helper()
	all := w.listMachines()
	if len(all) != 1 {
		w.Fatalf("%d machines", len(all))
	}
	return all[0].Status.CurrentStatus.Phase, all[0].Status.LastOperation.Description
}

// setReady changes the condition of the first Node.
func (w *shootWorld) setReady(status corev1.ConditionStatus) {
	w.Helper()
	node := &corev1.Node{}
	if err := w.shoot.Get(w.Context(), client.ObjectKey{Name: w.cloud.ids()[0]}, node); err != nil {
		w.Fatal(err)
	}
	node.Status.Conditions[0].Status = status
	if err := w.shoot.Status().Update(w.Context(), node); err != nil {
		w.Fatal(err)
	}
}

func TestMachineRefusedByCloud(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	w.cloud.refuse = errors.New("no more addresses")
	for range 5 {
		_ = w.round()
	}
	if p, why := w.phase(); p != machinev1alpha1.MachineCrashLoopBackOff || !strings.Contains(why, "no more addresses") {
		t.Errorf("%s: %s", p, why)
	}
	if failure := w.getWorker().Status.LastError; failure == nil || !strings.Contains(failure.Description, "no more addresses") {
		t.Errorf("last error of the Worker: %+v", failure)
	}
	w.cloud.refuse = nil
	w.mustSettle()
	w.expectSucceeded("Create", 1)
}

func TestMachineDoesNotJoin(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	w.deaf = true
	w.mustSettle()
	first := w.cloud.ids()
	w.clock.Step(20*time.Minute - time.Second)
	w.mustSettle()
	if p, _ := w.phase(); p != machinev1alpha1.MachinePending || !slices.Equal(first, w.cloud.ids()) {
		t.Errorf("%s before the time is over", p)
	}
	w.clock.Step(time.Second)
	for range 4 {
		_ = w.round()
	}
	if failure := w.getWorker().Status.LastError; failure == nil || !strings.Contains(failure.Description, "failed to join") {
		t.Errorf("last error of the Worker: %+v", failure)
	}
	w.deaf = false
	w.mustSettle()
	w.expectSucceeded("Create", 1)
	if slices.Equal(first, w.cloud.ids()) {
		t.Error("it was not replaced")
	}
}

func TestMachineWithNodeNotReady(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	w.mustSettle()
	first := w.cloud.ids()
	w.setReady(corev1.ConditionUnknown)
	w.mustSettle()
	if p, _ := w.phase(); p != machinev1alpha1.MachineUnknown {
		t.Errorf("phase %s", p)
	}
	w.clock.Step(9 * time.Minute)
	w.mustSettle()
	w.setReady(corev1.ConditionTrue)
	w.mustSettle()
	w.expectSucceeded("Create", 1)
	w.setReady(corev1.ConditionFalse)
	w.mustSettle()
	w.clock.Step(9 * time.Minute)
	w.mustSettle()
	if !slices.Equal(first, w.cloud.ids()) {
		t.Error("it was replaced too early")
	}
	w.down = true
	w.clock.Step(time.Hour)
	w.mustSettle()
	if !slices.Equal(first, w.cloud.ids()) {
		t.Error("it was replaced while its state was unknown")
	}
	w.down = false
	w.mustSettle()
	w.expectSucceeded("Create", 1)
	if slices.Equal(first, w.cloud.ids()) {
		t.Error("it was not replaced")
	}
}

func TestMachineWithoutInstance(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	w.mustSettle()
	first := w.cloud.ids()
	clear(w.cloud.instances)
	w.mustSettle()
	w.expectSucceeded("Create", 1)
	if slices.Equal(first, w.cloud.ids()) {
		t.Error("it was not replaced")
	}
}

// killStory is an operation during which a process is killed, with a check after another process has completed it.
type killStory struct {
	stride  int
	prepare func(*shootWorld)
	begin   func(*shootWorld)
	check   func(w *shootWorld, before []string)
}

// run kills the process after the first write, then after a later one, until the operation ends before.
func (story killStory) run(t *testing.T) {
	t.Helper()
	stride := max(story.stride, 1)
	if testutil.Soaking() {
		stride = 1
	}
	for n := 1; ; n += stride {
		w := newShootWorld(t, pool("one", 2))
		if story.prepare != nil {
			story.prepare(w)
		}
		before := w.cloud.ids()
		if story.begin != nil {
			story.begin(w)
		}
		w.process.writes, w.process.killAfter = 0, n
		_ = w.settle()
		killed := w.process.dead
		w.start()
		w.down = true // the shoot's API server starts later
		_ = w.round()
		w.down = false
		w.mustSettle()
		story.check(w, before)
		w.shoots.Close()
		if t.Failed() {
			t.Fatalf("killed after write %d", n)
		}
		if !killed {
			if n < 10 {
				t.Fatalf("only %d writes", n)
			}
			return
		}
	}
}

// TestKilled kills the process after each write of an operation (after every third write of the longest one, unless
// GARDENLITE_SOAK is set). A new process must complete the operation.
func TestKilled(t *testing.T) {
	for name, story := range map[string]killStory{
		"creation": {
			check: func(w *shootWorld, _ []string) {
				w.expectSucceeded("Create", 2)
				if w.cloud.created != 2 {
					w.Errorf("%d instances were made", w.cloud.created)
				}
			},
		},
		"rolling": {
			stride:  3,
			prepare: func(w *shootWorld) { w.mustSettle() },
			begin: func(w *shootWorld) {
				w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { worker.Spec.Pools[0].NodeAgentSecretName = ptr.To("second") })
			},
			check: func(w *shootWorld, _ []string) {
				w.expectSucceeded("Reconcile", 2)
				if w.cloud.created != 4 {
					w.Errorf("%d instances were made", w.cloud.created)
				}
			},
		},
		"deletion": {
			prepare: func(w *shootWorld) { w.mustSettle() },
			begin: func(w *shootWorld) {
				if err := w.seed.Delete(w.Context(), w.getWorker()); err != nil {
					w.Fatal(err)
				}
			},
			check: func(w *shootWorld, _ []string) {
				w.expectNothing()
				if len(w.cloud.instances) > 0 {
					w.Errorf("instances are left: %v", w.cloud.ids())
				}
			},
		},
		"migration": {
			prepare: func(w *shootWorld) { w.mustSettle() },
			begin:   func(w *shootWorld) { w.ask("migrate", nil) },
			check: func(w *shootWorld, before []string) {
				w.restoreElsewhere(w.getWorker())
				w.mustSettle()
				w.expectSucceeded("Restore", 2)
				if !slices.Equal(before, w.cloud.ids()) || w.cloud.created != 2 {
					w.Errorf("instances %v have become %v, %d were made", before, w.cloud.ids(), w.cloud.created)
				}
			},
		},
		"restoration": {
			prepare: func(w *shootWorld) { w.mustSettle(); w.migrate() },
			check: func(w *shootWorld, before []string) {
				w.expectSucceeded("Restore", 2)
				if !slices.Equal(before, w.cloud.ids()) || w.cloud.created != 2 {
					w.Errorf("instances %v have become %v, %d were made", before, w.cloud.ids(), w.cloud.created)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story.run(t)
		})
	}
}
