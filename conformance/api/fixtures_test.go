package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// gardenFile and objectsFile have an object of each kind of the Gardener API, and what they need.
const (
	gardenFile  = "../../e2e/gardenapi/testdata/garden.yaml"
	objectsFile = "../../e2e/gardenapi/testdata/objects.yaml"
)

// projectNamespace is the namespace of the project with the objects.
const projectNamespace = "garden-diff"

// plurals are the resources whose name is not the lower case of the kind with an s.
var plurals = map[string]string{
	"ExposureClass": "exposureclasses", "BackupEntry": "backupentries", "WorkloadIdentity": "workloadidentities",
}

// pathOf returns the path of the collection of an object.
func pathOf(obj *unstructured.Unstructured) string {
	path := "/apis/" + obj.GetAPIVersion()
	if obj.GetAPIVersion() == "v1" {
		path = "/api/v1"
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		path += "/namespaces/" + namespace
	}
	resource, ok := plurals[obj.GetKind()]
	if !ok {
		resource = strings.ToLower(obj.GetKind()) + "s"
	}
	return path + "/" + resource
}

// makeFixtures creates in both gardens what the attempts are about: the objects of the product's own tests, and those of the
// attempts in files of their own.
func makeFixtures(t *testing.T) {
	t.Helper()
	project := func(name string) values {
		return values{"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
	}
	copyToGardener(t, "/api/v1/namespaces", "garden")
	copyToGardener(t, "/apis/core.gardener.cloud/v1beta1/cloudprofiles", "local")
	copyToGardener(t, "/apis/core.gardener.cloud/v1/controllerdeployments", "")
	copyToGardener(t, "/apis/core.gardener.cloud/v1beta1/controllerregistrations", "")
	create(t, object("Namespace", "", projectNamespace, values{"labels": project("diff")}))
	create(t, object("Namespace", "", "seed-diff", nil))
	create(t, object("Namespace", "", "other", nil))
	for _, at := range []string{projectNamespace + "/credentials", "garden/dns", "garden/backup", "garden/credentials"} {
		namespace, name, _ := strings.Cut(at, "/")
		create(t, object("Secret", namespace, name, values{"labels": values{"provider.shoot.gardener.cloud/local": "true"}}))
	}
	for _, obj := range append(read(t, gardenFile), read(t, objectsFile)...) {
		create(t, obj)
	}
	for name, text := range configurations {
		create(t, object("ConfigMap", projectNamespace, name, values{"data": values{"policy": text, "config.yaml": text}}))
	}
	create(t, object("ConfigMap", projectNamespace, "no-key", values{"data": values{"other": "x"}}))
	create(t, object("Secret", projectNamespace, "authorizer", values{"stringData": values{"kubeconfig": kubeconfigWith(`"token": "t"`)}}))
	create(t, object("Secret", "garden", "domain", values{"labels": domainLabels, "annotations": domain("old.example.com")}))
	create(t, secretBinding("second"))
	for _, name := range []string{"used", "free"} {
		create(t, object("ConfigMap", projectNamespace, name, values{"data": values{"policy": configurations["policy"]}}))
	}
	window := values{"begin": "220000+0100", "end": "230000+0100"}
	mustPatchShoot(t, values{"maintenance": values{"timeWindow": window}, "kubernetes": kubeAPIServer(values{
		"auditConfig": values{"auditPolicy": values{"configMapRef": values{"name": "used"}}},
		"structuredAuthorization": values{"configMapName": "authorization", "kubeconfigs": []any{
			values{"authorizerName": "hook", "secretName": "authorizer"}}}})})
	for _, r := range []request{
		{user: gardenlet, method: http.MethodPost, path: secretsPath(projectNamespace),
			body: object("Secret", projectNamespace, "diff.monitoring", values{"labels": restricted}).Object},
		{user: gardenlet, method: http.MethodPost, path: configMapsPath,
			body: object("ConfigMap", projectNamespace, "diff.ca-kubelet", values{"labels": restricted}).Object},
	} {
		checkCreated(t, r)
	}
}

// copyToGardener creates the object of a name, or all, of a collection of gardenlite in Gardener's garden.
func copyToGardener(t *testing.T, collection, name string) {
	t.Helper()
	list, err := both[1].send(t.Context(), request{user: administrator, method: http.MethodGet, path: collection})
	if err != nil || list.Code != http.StatusOK {
		t.Fatalf("%s: %v, %v", collection, list, err)
	}
	for _, item := range list.Object["items"].([]any) {
		obj := &unstructured.Unstructured{Object: item.(values)}
		if name != "" && obj.GetName() != name {
			continue
		}
		obj.SetResourceVersion("")
		delete(obj.Object, "status")
		a, err := both[0].send(t.Context(), request{user: administrator, method: http.MethodPost, path: collection, body: obj.Object})
		if err != nil || a.Code != http.StatusCreated && a.Code != http.StatusConflict {
			t.Fatalf("%s: %v, %v", collection, a, err)
		}
	}
}

// read returns the objects of a file, with names for this package.
func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(strings.ReplaceAll(string(data), "e2e", "diff"))), 4096)
	var all []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, obj)
	}
}

// create creates an object in both gardens, unless it is there.
func create(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	checkCreated(t, request{user: administrator, method: http.MethodPost, path: pathOf(obj), body: obj.Object})
}

func checkCreated(t *testing.T, r request) {
	t.Helper()
	answers, _ := compare(t, "", r)
	for i, a := range answers {
		if a.Code != http.StatusCreated && a.Code != http.StatusConflict {
			t.Fatalf("%s: POST %s: %s", both[i].name, r.path, a)
		}
	}
}

// object returns one of Kubernetes' own objects.
func object(kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"name": name}}}
	if namespace != "" {
		obj.SetNamespace(namespace)
	}
	for key, value := range fields {
		if key == "labels" || key == "annotations" {
			obj.Object["metadata"].(map[string]any)[key] = value
		} else {
			obj.Object[key] = value
		}
	}
	return obj
}
