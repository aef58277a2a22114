package charts

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns}
spec:
  template:
    spec:
      initContainers: [{name: i}]
      containers:
      - name: c
        env: [{name: SEED_NAME, value: mine}, {name: X, value: "1"}]
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func typed[T any](t *testing.T, obj *unstructured.Unstructured) (out T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInject(t *testing.T) {
	obj := object(t, deployment)
	if !IsWorkloadIn(obj, "ns") || IsWorkloadIn(obj, "other") || !WantsGarden(obj) {
		t.Error("a Deployment in its namespace is a workload that wants access to the garden")
	}
	InjectGardenKubeconfig(obj, "generic", "token")
	InjectGardenKubeconfig(obj, "generic", "token") // it is there already
	SetEnv(obj, "SEED_NAME", "local")
	spec := typed[appsv1.Deployment](t, obj).Spec.Template.Spec
	if len(spec.Volumes) != 1 || spec.Volumes[0].Name != "garden-kubeconfig" || *spec.Volumes[0].Projected.DefaultMode != 0o644 {
		t.Fatalf("volumes %+v", spec.Volumes)
	}
	for i, want := range []struct{ secret, key string }{{"generic", "kubeconfig"}, {"token", "token"}} {
		source := spec.Volumes[0].Projected.Sources[i].Secret
		if source.Name != want.secret || source.Items[0] != (corev1.KeyToPath{Key: want.key, Path: want.key}) || *source.Optional {
			t.Errorf("source %+v, not %v", source, want)
		}
	}
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		env := map[string]string{}
		for _, variable := range container.Env {
			env[variable.Name] = variable.Value
		}
		if env["GARDEN_KUBECONFIG"] != "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig" || env["SEED_NAME"] != "local" {
			t.Errorf("container %s: environment %v", container.Name, env)
		}
		if len(container.VolumeMounts) != 1 || container.VolumeMounts[0].MountPath != GardenMountPath || !container.VolumeMounts[0].ReadOnly {
			t.Errorf("container %s: mounts %+v", container.Name, container.VolumeMounts)
		}
	}
}

func TestInjectElsewhere(t *testing.T) {
	cron := object(t, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j, namespace: ns}\n"+
		"spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}\n")
	InjectGardenKubeconfig(cron, "generic", "token")
	if len(typed[batchv1.CronJob](t, cron).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env) != 1 {
		t.Errorf("a CronJob: %v", cron)
	}
	own := object(t, "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: ns}\n"+
		"spec: {template: {spec: {containers: [{name: c, env: [{name: GARDEN_KUBECONFIG, value: mine}]}]}}}\n")
	InjectGardenKubeconfig(own, "generic", "token")
	if len(typed[appsv1.StatefulSet](t, own).Spec.Template.Spec.Volumes) > 0 {
		t.Errorf("one that brings its own: %v", own)
	}
	refuses := object(t, deployment)
	refuses.SetLabels(map[string]string{"extensions.gardener.cloud/inject-garden-kubeconfig": "false"})
	if WantsGarden(refuses) {
		t.Error("a workload with the label gets access")
	}
	for _, text := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: ns}\n",
		"apiVersion: apps.example.com/v1\nkind: Deployment\nmetadata: {name: s, namespace: ns}\n",
	} {
		if IsWorkloadIn(object(t, text), "ns") {
			t.Errorf("no workload: %s", text)
		}
	}
	broken := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec: {template: x}\n")
	InjectGardenKubeconfig(broken, "generic", "token") // the API server says what is wrong with it
}

// Pods get the token of their ServiceAccount, unless it is the default one or the workload says that they get none.
func TestMountToken(t *testing.T) {
	for spec, want := range map[string]any{
		"serviceAccountName: own": true, "serviceAccountName: own, automountServiceAccountToken: false": false,
		"serviceAccountName: default": nil, "": nil,
	} {
		obj := object(t, "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {"+spec+"}}}")
		MountToken(obj)
		if got, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "template", "spec", "automountServiceAccountToken"); got != want {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}
