package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

func (w *world) replicas(name string) int32 {
	w.Helper()
	return ptr.Deref(get(w, w.seed, id, name, &appsv1.Deployment{}).Spec.Replicas, -1)
}

// order expects that the given writes have happened for the first time in this order.
func (w *world) order(wanted ...string) {
	w.Helper()
	last := -1
	for _, what := range wanted {
		i := slices.Index(w.wrote, what)
		if i < last || i < 0 {
			w.Errorf("%s is not after what comes before it in %v", what, w.wrote)
		}
		last = i
	}
}

func TestOrder(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	w.order("create Namespace", "create Cluster", "create Infrastructure", "create ControlPlane", "create Worker")
	w.order("create Namespace", "create Service", "create Deployment", "create OperatingSystemConfig", "create Worker")
	w.wrote = nil
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	if w.settle() != nil {
		t.Fatal("the Shoot is there")
	}
	w.order("delete Worker", "delete Network", "delete ControlPlane", "delete Deployment", "delete Namespace", "delete Cluster")
	w.order("delete Worker", "delete OperatingSystemConfig", "delete Infrastructure", "delete Namespace")
}

// TestControlPlane checks that the objects of the control plane are as its runner expects them.
func TestControlPlane(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	shoot := w.settle()
	secret := get(w, w.seed, id, spec.SecretName, &corev1.Secret{})
	if missing := spec.MissingKeys(secret.Data); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	d := get(w, w.seed, id, spec.APIServer, &appsv1.Deployment{})
	if d.Spec.Template.Annotations[spec.AnnotationChecksum] == "" || spec.Version(d) != "v1.36.0" ||
		d.Annotations[spec.AnnotationServiceCIDR] != "10.3.0.0/16" ||
		d.Spec.Template.Spec.Containers[0].Image != "registry.k8s.io/kube-apiserver:v1.36.0" {
		t.Errorf("%+v", d)
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		if address.URL != "https://127.0.0.1:4242" {
			t.Errorf("%+v", address)
		}
	}
	if len(shoot.Status.AdvertisedAddresses) != 2 || shoot.Status.Networking == nil || shoot.Status.Networking.Nodes[0] != "10.1.0.0/16" {
		t.Errorf("%+v", shoot.Status)
	}
	before := d.Spec.Template.Annotations[spec.AnnotationChecksum]
	w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.1" })
	d = get(w, w.seed, id, spec.APIServer, &appsv1.Deployment{})
	if spec.Version(d) != "v1.36.1" || d.Spec.Template.Annotations[spec.AnnotationChecksum] != before {
		t.Errorf("%s", spec.Version(d))
	}
}

// TestNodeMask checks that the size of the nodes' ranges is passed to the controllers.
func TestNodeMask(t *testing.T) {
	for name, test := range map[string]struct {
		pods    string
		manager *corev1beta1.KubeControllerManagerConfig
		want    string
	}{
		"none":   {"10.2.0.0/16", nil, ""},
		"IPv4":   {"10.2.0.0/16", &corev1beta1.KubeControllerManagerConfig{NodeCIDRMaskSize: new(int32(26))}, "26"},
		"IPv6":   {"2001:db8::/56", &corev1beta1.KubeControllerManagerConfig{NodeCIDRMaskSize: new(int32(64))}, "64"},
		"IPv6's": {"2001:db8::/56", &corev1beta1.KubeControllerManagerConfig{NodeCIDRMaskSizeIPv6: new(int32(72))}, "72"},
		"IPv4's of both": {"10.2.0.0/16", &corev1beta1.KubeControllerManagerConfig{
			NodeCIDRMaskSize: new(int32(26)), NodeCIDRMaskSizeIPv6: new(int32(72))}, "26"},
	} {
		w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
			s.Spec.Networking.Pods, s.Spec.Kubernetes.KubeControllerManager = &test.pods, test.manager
		}))
		w.settle()
		if got := get(w, w.seed, id, spec.ControllerManager, &appsv1.Deployment{}).Annotations[spec.AnnotationNodeMask]; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestDNSCredentials checks that the credentials of the primary DNS provider are copied, whether they are a Secret or a
