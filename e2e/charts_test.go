package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

const helmChart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chart returns an archive of these tests' chart, with other files that are added or replaced.
func chart(t *testing.T, others map[string]string) []byte {
	t.Helper()
	folder, files := os.DirFS(filepath.Join("testdata", "chart")), map[string]string{}
	must(t, fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, path)
		files[path] = string(data)
		return err
	}))
	maps.Copy(files, others)
	return testutil.PackChart(t, "sample", files)
}

func rawChart(archive []byte) map[string]any {
	return map[string]any{"rawChart": base64.StdEncoding.EncodeToString(archive)}
}

func (l *landscape) deployments() dynamic.ResourceInterface {
	return l.dyn.Resource(schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1", Resource: "controllerdeployments"})
}

// registerChart registers an extension with a chart that is installed at once.
func (l *landscape) registerChart(t *testing.T, name string, helm map[string]any) {
	t.Helper()
	_, err := l.deployments().Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": map[string]any{"name": name},
		"helm": helm, "injectGardenKubeconfig": true,
	}}, created)
	must(t, err)
	_, err = l.core("controllerregistrations", "").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"deployment": map[string]any{"policy": "Always", "deploymentRefs": []any{map[string]any{"name": name}}}},
	}}, created)
	must(t, err)
}

// setHelm changes fields below helm in a ControllerDeployment.
func (l *landscape) setHelm(t *testing.T, name string, helm map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"helm": helm})
	must(t, err)
	_, err = l.deployments().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// expectCondition waits until a condition of an extension's installation has the status, the reason and, in its
// message, the text.
func (l *landscape) expectCondition(t *testing.T, registration, kind, status, reason, says string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		all, err := l.installations(ctx)
		if err != nil || all[registration] == nil {
			return fmt.Errorf("%s is not installed: %v", registration, err)
		}
		c := conditionOf(all[registration], kind)
		if message, _ := c["message"].(string); c["status"] != status || c["reason"] != reason || !strings.Contains(message, says) {
			return fmt.Errorf("%s is %v, not %s %s %q", kind, c, status, reason, says)
		}
		return nil
	})
}

// charts installs an extension from a chart, breaks it in every way, repairs it, and removes it.
func (l *landscape) charts(t *testing.T) {
	const name = "e2e-chart"
	l.registerChart(t, name, rawChart(chart(t, nil)))
	installation := l.expect(t, name)[name].GetName()
	l.checkInSeed(t, name, installation)
	l.checkChart(t, installation)
	l.breakAndRepair(t, name)
	l.checkChart(t, installation)

	must(t, l.core("controllerregistrations", "").Delete(t.Context(), name, metav1.DeleteOptions{}))
	l.expect(t)
	l.checkGone(t, installation)
	if _, err := l.seeds["local"].RbacV1().ClusterRoles().Get(t.Context(), "e2e-sample", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the chart's ClusterRole is not gone: %v", err)
	}
	secrets, err := l.seeds["local"].CoreV1().Secrets("garden").List(
		t.Context(), metav1.ListOptions{LabelSelector: "controllerinstallation-name=" + installation})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d Secrets with objects of the chart are left, %v", len(secrets.Items), err)
	}
	l.expectNothingForbidden(t)
}

// checkChart expects that the chart's Pods run and have access to the garden, and that the chart got its values.
func (l *landscape) checkChart(t *testing.T, installation string) {
	t.Helper()
	seed, namespace := l.seeds["local"], "extension-"+installation
	pods, err := seed.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=sample"})
	must(t, err)
	running := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
	if len(running) != 2 {
		t.Fatalf("%d Pods of the chart run, not 2", len(running))
	}
	env := map[string]string{}
	for _, variable := range running[0].Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
	}
	if env["SEED_NAME"] != "local" || env["GARDEN_KUBECONFIG"] != "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig" {
		t.Errorf("the environment of the Pods is %v", env)
	}
	i := slices.IndexFunc(running[0].Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == "garden-kubeconfig" })
	if i < 0 {
		t.Fatalf("the Pods have no volume garden-kubeconfig: %v", running[0].Spec.Volumes)
	}
	for _, source := range running[0].Spec.Volumes[i].Projected.Sources {
		secret, err := seed.CoreV1().Secrets(namespace).Get(t.Context(), source.Secret.Name, metav1.GetOptions{})
		must(t, err)
		if len(secret.Data[source.Secret.Items[0].Key]) == 0 {
			t.Errorf("Secret %s has no %s", secret.Name, source.Secret.Items[0].Key)
		}
	}
	told, err := seed.CoreV1().ConfigMaps(namespace).Get(t.Context(), "sample", metav1.GetOptions{})
	must(t, err)
	garden, err := l.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	must(t, err)
	if told.Data["seed"] != "local" || told.Data["identity"] == "" || told.Data["version"] == "" ||
		told.Data["garden"] != garden.Data["cluster-identity"] {
		t.Errorf("the chart is told %v", told.Data)
	}
}

