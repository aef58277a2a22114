package shootcare

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

const (
	namespace  = "shoot--p--s"
	syncPeriod = 30 * time.Second
	threshold  = time.Minute

	yes, no, maybe, unknown = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionProgressing,
		corev1beta1.ConditionUnknown
)

var key = client.ObjectKey{Namespace: "garden-p", Name: "s"}

// world has a healthy Shoot with one worker pool of one node.
type world struct {
	*Reconciler
	t      *testing.T
	clock  *clocktesting.FakeClock
	server *server
	seed   client.Client
	node   corev1.Node
	lease  coordinationv1.Lease
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	w := &world{t: t, clock: clock, server: newServer(t, namespace, clock, 10*minimumValidity)}
	gardenTypes, seedTypes := runtime.NewScheme(), runtime.NewScheme()
	for _, err := range []error{
		corev1beta1.AddToScheme(gardenTypes), scheme.AddToScheme(seedTypes), extensionsv1alpha1.AddToScheme(seedTypes),
		resourcesv1alpha1.AddToScheme(seedTypes),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1beta1.ShootSpec{
			SeedName: ptr.To("seed"), Kubernetes: corev1beta1.Kubernetes{Version: "1.36.4"},
			Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "p", Minimum: 1, Maximum: 1}}},
		},
		Status: corev1beta1.ShootStatus{
			SeedName: ptr.To("seed"), TechnicalID: namespace,
			LastOperation: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded},
			Conditions:    []conditions.Condition{{Type: "Others", Status: no}},
			Constraints:   []conditions.Condition{{Type: "OthersToo", Status: no}},
		},
	}
	garden := fake.NewClientBuilder().WithScheme(gardenTypes).WithObjects(shoot).WithStatusSubresource(shoot).Build()
	w.seed = fake.NewClientBuilder().WithScheme(seedTypes).WithObjects(w.server.Objects...).
		WithObjects(deployment(spec.APIServer), deployment(spec.ControllerManager),
			&extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}).Build()
	w.Reconciler = &Reconciler{
		Base: controllerutils.Base{GardenClient: garden, GardenReader: garden, SeedClient: w.seed, SeedReader: w.seed, Clock: clock,
			SeedName: "seed"},
		Shoots: &shootaccess.Cache{Seed: w.seed, Clock: clock}, SyncPeriod: syncPeriod,
		Thresholds: map[corev1beta1.ConditionType]time.Duration{corev1beta1.ShootAPIServerAvailable: threshold,
			corev1beta1.ShootEveryNodeReady: threshold},
	}
	t.Cleanup(w.Shoots.Close)
	w.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Labels: map[string]string{"worker.gardener.cloud/pool": "p", "worker.gardener.cloud/gardener-node-agent-secret-name": "osc"},
		Annotations: map[string]string{node.AnnotationChecksum: "sum"},
	}}
	w.node.Status.NodeInfo.KubeletVersion = "v1.36.4"
	w.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	w.lease = coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NewMicroTime(clock.Now()))}}
	w.serve()
	return w
}

func deployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{spec.LabelGardenRole: spec.GardenRoleControlPlane}}}
	d.Spec.Replicas = ptr.To[int32](1)
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	return d
}

// serve makes the Shoot's API server return the node, its Secret and its Lease.
func (w *world) serve() {
	secret := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: node.SecretNamespace, Name: "osc",
		Annotations: map[string]string{node.AnnotationChecksumSecret: "sum"}}}
	w.server.Serve("/api/v1/nodes", &corev1.NodeList{Items: []corev1.Node{w.node}})
	w.server.Serve("/api/v1/namespaces/kube-system/secrets", &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items:    []metav1.PartialObjectMetadata{secret}})
	w.server.Serve("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
		&coordinationv1.LeaseList{Items: []coordinationv1.Lease{w.lease}})
}