// WorkloadIdentity.
func TestDNSCredentials(t *testing.T) {
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "dns"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "t"}}}
	for kind, ref := range map[string]autoscalingv1.CrossVersionObjectReference{
		"Secret":           {APIVersion: "v1", Kind: "Secret", Name: "cloud"},
		"WorkloadIdentity": {APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: "dns"},
	} {
		w := newWorld(t, identity.DeepCopy(), aSeed(), aShoot(func(shoot *corev1beta1.Shoot) {
			shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("y.example.com"),
				Providers: []corev1beta1.DNSProvider{
					{Type: ptr.To("other"), SecretName: ptr.To("of-another-provider")},
					{Type: ptr.To("t"), Primary: ptr.To(true), CredentialsRef: &ref},
				}}
		}))
		w.settle()
		secret := get(w, w.seed, id, "dnsrecord-y-external", &corev1.Secret{})
		isIdentity := secret.Annotations["workloadidentity.security.gardener.cloud/name"] == "dns"
		if isIdentity != (kind == "WorkloadIdentity") || !isIdentity && string(secret.Data["user"]) != "me" {
			t.Errorf("%s: %+v", kind, secret)
		}
	}
}

// TestInside checks what the gardenlet writes into the shoot.
func TestInside(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	role := get(w, w.inside, "", "gardener.cloud:system:read-only", &rbacv1.ClusterRole{})
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"pods", "pods/log"}) {
		t.Errorf("viewers may read %+v", role.Rules)
	}
	for kind, name := range map[string]string{"cluster-identity": id + "-u-garden", "shootName": "y"} {
		data := get(w, w.inside, "kube-system", "shoot-info", &corev1.ConfigMap{}).Data
		if kind == "cluster-identity" {
			data = get(w, w.inside, "kube-system", kind, &corev1.ConfigMap{}).Data
		}
		if data[kind] != name {
			t.Errorf("%s is %v", kind, data)
		}
	}
	worker := get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{})
	nodes := get(w, w.inside, "kube-system", *worker.Spec.Pools[0].NodeAgentSecretName, &corev1.Secret{})
	if !strings.Contains(string(nodes.Data["osc.yaml"]), "kubelet.service") || worker.Spec.Pools[0].UserDataSecretRef.Name == "" {
		t.Errorf("%s", nodes.Data["osc.yaml"])
	}
	agents := get(w, w.inside, "kube-system", "gardener-node-agent", &rbacv1.Role{})
	if len(agents.Rules) != 1 || !slices.Equal(agents.Rules[0].ResourceNames, []string{nodes.Name}) {
		t.Errorf("nodes may read %+v", agents.Rules)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(get(w, w.seed, id, machineControllerSecret, &corev1.Secret{}).Data["kubeconfig"])
	if err != nil || config.Host != "https://127.0.0.1:4242" || len(config.CertData) == 0 {
		t.Errorf("%+v, %v", config, err)
	}
}

func TestHibernation(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	if err := w.inside.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	w.wrote = nil
	shoot := w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	if !shoot.Status.IsHibernated || len(shoot.Status.AdvertisedAddresses) == 0 || w.replicas(spec.APIServer) != 0 ||
		w.replicas(spec.ControllerManager) != 0 {
		t.Errorf("%+v", shoot.Status)
	}
	if get(w, w.inside, "", "n", &corev1.Node{}).Name != "" {
		t.Error("the Node is there")
	}
	w.order("patch Cluster", "patch Worker", "patch Deployment")
	// Another reconciliation does not wake it up.
	w.wrote = nil
	if w.requestOperation("reconcile"); slices.Contains(w.wrote, "patch Deployment") || w.replicas(spec.APIServer) != 0 {
		t.Errorf("wrote %v", w.wrote)
	}
	shoot = w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Hibernation.Enabled = ptr.To(false) })
	if shoot.Status.IsHibernated || w.replicas(spec.APIServer) != 1 || w.replicas(spec.ControllerManager) != 1 {
		t.Errorf("%+v", shoot.Status)
	}
}

