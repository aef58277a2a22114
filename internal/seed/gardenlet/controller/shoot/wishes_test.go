package shoot

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// TestRolloutWorkers checks that only the named pools get new machines, once, and not again in a later operation.
func TestRolloutWorkers(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		other := s.Spec.Provider.Workers[0]
		other.Name = "p2"
		s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, other)
	}))
	w.settle()
	var told []string
	pools := func() (secrets [2]string) {
		for i, pool := range get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools {
			secrets[i] = *pool.NodeAgentSecretName
		}
		return secrets
	}
	w.before = func(_, verb string, obj client.Object) error {
		if shoot, is := obj.(*corev1beta1.Shoot); is && verb == "status" && shoot.Status.ManualWorkerPoolRollout != nil {
			told = append(told, strings.Join(slices.Sorted(maps.Keys(requestedRollouts(shoot))), ","))
		}
		return nil
	}
	before := pools()
	for _, step := range []struct {
		operation string
		change    func(*corev1beta1.Shoot)
		rolls     [2]bool
	}{
		{operation: "rollout-workers=p2", rolls: [2]bool{false, true}},
		{operation: "reconcile"},
		{change: func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Maximum = 3 }},
		{operation: "rollout-workers=*", rolls: [2]bool{true, true}},
	} {
		told = nil
		shoot := w.requestOperation(step.operation, func(s *corev1beta1.Shoot) {
			if step.change != nil {
				step.change(s)
			}
		})
		after := pools()
		if rolls := [2]bool{after[0] != before[0], after[1] != before[1]}; rolls != step.rolls {
			t.Errorf("%s: rolls %v, want %v", step.operation, rolls, step.rolls)
		}
		if len(requestedRollouts(shoot)) > 0 || shoot.Annotations["gardener.cloud/operation"] != "" {
			t.Errorf("%s: pending afterwards: %v, annotations %v", step.operation, requestedRollouts(shoot), shoot.Annotations)
		}
		if named := map[string]string{"rollout-workers=p2": "p2", "rollout-workers=*": "p1,p2"}[step.operation]; named != "" &&
			!slices.Contains(told, named) {
			t.Errorf("%s: the status told %q", step.operation, told)
		}
		before = after
	}
	// The request is part of the ShootState, and is dropped with its pool.
	state := get(w, w.garden, key.Namespace, "y", &corev1beta1.ShootState{})
	if !slices.ContainsFunc(state.Spec.Gardener, func(d corev1beta1.GardenerResourceData) bool { return d.Name == "worker-pool-rollouts" }) {
		t.Error("the ShootState does not know of it")
	}
	w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = s.Spec.Provider.Workers[:1] })
	if secret := get(w, w.seed, id, "worker-pool-rollouts", &corev1.Secret{}); len(secret.Data) != 1 || len(secret.Data["p1"]) == 0 {
		t.Errorf("%v", secret.Data)
	}
}

// TestNodesApply checks that an operation waits until each node has the new SSH keys, and reports what it waits for.
func TestNodesApply(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	secret := *get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools[0].NodeAgentSecretName
	nodes := map[string]*corev1.Node{}
	applied := get(w, w.inside, "kube-system", secret, &corev1.Secret{}).Annotations[node.AnnotationChecksumSecret]
	for name, of := range map[string]string{"current": secret, "old": "gardener-node-agent-of-before", "other": ""} {
		nodes[name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": of},
				Annotations: map[string]string{node.AnnotationChecksum: applied}}}
		if err := w.inside.Create(t.Context(), nodes[name]); err != nil {
			t.Fatal(err)
		}
	}
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation++
		s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ssh-keypair"}
	})
	w.clock.Step(time.Minute)
	var after time.Duration
	for range 20 {
		var err error
		if after, err = w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.simulate()
	}
	shoot := w.shoot()
	w.expect(shoot.Status.LastOperation, "Reconcile", "Processing", shoot.Status.LastOperation.Progress, stepNodesUpdated)
	if r := shoot.Status.Credentials.Rotation.SSHKeypair; r.LastCompletionTime != nil || after != requeueNodes {
		t.Errorf("%+v, again after %s", r, after)
	}
	data := get(w, w.inside, "kube-system", secret, &corev1.Secret{}).Data["osc.yaml"]
	nodes["current"].Annotations[node.AnnotationChecksum] = node.Checksum(data)
	if err := w.inside.Update(t.Context(), nodes["current"]); err != nil {
		t.Fatal(err)
	}
	if r := w.settle().Status.Credentials.Rotation.SSHKeypair; r.LastCompletionTime == nil {
		t.Errorf("%+v", r)
	}
}