// breakAndRepair expects that each defect is reported, and that the extension is healthy after each repair.
func (l *landscape) breakAndRepair(t *testing.T, name string) {
	t.Helper()
	l.setHelm(t, name, rawChart(chart(t, map[string]string{"templates/more.yaml": "{{ nope }}"})))
	l.expectCondition(t, name, "Valid", "False", "ChartCannotBeRendered", `function "nope" not defined`)
	l.expectCondition(t, name, "Healthy", "True", "ControllerHealthy", "") // what was installed is still there

	l.setHelm(t, name, rawChart(chart(
		t, map[string]string{"templates/more.yaml": "apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: e2e, namespace: default}\n"})))
	l.expectCondition(t, name, "Valid", "True", "RegistrationValid", "")
	l.expectCondition(t, name, "Installed", "False", "InstallationPending", `no matches for kind "Gizmo" in version "example.com/v1"`)
	l.expectCondition(t, name, "Healthy", "False", "ControllerNotHealthy", "Gizmo.example.com default/e2e is missing")
	crds := l.seedDynamic(t).Resource(
		schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err := crds.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gizmos.example.com"},
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Gizmo", "plural": "gizmos"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
	}}, created)
	must(t, err)
	l.expect(t, name)

	l.setHelm(t, name, map[string]any{"values": map[string]any{"priorityClass": "nothing"}})
	l.expectCondition(t, name, "Healthy", "False", "ControllerNotHealthy", "no PriorityClass with name nothing was found")
	l.setHelm(t, name, map[string]any{"values": nil})
	l.expect(t, name)
}

func (l *landscape) seedDynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig-seed-local"))
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client
}

// chartsFromRegistries installs extensions from a registry that requires credentials, and from a folder of the
// landscape.
func (l *landscape) chartsFromRegistries(t *testing.T) {
	archive := chart(t, nil)
	artifact := testutil.NewArtifact(t, helmChart, int64(len(archive)), archive)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "p" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		artifact.ServeHTTP(w, r)
	}))
	t.Cleanup(registry.Close)
	host := strings.TrimPrefix(registry.URL, "http://")
	const fromRegistry, fromFolder = "e2e-registry", "e2e-folder"
	l.registerChart(t, fromRegistry, map[string]any{"ociRepository": map[string]any{"repository": "oci://" + host + "/x/c", "tag": "1"}})
	l.expectCondition(t, fromRegistry, "Valid", "False", "OCIChartCannotBePulled", "basic credential not found")
	credentials := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("u:p")))
	_, err := l.kube.CoreV1().Secrets("garden").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pull", Labels: map[string]string{"gardener.cloud/role": "helm-pull-secret"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(credentials)},
	}, created)
	must(t, err)
	l.setHelm(t, fromRegistry, map[string]any{"ociRepository": map[string]any{"pullSecretRef": map[string]any{"name": "pull"}}})
	l.checkChart(t, l.expect(t, fromRegistry)[fromRegistry].GetName())
	must(t, l.core("controllerregistrations", "").Delete(t.Context(), fromRegistry, metav1.DeleteOptions{}))
	l.expect(t)

	l.registerChart(t, fromFolder,
		map[string]any{"ociRepository": map[string]any{"ref": "layout://sample@" + artifact.Manifest.Digest.String()}})
	l.expectCondition(t, fromFolder, "Valid", "False", "OCIChartCannotBePulled", "no such file or directory")
	testutil.WriteLayout(t, filepath.Join(l.dir, "charts", "sample"), map[string]testutil.Artifact{"1": artifact})
	l.checkChart(t, l.expect(t, fromFolder)[fromFolder].GetName())
	must(t, l.core("controllerregistrations", "").Delete(t.Context(), fromFolder, metav1.DeleteOptions{}))
	l.expect(t)
	l.expectNothingForbidden(t)
}