// TestBornAsleep checks that a Shoot which is hibernated from the start has secrets, but no API server until it wakes
// up.
func TestBornAsleep(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} }))
	shoot := w.settle()
	w.expect(shoot.Status.LastOperation, "Create", "Succeeded", 100, "")
	if !shoot.Status.IsHibernated || w.replicas(spec.APIServer) != 0 || len(w.secrets()) != 7 || slices.Contains(w.wrote, "create Worker") {
		t.Errorf("%+v, wrote %v", shoot.Status, w.wrote)
	}
	if shoot = w.requestOperation("", func(s *corev1beta1.Shoot) { s.Spec.Hibernation = nil }); shoot.Status.IsHibernated ||
		w.replicas(spec.APIServer) != 1 {
		t.Errorf("%+v", shoot.Status)
	}
	w.order("create Infrastructure", "create Worker")
}

func TestRotations(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	before, hash := w.secrets(), get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools[0].UserDataSecretRef.Name
	bundle := func() int {
		return strings.Count(get(w, w.garden, key.Namespace, "y.ca-cluster", &corev1.ConfigMap{}).Data["ca.crt"], "BEGIN CERTIFICATE")
	}
	server := func(key string) string {
		return string(get(w, w.seed, id, spec.SecretName, &corev1.Secret{}).Data[key])
	}
	serving, signing := server(spec.KeyCA), server(spec.KeyClientCA)
	r := w.requestOperation("rotate-credentials-start").Status.Credentials.Rotation
	if r.CertificateAuthorities.Phase != "Prepared" || r.ServiceAccountKey.Phase != "Prepared" ||
		r.CertificateAuthorities.LastInitiationFinishedTime == nil ||
		r.SSHKeypair.LastCompletionTime == nil || r.Observability.LastCompletionTime == nil || r.ETCDEncryptionKey.Phase != "Prepared" {
		t.Errorf("%+v", r)
	}
	if after := w.secrets(); after["ca.old"] != before["ca"] || after["ssh-keypair.old"] != before["ssh-keypair"] ||
		after["service-account-key.old"] != before["service-account-key"] {
		t.Errorf("%v, then %v", before, after)
	}
	if bundle() != 2 || server(spec.KeyCA) != serving || server(spec.KeyClientCA) == signing ||
		strings.Count(server(spec.KeyServiceAccountBundle), "BEGIN") != 2 {
		t.Error("what is accepted is not both, or servers show the new authority, or clients have the old one")
	}
	if get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools[0].UserDataSecretRef.Name == hash {
		t.Error("the machines are not made new")
	}
	prepared := w.secrets()
	r = w.requestOperation("rotate-credentials-complete").Status.Credentials.Rotation
	if r.CertificateAuthorities.Phase != "Completed" || r.ServiceAccountKey.Phase != "Completed" ||
		r.ETCDEncryptionKey.Phase != "Completed" || r.CertificateAuthorities.LastCompletionTime == nil {
		t.Errorf("%+v", r)
	}
	after := w.secrets()
	if after["ca"] != prepared["ca"] || after["ca.old"] != "" || after["service-account-key.old"] != "" ||
		after["ssh-keypair.old"] == "" || bundle() != 1 || server(spec.KeyCA) == serving {
		t.Errorf("%v, then %v", prepared, after)
	}
	// Only the requested secret is rotated.
	w.requestOperation("rotate-ssh-keypair")
	if last := w.secrets(); last["ssh-keypair.old"] != after["ssh-keypair"] || last["ca"] != after["ca"] {
		t.Errorf("%v, then %v", after, last)
	}
	// The ShootState has the same secrets as the seed.
	state := get(w, w.garden, key.Namespace, "y", &corev1beta1.ShootState{})
	if len(state.Spec.Gardener) != len(w.secrets()) {
		t.Errorf("%d of %d secrets are in the ShootState", len(state.Spec.Gardener), len(w.secrets()))
	}
}

