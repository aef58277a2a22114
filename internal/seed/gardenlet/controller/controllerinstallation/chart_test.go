package controllerinstallation

import (
	"fmt"
	"strings"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const (
	workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: "{{ .Release.Namespace }}"}
spec: {template: {spec: {containers: [{name: c}]}}}
`
	told = `
apiVersion: v1
kind: ConfigMap
metadata: {name: told, namespace: "{{ .Release.Namespace }}"}
data:
  release: {{ .Release.Name }}
  version: {{ .Values.gardener.version }}
  garden: {{ .Values.gardener.garden.clusterIdentity }}
  kubeconfig: {{ .Values.gardener.garden.genericKubeconfigSecretName | quote }}
  gates: {{ .Values.gardener.gardenlet.featureGates | toJson | quote }}
  seed: {{ .Values.gardener.seed.name }} {{ .Values.gardener.seed.clusterIdentity }} {{ .Values.gardener.seed.spec.provider.zones }}
  own: '{{ .Values.own }} {{ .Values.gardener.kept }}'
  protected: {{ .Values.gardener.seed.protected }}
`
)

// helm returns a ControllerDeployment with a chart of the given templates.
func helm(t *testing.T, templates ...string) *gardencorev1.ControllerDeployment {
	t.Helper()
	return &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Helm: &gardencorev1.HelmControllerDeployment{RawChart: pack(t, templates...)}}
}

func pack(t *testing.T, templates ...string) []byte {
	t.Helper()
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	for i, text := range templates {
		files[fmt.Sprintf("templates/%d.yaml", i)] = text
	}
	return testutil.PackChart(t, "c", files)
}

// valid returns the condition Valid of the installation.
func (w world) valid() conditions.Condition {
	w.Helper()
	return conditions.Find(w.installation().Status.Conditions, corev1beta1.ControllerInstallationValid)
}

// objects returns the objects in the ManagedResource of the installation, empty if there are none.
func (w world) objects() string {
	w.Helper()
	resource := managedResource(w.installation())
	if !w.exists(w.seed, resource) || len(resource.Spec.SecretRefs) == 0 {
		return ""
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: resource.Spec.SecretRefs[0].Name}}
	if !w.exists(w.seed, secret) {
		w.Fatalf("the Secret %s of the ManagedResource is not there", secret.Name)
	}
	return string(secret.Data["objects.yaml"])
}

func TestChart(t *testing.T) {
	deployment := helm(t, workload, told)
	deployment.InjectGardenKubeconfig = ptr.To(true)
	deployment.Helm.Values = &apiextensionsv1.JSON{
		Raw: []byte(`{"own": "{{ .resources.r.data.k }}", "gardener": {"version": "0", "kept": "kept"}}`)}
	deployment.Resources = []gardencorev1.NamedResourceReference{{Name: "r", ResourceRef: resourceRef("Secret", "values")}}
	w := newWorld(t, deployment)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "values",
		Labels: map[string]string{"gardener.cloud/role": "resource-reference"}},
		Data: map[string][]byte{"k": []byte("{{ $x }}")}}
	w.must(w.garden.Create(t.Context(), secret))
	w.run()
	if got := w.valid(); got.Reason != "RegistrationValid" {
		t.Fatalf("%+v", got)
	}
	objects := w.objects()
	for _, want := range []string{
		"release: x\n", "version: 1.2.3\n", "garden: garden-id\n", `gates: '{"A":true}'`, "seed: local id [a b]\n",
		"own: '{{ $x }} kept'\n", "kubeconfig: generic-garden-kubeconfig-",
		"namespace: extension-x-1\n", "name: SEED_NAME\n", "name: GARDEN_KUBECONFIG\n", "name: garden-access-extension\n",
	} {
		if !strings.Contains(objects, want) {
			t.Errorf("the objects have no %q:\n%s", want, objects)
		}
	}
	if !w.exists(w.seed, accessSecret(w.installation())) {
		t.Error("it has no access to the garden")
	}
	before := w.secrets()
	w.change(func(deployment *gardencorev1.ControllerDeployment) { deployment.Helm.RawChart = pack(t, told) })
	w.run()
	if w.exists(w.seed, accessSecret(w.installation())) || strings.Contains(w.objects(), "controller") {
		t.Error("no workload is left, but access to the garden is")
	}
	if after := w.secrets(); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("Secrets with objects: %v, then %v", before, after)
	}
	w.must(w.garden.Delete(t.Context(), w.installation()))
	for i := 0; w.exists(w.garden, w.installationKey()) && i < 5; i++ {
		w.run()
	}
	if left := w.secrets(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func resourceRef(kind, name string) (ref autoscalingv1.CrossVersionObjectReference) {
	return autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: name}
}

// secrets returns the names of the Secrets with the objects of the installation.
func (w world) secrets() (names []string) {
	w.Helper()
	all := &corev1.SecretList{}
	w.must(w.seed.List(w.Context(), all, client.InNamespace("garden")))
	for _, secret := range all.Items {
		names = append(names, secret.Name)
	}
	return names
}

func (w world) change(change func(*gardencorev1.ControllerDeployment)) {
	w.Helper()
	deployment := &gardencorev1.ControllerDeployment{}
	w.must(w.garden.Get(w.Context(), client.ObjectKey{Name: "d"}, deployment))
	change(deployment)
	w.must(w.garden.Update(w.Context(), deployment))
}

// TestBrokenChartLater checks that the installed objects stay while the chart is broken, and are updated when it is
// repaired.
func TestBrokenChartLater(t *testing.T) {
	w := newWorld(t, helm(t, told))
	w.run()
	before := w.objects()
	w.change(func(deployment *gardencorev1.ControllerDeployment) { deployment.Helm.RawChart = pack(t, "{{ nope }}") })
	w.run()
	if got := w.valid(); got.Reason != "ChartCannotBeRendered" || !strings.Contains(got.Message, `function "nope" not defined`) ||
		w.objects() != before {
		t.Errorf("%+v; before %s, now %s", got, before, w.objects())
	}
	w.change(func(deployment *gardencorev1.ControllerDeployment) { deployment.Helm.RawChart = pack(t, workload) })
	w.run()
	if got := w.valid(); got.Reason != "RegistrationValid" || !strings.Contains(w.objects(), "controller") {
		t.Errorf("%+v; now %s", got, w.objects())
	}
}

func TestValid(t *testing.T) {
	oci := func(reference string) *gardencorev1.HelmControllerDeployment {
		return &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{Ref: &reference}}
	}
	secret := oci("127.0.0.1:1/c:1")
	secret.OCIRepository.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	for name, test := range map[string]struct {
		helm         *gardencorev1.HelmControllerDeployment
		reason, says string // no reason if the gardenlet is not responsible
		again        bool   // the reconciliation is retried
	}{
		"another type": {},
		"no chart":     {&gardencorev1.HelmControllerDeployment{}, "ChartInformationInvalid", "it needs a chart", false},
		"values": {&gardencorev1.HelmControllerDeployment{Values: &apiextensionsv1.JSON{Raw: []byte("[1]")}},
			"ChartInformationInvalid", "helm.values must be an object", false},
		"no archive": {&gardencorev1.HelmControllerDeployment{RawChart: []byte("x")}, "ChartCannotBeRendered", "helm package", false},
		"template":   {helm(t, "{{ nope }}").Helm, "ChartCannotBeRendered", "c/templates/0.yaml", false},
		"chart":      {helm(t, told).Helm, "RegistrationValid", "rendered", false},
		"empty reference": {&gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{}},
			"OCIChartCannotBePulled", "names no chart", false},
		"no registry":    {oci("127.0.0.1:1/c:1"), "OCIChartCannotBePulled", "connection refused", true},
		"no folder":      {oci("layout://c:1"), "OCIChartCannotBePulled", "no folder of OCI layouts", true},
		"no pull secret": {secret, "OCIChartCannotBePulled", `secrets "pull" not found`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Helm: test.helm})
			_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "x-1"}})
			got := w.valid()
			if got.Reason != test.reason || !strings.Contains(got.Message, test.says) || test.again != (err != nil) {
				t.Errorf("%+v, %v", got, err)
			}
			if good := test.reason == "RegistrationValid"; good != (got.Status == corev1beta1.ConditionTrue) ||
				good != w.exists(w.seed, managedResource(w.installation())) {
				t.Errorf("Valid is %s", got.Status)
			}
			if w.exists(w.seed, accessSecret(w.installation())) {
				t.Error("it has access to the garden without asking")
			}
		})
	}
}

// TestResources checks that the condition names a resource that cannot be used.
func TestResources(t *testing.T) {
	for name, test := range map[string]struct{ kind, key, says string }{
		"missing":        {"ConfigMap", "k", `configmaps "values" not found`},
		"without label":  {"Secret", "k", "needs the label gardener.cloud/role: resource-reference"},
		"without key":    {"Secret", "other", "there is no such key"},
		"of other kinds": {"Pod", "k", "not a Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := helm(t, told)
			deployment.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(`{"own": "{{ .resources.r.data.` + test.key + ` }}"}`)}
			deployment.Resources = []gardencorev1.NamedResourceReference{{Name: "r", ResourceRef: resourceRef(test.kind, "values")}}
			w := newWorld(t, deployment)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "values"}, Data: map[string][]byte{"k": []byte("v")}}
			if test.key == "other" {
				secret.Labels = map[string]string{"gardener.cloud/role": "resource-reference"}
			}
			w.must(w.garden.Create(t.Context(), secret))
			if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "x-1"}}); err == nil {
				t.Error("it is not tried again")
			}
			if got := w.valid(); got.Reason != "RenderingHelmValuesFailed" || !strings.Contains(got.Message, test.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
