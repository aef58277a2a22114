package gardenapi

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// resourceInfo is the expected discovery information of a resource.
type resourceInfo struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	shortNames []string
	// subresources are those beside the object itself.
	subresources []string
}

var gardenResources = []resourceInfo{
	core("backupbuckets", "BackupBucket", false, "bbc").with("status"),
	core("backupentries", "BackupEntry", true, "bec").with("status"),
	core("cloudprofiles", "CloudProfile", false, "cprofile", "cpfl").with("status"),
	core("namespacedcloudprofiles", "NamespacedCloudProfile", true, "nsprofile", "nscpfl").with("status"),
	core("controllerdeployments", "ControllerDeployment", false, "ctrldeploy"),
	core("controllerregistrations", "ControllerRegistration", false, "ctrlreg"),
	core("controllerinstallations", "ControllerInstallation", false, "ctrlinst").with("status"),
	core("exposureclasses", "ExposureClass", false, "expclass", "expcls"),
	core("quotas", "Quota", true, "squota"),
	core("secretbindings", "SecretBinding", true, "sb"),
	core("internalsecrets", "InternalSecret", true, "ins"),
	core("projects", "Project", false).with("status"),
	core("seeds", "Seed", false).with("status"),
	core("shoots", "Shoot", true).with("status", "binding", "adminkubeconfig", "viewerkubeconfig"),
	core("shootstates", "ShootState", true),
	{schema.GroupVersionResource{Group: "operations.gardener.cloud", Version: "v1alpha1", Resource: "bastions"}, "Bastion",
		true, nil, []string{"status"}},
	{schema.GroupVersionResource{Group: "security.gardener.cloud", Version: "v1alpha1", Resource: "credentialsbindings"},
		"CredentialsBinding", true, []string{"cb"}, nil},
	{schema.GroupVersionResource{Group: "security.gardener.cloud", Version: "v1alpha1", Resource: "workloadidentities"},
		"WorkloadIdentity", true, []string{"wi"}, []string{"token"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "gardenlets"},
		"Gardenlet", true, []string{"gl", "glet"}, []string{"status"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "managedseeds"},
		"ManagedSeed", true, []string{"ms"}, []string{"status"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "managedseedsets"},
		"ManagedSeedSet", true, []string{"mss"}, []string{"status", "scale"}},
}

func core(resource, kind string, namespaced bool, shortNames ...string) resourceInfo {
	return resourceInfo{schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: resource},
		kind, namespaced, shortNames, nil}
}

func (r resourceInfo) with(subresources ...string) resourceInfo {
	r.subresources = subresources
	return r
}

func (r resourceInfo) has(subresource string) bool {
	for _, s := range r.subresources {
		if s == subresource {
			return true
		}
	}
	return false
}

func infoOf(t *testing.T, kind string) resourceInfo {
	t.Helper()
	for _, r := range gardenResources {
		if r.kind == kind {
			return r
		}
	}
	t.Fatalf("no resource of kind %s", kind)
	return resourceInfo{}
}

// client returns the client for the objects of a resource.
func client(obj *unstructured.Unstructured, r resourceInfo) dynamic.ResourceInterface {
	gvr := r.gvr
	gvr.Version = obj.GroupVersionKind().Version
	if r.namespaced {
		return dyn.Resource(gvr).Namespace(obj.GetNamespace())
	}
	return dyn.Resource(gvr)
}

// validObjects returns the objects of testdata/objects.yaml, renamed so that tests have objects of their own.
func validObjects(t *testing.T, suffix string) []*unstructured.Unstructured {
	t.Helper()
	return readObjects(t, "testdata/objects.yaml", suffix)
}

func readObjects(t *testing.T, file, suffix string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	data = []byte(strings.ReplaceAll(string(data), "e2e", suffix))
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
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

// prepareProject creates the other objects that these objects refer to: the project's namespace, secrets, and in the
// namespace garden the Shoot that becomes a seed. It returns the namespace.
func prepareProject(t *testing.T, suffix string) string {
	t.Helper()
	namespace := "garden-" + suffix
	createNamespace(t, "garden", map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "garden"})
	createNamespace(t, namespace, map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": suffix})
	createSecret(t, namespace, "credentials")
	for _, name := range []string{"dns", "backup", "credentials"} {
		createSecret(t, "garden", name)
	}
	for _, obj := range readObjects(t, "testdata/garden.yaml", suffix) {
		if _, err := client(obj, infoOf(t, obj.GetKind())).Create(t.Context(), obj, created); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s: %v", obj.GetKind(), err)
		}
	}
	return namespace
}

func createNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := kube.CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, created)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func createSecret(t *testing.T, namespace, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: map[string]string{"provider.shoot.gardener.cloud/local": "true"}}}
	if _, err := kube.CoreV1().Secrets(namespace).Create(t.Context(), secret, created); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