// TestRotationWithoutRollout checks that machines are replaced only on request.
func TestRotationWithoutRollout(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	pool := func() string {
		return get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}).Spec.Pools[0].UserDataSecretRef.Name
	}
	before := pool()
	r := w.requestOperation("rotate-ca-start-without-workers-rollout").Status.Credentials.Rotation.CertificateAuthorities
	if r.Phase != "WaitingForWorkersRollout" || len(r.PendingWorkersRollouts) != 1 || pool() != before {
		t.Errorf("%+v, pool %s, then %s", r, before, pool())
	}
	r = w.requestOperation("rotate-rollout-workers=p1").Status.Credentials.Rotation.CertificateAuthorities
	if r.Phase != "Prepared" || len(r.PendingWorkersRollouts) > 0 || pool() == before {
		t.Errorf("%+v", r)
	}
}

func TestPoolHash(t *testing.T) {
	base := func() (pool, corev1beta1.ShootCredentialsRotation) {
		return pool{version: "1.36.0", Worker: aShoot().Spec.Provider.Workers[0]}, corev1beta1.ShootCredentialsRotation{}
	}
	for name, test := range map[string]struct {
		change func(*pool, *corev1beta1.ShootCredentialsRotation)
		rolls  bool
	}{
		"patch": {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.version = "1.36.9" }, false},
		"wish":  {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.rollout = "1" }, true},
		"minor": {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.version = "1.37.0" }, true},
		"type":  {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.Machine.Type = "other" }, true},
		"image": {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.Machine.Image.Version = ptr.To("2") }, true},
		"volume": {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) {
			p.Volume = &corev1beta1.Volume{VolumeSize: "1Gi"}
		}, true},
		"maximum": {func(p *pool, _ *corev1beta1.ShootCredentialsRotation) { p.Maximum = 9 }, false},
		"ssh keys": {func(_ *pool, r *corev1beta1.ShootCredentialsRotation) {
			r.SSHKeypair = &corev1beta1.ShootSSHKeypairRotation{LastInitiationTime: ptr.To(metav1.Now())}
		}, false},
		"authorities": {func(_ *pool, r *corev1beta1.ShootCredentialsRotation) {
			r.CertificateAuthorities = &corev1beta1.CARotation{LastInitiationTime: ptr.To(metav1.Now())}
		}, true},
	} {
		p, r := base()
		before := poolHash(p, nil, r)
		test.change(&p, &r)
		if rolls := poolHash(p, nil, r) != before; rolls != test.rolls {
			t.Errorf("%s: rolls %t, want %t", name, rolls, test.rolls)
		}
	}
}

// TestExtensionFails checks that the error of an extension, with its codes, becomes that of the Shoot, and that the
// Shoot recovers with it.
func TestExtensionFails(t *testing.T) {
	for code, test := range map[corev1beta1.ErrorCode]struct{ state string }{
		"ERR_INFRA_RESOURCES_DEPLETED": {"Error"}, "ERR_INFRA_QUOTA_EXCEEDED": {"Failed"},
	} {
		w := newWorld(t, aShoot(), aSeed())
		w.fails = map[string]*corev1beta1.LastError{"Infrastructure": {Description: "no room", Codes: []corev1beta1.ErrorCode{code}}}
		var err error
		for range 5 {
			if _, err = w.reconcile(); err != nil {
				break
			}
			w.simulate()
		}
		s := w.shoot().Status
		if string(s.LastOperation.State) != test.state || len(s.LastErrors) != 1 ||
			!slices.Equal(s.LastErrors[0].Codes, []corev1beta1.ErrorCode{code}) ||
			*s.LastErrors[0].TaskID != stepInfraReady || (err != nil) != (test.state == "Error") {
			t.Errorf("%s: %+v, %v", code, s, err)
		}
		w.fails = nil
		if test.state == "Failed" {
			w.change(func(s *corev1beta1.Shoot) { // in the same second
				s.Generation++
				s.Annotations = map[string]string{"gardener.cloud/operation": "retry"}
			})
			w.settle()
		} else { // the extension retries by itself, and its event triggers a reconciliation
			w.clock.Step(time.Second)
			w.simulate()
			if got := w.reconciler.shootOfNamespace(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: id}}); len(got) != 1 {
				t.Errorf("%s: events of the seed do not trigger a reconciliation", code)
			}
			w.settle()
		}
		if s := w.shoot().Status; s.LastOperation.State != "Succeeded" || len(s.LastErrors) > 0 {
			t.Errorf("%s: %+v", code, s)
		}
	}
}