func (w *world) shoot() *corev1beta1.Shoot {
	w.t.Helper()
	shoot := &corev1beta1.Shoot{}
	if err := w.GardenClient.Get(w.t.Context(), key, shoot); err != nil {
		w.t.Fatal(err)
	}
	return shoot
}

func (w *world) change(mutate func(*corev1beta1.Shoot)) {
	w.t.Helper()
	shoot := w.shoot()
	mutate(shoot)
	status := shoot.DeepCopy()
	if err := w.GardenClient.Update(w.t.Context(), shoot); err != nil {
		w.t.Fatal(err)
	}
	status.ResourceVersion = shoot.ResourceVersion
	if err := w.GardenClient.Status().Update(w.t.Context(), status); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

// says expects the status and the reason of a condition or constraint. An empty reason matches any reason.
func (w *world) says(kind corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason string) {
	w.t.Helper()
	shoot := w.shoot()
	c := conditions.Find(append(shoot.Status.Conditions, shoot.Status.Constraints...), kind)
	if c.Status != status || reason != "" && c.Reason != reason {
		w.t.Errorf("%s is %s, %s: %s; want %s, %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
}

func TestAllWell(t *testing.T) {
	w := newWorld(t)
	if wait := w.reconcile(); wait != syncPeriod {
		t.Errorf("the next look is after %s", wait)
	}
	for _, kind := range ourConditions {
		w.says(kind, yes, "")
	}
	shoot := w.shoot()
	if n := len(shoot.Status.Conditions); n != len(ourConditions)+1 {
		t.Errorf("%d conditions", n)
	}
	if c := shoot.Status.Constraints; len(c) != 3 || c[0].Type != "OthersToo" || c[1].Status != yes || c[2].Status != yes {
		t.Errorf("constraints %+v", c)
	}
	w.clock.Step(syncPeriod)
	if w.reconcile(); w.shoot().ResourceVersion != shoot.ResourceVersion {
		t.Error("nothing has changed, and the Shoot was written")
	}
	if w.server.Open() != 1 {
		t.Errorf("%d connections", w.server.Open())
	}
}

// TestIgnoredManagedResources checks that the constraint replaces the one of another name that a Shoot of before has.
func TestIgnoredManagedResources(t *testing.T) {
	w := newWorld(t)
	w.change(func(s *corev1beta1.Shoot) {
		s.Status.Constraints = append(s.Status.Constraints, conditions.Condition{Type: "HasIgnoredManagedResources", Status: no})
	})
	managed := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m",
		Annotations: map[string]string{resourcesv1alpha1.Ignore: "true"}}}
	if err := w.seed.Create(t.Context(), managed); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.says("ManagedResourcesHonored", no, "ManagedResourcesIgnored")
	if conditions.Get(w.shoot().Status.Constraints, "HasIgnoredManagedResources") != nil {
		t.Error("the constraint of before is still there")
	}
}

func TestWorkerless(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.change(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil })
	w.reconcile()
	if conditions.Get(w.shoot().Status.Conditions, corev1beta1.ShootEveryNodeReady) != nil {
		t.Error("a Shoot without workers has a condition of its nodes")
	}
}

// A condition that was True is Progressing until the threshold has passed, and then False.
func TestAPIServerFails(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.server.Ready(http.StatusInternalServerError)
	w.clock.Step(time.Second)
	if wait := w.reconcile(); wait != failedSyncPeriod {
		t.Errorf("the next look is after %s", wait)
	}
	w.says(corev1beta1.ShootAPIServerAvailable, maybe, "ReadyzRequestFailed")
	w.says(corev1beta1.ShootEveryNodeReady, unknown, corev1beta1.ConditionCheckError)
	w.says(corev1beta1.ShootSystemComponentsHealthy, unknown, corev1beta1.ConditionCheckError)
	w.says(corev1beta1.ShootControlPlaneHealthy, yes, "")
	w.says(corev1beta1.ShootHibernationPossible, no, "ConstraintNotChecked")
	w.clock.Step(threshold + time.Second)
	w.reconcile()
	w.says(corev1beta1.ShootAPIServerAvailable, no, "ReadyzRequestFailed")
	w.server.Ready(http.StatusOK)
	w.reconcile()
	w.says(corev1beta1.ShootAPIServerAvailable, yes, "ReadyzRequestSucceeded")
	w.says(corev1beta1.ShootHibernationPossible, yes, "NoProblematicWebhooks")
}