// TestObservability checks that a rotation changes the password for observability components once.
func TestObservability(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	inProject := func() *corev1.Secret { return get(w, w.garden, key.Namespace, "y.monitoring", &corev1.Secret{}) }
	first := inProject()
	if string(first.Data["username"]) != "admin" || len(first.Data["password"]) != 32 ||
		first.Labels["gardener.cloud/role"] != "monitoring" || len(first.OwnerReferences) != 1 {
		t.Errorf("labels %v, owners %v", first.Labels, first.OwnerReferences)
	}
	if w.requestOperation("reconcile"); string(inProject().Data["password"]) != string(first.Data["password"]) {
		t.Error("the password has changed without a request")
	}
	r := w.requestOperation("rotate-observability-credentials").Status.Credentials.Rotation.Observability
	second := inProject()
	if string(second.Data["password"]) == string(first.Data["password"]) || r.LastCompletionTime == nil {
		t.Errorf("the same password: %+v", r)
	}
	if w.requestOperation("reconcile"); string(inProject().Data["password"]) != string(second.Data["password"]) {
		t.Error("it was rotated once more")
	}
	w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Purpose = ptr.To(corev1beta1.ShootPurposeTesting) })
	if inProject().Name != "" || w.secrets()["observability-ingress-users"] != "" {
		t.Error("a Shoot for tests has a password for what it has not")
	}
}

func TestIssuers(t *testing.T) {
	const own, before = "https://issuer.example.com/a", "https://before.example.com"
	for name, test := range map[string]struct {
		config *corev1beta1.ServiceAccountConfig
		wanted []string
	}{
		"none":    {},
		"nothing": {config: &corev1beta1.ServiceAccountConfig{MaxTokenExpiration: &metav1.Duration{Duration: time.Hour}}},
		"own": {config: &corev1beta1.ServiceAccountConfig{Issuer: ptr.To(own), AcceptedIssuers: []string{before, own}},
			wanted: []string{own, before, spec.DefaultIssuer}},
		"accepted": {config: &corev1beta1.ServiceAccountConfig{AcceptedIssuers: []string{before}}, wanted: []string{spec.DefaultIssuer, before}},
	} {
		shoot := aShoot(func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{ServiceAccountConfig: test.config}
		})
		if got := issuers(shoot); !slices.Equal(got, test.wanted) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestIssuer checks that the issuer of service account tokens is passed to the API server, and reported if it is not
// the default.
func TestIssuer(t *testing.T) {
	const own = "https://issuer.example.com/a"
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			ServiceAccountConfig: &corev1beta1.ServiceAccountConfig{Issuer: ptr.To(own)}}
	}))
	check := func(shoot *corev1beta1.Shoot, orders string, tells ...string) {
		t.Helper()
		var told []string
		for _, address := range shoot.Status.AdvertisedAddresses {
			if address.Name == "service-account-issuer" {
				told = append(told, address.URL)
			}
		}
		if got := get(w, w.seed, id, spec.APIServer, &appsv1.Deployment{}).Annotations[spec.AnnotationIssuers]; got != orders ||
			!slices.Equal(told, tells) {
			t.Errorf("orders %q, tells %q", got, told)
		}
	}
	check(w.settle(), own+" "+spec.DefaultIssuer, own)
	check(w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.KubeAPIServer = nil }), "")
}