// TestExtensionsAreAskedOnce checks that the flow, which runs many times in an operation, requests each extension once.
func TestExtensionsAreAskedOnce(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	for _, later := range []time.Duration{time.Minute, 0} { // also if both operations request within one second
		w.clock.Step(later)
		w.wrote = nil
		w.change(func(s *corev1beta1.Shoot) { s.Generation++ })
		w.settleIn(0)
		for _, what := range []string{"Infrastructure", "ControlPlane", "Network", "Worker"} {
			if n := len(slices.DeleteFunc(slices.Clone(w.wrote), func(s string) bool { return s != "patch "+what })); n != 1 {
				t.Errorf("after %s %s was written %d times: %v", later, what, n, w.wrote)
			}
		}
	}
}

// TestMigration checks that everything leaves one seed, and arrives at the other with the same secrets and states.
func TestMigration(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	secrets := w.secrets()
	move := func(s *corev1beta1.Shoot) {
		s.Spec.SeedName = ptr.To("b")
		s.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: "False"}}
	}
	w.change(move)
	w.must(requeueSeed)
	w.clock.Step(time.Minute)
	w.wrote = nil
	shoot := w.requestOperation("", func(s *corev1beta1.Shoot) { s.Status.Constraints[0].Status = "True" })
	w.expect(shoot.Status.LastOperation, "Migrate", "Succeeded", 100, "prepared for migration")
	if namespace, cluster := w.inSeed(); shoot.Status.SeedName != nil || namespace.Name != "" || cluster.Name != "" || w.fresh() != nil {
		t.Errorf("seed %v, left %v", shoot.Status.SeedName, w.left())
	}
	w.order("patch Worker", "delete Deployment", "delete Worker", "delete Namespace", "delete Cluster")
	if slices.Contains(w.wrote, "patch Deployment") {
		t.Error("the data's deletion was confirmed")
	}
	w.must(0) // the other seed is responsible now
	w.onSeed("b")
	if shoot = w.settle(); shoot.Status.LastOperation.Type != "Restore" || shoot.Status.LastOperation.State != "Succeeded" {
		t.Errorf("%+v", shoot.Status.LastOperation)
	}
	for name, sum := range w.secrets() {
		if secrets[name] != sum {
			t.Errorf("%s is another one", name)
		}
	}
	worker := get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{})
	if worker.Status.LastOperation.Type != "Restore" || worker.Status.State == nil || string(worker.Status.State.Raw) != `{"of":"Worker"}` {
		t.Errorf("%+v", worker.Status)
	}
	if state := get(w, w.garden, key.Namespace, "y", &corev1beta1.ShootState{}); len(state.Spec.Extensions) > 0 ||
		len(state.Spec.Gardener) != len(secrets) {
		t.Errorf("%+v", state.Spec)
	}
}

// TestHibernationBeforeMigration checks that the machines of a Shoot are restored if its migration begins before its
// hibernation is complete: only a Worker with their state can delete them.
func TestHibernationBeforeMigration(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	w.change(func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	w.moves("b")
	w.onSeed("b")
	shoot := w.settle()
	worker := get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{})
	if worker.Status.State == nil || string(worker.Status.State.Raw) != `{"of":"Worker"}` {
		t.Errorf("the Worker has the state %v", worker.Status.State)
	}
	if !shoot.Status.IsHibernated || w.replicas(spec.APIServer) != 0 {
		t.Errorf("hibernated %t, %d replicas", shoot.Status.IsHibernated, w.replicas(spec.APIServer))
	}
}