// Conditions of a Shoot that is being created are Progressing instead of False.
func TestToleratedFailures(t *testing.T) {
	w := newWorld(t)
	if err := w.seed.Delete(t.Context(), deployment(spec.APIServer)); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *corev1beta1.Shoot) {
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateError}
	})
	w.reconcile()
	w.says(corev1beta1.ShootAPIServerAvailable, maybe, "APIServerDown")
	w.says(corev1beta1.ShootControlPlaneHealthy, maybe, "DeploymentMissing")
	w.says(corev1beta1.ShootMaintenancePreconditionsSatisfied, maybe, "ConstraintNotChecked")
}

func TestHibernated(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	asked := w.server.Requests()
	w.change(func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	if wait := w.reconcile(); wait != 0 {
		t.Errorf("it comes again after %s", wait)
	}
	for _, kind := range ourConditions {
		w.says(kind, yes, "ConditionNotChecked")
	}
	for _, kind := range ourConstraints[:4] {
		w.says(kind, yes, "ConstraintNotChecked")
	}
	if n := w.server.Requests() - asked; n != 0 || w.Shoots.Len() != 0 {
		t.Errorf("%d requests, %d clients", n, w.Shoots.Len())
	}
	version := w.shoot().ResourceVersion
	if w.reconcile(); w.shoot().ResourceVersion != version {
		t.Error("nothing has changed, and the Shoot was written")
	}
}

func TestLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.change(func(s *corev1beta1.Shoot) { s.Status.SeedName, s.Status.Conditions = ptr.To("other"), nil })
	if wait := w.reconcile(); wait != 0 || len(w.shoot().Status.Conditions) != 0 || w.Shoots.Len() != 0 {
		t.Errorf("a Shoot of another seed: again after %s, %+v", wait, w.shoot().Status.Conditions)
	}
}

func TestNodes(t *testing.T) {
	for reason, change := range map[string]func(w *world){
		"NodeUnhealthy":          func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"KubeletVersionMismatch": func(w *world) { w.node.Status.NodeInfo.KubeletVersion = "v1.36.2" },
		"MissingNodes":           func(w *world) { w.node.Labels["worker.gardener.cloud/pool"] = "other" },
		"NodesScalingDown": func(w *world) {
			w.change(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Minimum = 0 })
			other := w.node
			other.Name = "m"
			w.server.Serve("/api/v1/nodes", &corev1.NodeList{Items: []corev1.Node{w.node, other}})
		},
		"OperatingSystemConfigOutdated": func(w *world) { w.node.Annotations[node.AnnotationChecksum] = "before" },
		"TooManyExpiredNodeLeases":      func(w *world) { w.clock.Step(42 * time.Second) },
		"WorkerUnhealthyReport": func(w *world) {
			worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
			worker.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateError}
			worker.Status.LastError = &corev1beta1.LastError{
				Description: "no quota", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}}
			if err := w.seed.Delete(w.t.Context(), worker.DeepCopy()); err != nil {
				w.t.Fatal(err)
			}
			if err := w.seed.Create(w.t.Context(), worker); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		w := newWorld(t)
		w.reconcile()
		served := reason == "NodesScalingDown"
		if change(w); !served {
			w.serve()
		}
		w.reconcile()
		w.says(corev1beta1.ShootEveryNodeReady, maybe, reason)
		w.says(corev1beta1.ShootControlPlaneHealthy, yes, "")
		if reason == "WorkerUnhealthyReport" && len(conditions.Find(w.shoot().Status.Conditions, corev1beta1.ShootEveryNodeReady).Codes) != 1 {
			t.Error("the code of the extension's error is lost")
		}
	}
}