// TestKilledWhileNamespaceIsDeleted checks that a migration that begins again does not take the secrets which are left in the
// namespace for all secrets of the Shoot.
func TestKilledWhileNamespaceIsDeleted(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	namespace, _ := w.inSeed()
	namespace.Finalizers = []string{"kubernetes"}
	if err := w.seed.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation++
		s.Spec.SeedName = ptr.To("b")
		s.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: "True"}}
	})
	for n := 0; namespace.DeletionTimestamp == nil; n++ {
		if _, err := w.reconcile(); err != nil || n > 60 {
			t.Fatalf("after %d reconciliations: %v", n, err)
		}
		w.simulate()
		w.clock.Step(time.Second)
		namespace, _ = w.inSeed()
	}
	secrets := func() int { return len(get(w, w.garden, key.Namespace, "y", &corev1beta1.ShootState{}).Spec.Gardener) }
	before := secrets()
	if err := w.seed.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "ca"}}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if after := secrets(); before == 0 || after != before {
		t.Errorf("the ShootState has %d secrets, and had %d", after, before)
	}
}

// TestDeletedOnTheWay checks that a Shoot which is deleted between two seeds is restored first, so that it can be
// deleted from there.
func TestDeletedOnTheWay(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	w.moves("b")
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	w.onSeed("b")
	w.wrote = nil
	if w.settle() != nil {
		t.Error("the Shoot is there")
	}
	w.order("create Infrastructure", "create Worker", "delete Worker", "delete Infrastructure")
}

// TestRestoreNeedsSecrets checks that a restoration fails without a ShootState: a new CA would not be the Shoot's.
func TestRestoreNeedsSecrets(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Status.SeedName, s.Status.TechnicalID, s.Status.UID = ptr.To("a"), id, "u"
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}
	}))
	if _, err := w.reconcile(); err == nil || len(w.secrets()) > 0 {
		t.Errorf("%v, secrets %v", err, w.secrets())
	}
	w.expect(w.shoot().Status.LastOperation, "Restore", "Error", 0, "ShootState")
}

func TestBastionsGoFirst(t *testing.T) {
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "b"},
		Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "y"}}}
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	for _, err := range []error{w.garden.Create(t.Context(), bastion), w.garden.Delete(t.Context(), w.shoot())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.wrote = nil
	w.must(requeueWaiting)
	if len(w.wrote) > 0 {
		t.Errorf("wrote %v", w.wrote)
	}
	if err := w.garden.Delete(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	if w.settle() != nil {
		t.Error("the Shoot is there")
	}
}

// TestConfined checks that changes which are confined to the maintenance time window wait for it.
func TestConfined(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Spec.Maintenance = &corev1beta1.Maintenance{ConfineSpecUpdateRollout: ptr.To(true),
			TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}}
	}))
	w.settle()
	w.wrote = nil
	w.clock.Step(2 * time.Hour) // longer than the period
	if after, err := w.reconcile(); err != nil || len(w.wrote) > 0 || after < 19*time.Hour || after > 21*time.Hour {
		t.Errorf("again after %s: %v, wrote %v", after, err, w.wrote)
	}
	w.clock.Step(20*time.Hour + 10*time.Minute)
	if w.settle(); len(w.wrote) == 0 {
		t.Error("nothing was done in the window")
	}
	w.wrote = nil
	if after, err := w.reconcile(); err != nil || len(w.wrote) > 0 || after < 23*time.Hour {
		t.Errorf("again after %s: %v", after, err)
	}
}

// TestInjection checks that the simulator's annotations on the Shoot are copied to its Infrastructure and Worker, and those
// for a kind to the resources of that.
func TestInjection(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Annotations = map[string]string{"gardenlite.dev/delay": "3s", "gardenlite.dev/delay.Network": "4s"}
	}))
	w.settle()
	for obj, wanted := range map[client.Object]string{&extensionsv1alpha1.Infrastructure{}: "3s",
		&extensionsv1alpha1.Worker{}: "3s", &extensionsv1alpha1.Network{}: "4s", &extensionsv1alpha1.ControlPlane{}: ""} {
		if got := get(w, w.seed, id, "y", obj).GetAnnotations()["gardenlite.dev/delay"]; got != wanted {
			t.Errorf("%T: %q", obj, got)
		}
	}
}