func TestControlPlane(t *testing.T) {
	managed := func(class *string, about string, status corev1beta1.ConditionStatus) *resourcesv1alpha1.ManagedResource {
		m := &resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", Labels: map[string]string{"care.gardener.cloud/condition-type": about}}}
		m.Spec.Class = class
		m.Status.Conditions = []conditions.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: yes}, {Type: resourcesv1alpha1.ResourcesHealthy, Status: status, Reason: "Ill"},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: no},
		}
		return m
	}
	ill := deployment("other")
	ill.Status.Conditions[0].Status = corev1.ConditionFalse
	network := &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
	network.Status.Conditions = []conditions.Condition{{Type: corev1beta1.ShootSystemComponentsHealthy, Status: no, Message: "broken"}}
	for name, test := range map[string]struct {
		object client.Object
		kind   corev1beta1.ConditionType
		reason string
	}{
		"a Deployment":                   {ill, corev1beta1.ShootControlPlaneHealthy, "DeploymentUnhealthy"},
		"a ManagedResource of the seed":  {managed(ptr.To("seed"), "", no), corev1beta1.ShootControlPlaneHealthy, "Ill"},
		"a ManagedResource of the Shoot": {managed(nil, "", no), corev1beta1.ShootSystemComponentsHealthy, "Ill"},
		"a ManagedResource for observation": {managed(ptr.To("seed"), "ObservabilityComponentsHealthy", unknown),
			corev1beta1.ShootObservabilityComponentsHealthy, "Ill"},
		"an extension's report": {network, corev1beta1.ShootSystemComponentsHealthy, "NetworkUnhealthyReport"},
	} {
		w := newWorld(t)
		if err := w.seed.Create(t.Context(), test.object); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		for _, kind := range ourConditions {
			if kind == test.kind {
				w.says(kind, no, test.reason)
			} else if c := conditions.Find(w.shoot().Status.Conditions, kind); c.Status != yes {
				t.Errorf("%s: %s is %s (%s)", name, kind, c.Status, c.Message)
			}
		}
	}
}

func TestExpiringAuthority(t *testing.T) {
	w := newWorld(t)
	w.clock.Step(9*minimumValidity + time.Hour)
	w.lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.clock.Now()))
	w.serve()
	w.reconcile()
	w.says(corev1beta1.ShootCACertificateValiditiesAcceptable, no, "ExpiringCACertificates")
	c := conditions.Find(w.shoot().Status.Constraints, corev1beta1.ShootCACertificateValiditiesAcceptable)
	if !strings.Contains(c.Message, `"ca-client"`) || strings.Contains(c.Message, `"ca" `) {
		t.Errorf("the message is %q", c.Message)
	}
}

func TestOccasions(t *testing.T) {
	shoot := func(state corev1beta1.LastOperationState, progress int32, hibernated bool) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{}
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state, Progress: progress}
		s.Status.IsHibernated = hibernated
		return s
	}
	for name, test := range map[string]struct {
		before, now *corev1beta1.Shoot
		want        bool
	}{
		"goes on":      {shoot("Processing", 10, false), shoot("Processing", 20, false), false},
		"has ended":    {shoot("Processing", 90, false), shoot("Succeeded", 100, false), true},
		"falls asleep": {shoot("Succeeded", 100, false), shoot("Succeeded", 100, true), true},
		"is assigned": {shoot("Succeeded", 100, false), func() *corev1beta1.Shoot {
			s := shoot("Succeeded", 100, false)
			s.Status.SeedName = ptr.To("seed")
			return s
		}(), true},
	} {
		if got := isOccasion(test.before, test.now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
