package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// resourceInfo is what the design says of a resource.
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
	core("cloudprofiles", "CloudProfile", false, "cprofile", "cpfl"),
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
	{schema.GroupVersionResource{Group: "operations.gardener.cloud", Version: "v1alpha1", Resource: "bastions"}, "Bastion", true, nil, []string{"status"}},
	{schema.GroupVersionResource{Group: "security.gardener.cloud", Version: "v1alpha1", Resource: "credentialsbindings"}, "CredentialsBinding", true, []string{"cb"}, nil},
	{schema.GroupVersionResource{Group: "security.gardener.cloud", Version: "v1alpha1", Resource: "workloadidentities"}, "WorkloadIdentity", true, []string{"wi"}, []string{"token"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "gardenlets"}, "Gardenlet", true, []string{"gl", "glet"}, []string{"status"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "managedseeds"}, "ManagedSeed", true, []string{"ms"}, []string{"status"}},
	{schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "managedseedsets"}, "ManagedSeedSet", true, []string{"mss"}, []string{"status", "scale"}},
}

func core(resource, kind string, namespaced bool, shortNames ...string) resourceInfo {
	return resourceInfo{schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: resource}, kind, namespaced, shortNames, nil}
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

// client is the client for the objects of a resource.
func client(obj *unstructured.Unstructured, r resourceInfo) dynamic.ResourceInterface {
	gvr := r.gvr
	gvr.Version = obj.GroupVersionKind().Version
	if r.namespaced {
		return dyn.Resource(gvr).Namespace(obj.GetNamespace())
	}
	return dyn.Resource(gvr)
}

// validObjects are the objects of testdata/objects.yaml, renamed so that those of one test are not those of another.
func validObjects(t *testing.T, suffix string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("testdata/objects.yaml")
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
		if obj.GetNamespace() == "garden" {
			obj.SetName(suffix)
		}
		all = append(all, obj)
	}
}

var gardenNamespace sync.Once

// prepareProject makes the project's namespace and the secrets that the objects refer to.
func prepareProject(t *testing.T, suffix string) string {
	t.Helper()
	gardenNamespace.Do(func() { createNamespace(t, "garden", nil) })
	namespace := "garden-" + suffix
	createNamespace(t, namespace, map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": suffix})
	for ns, name := range map[string]string{namespace: "credentials", "garden": "dns"} {
		createSecret(t, ns, name)
	}
	createSecret(t, "garden", "backup")
	return namespace
}

func createNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, created)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func createSecret(t *testing.T, namespace, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"provider.shoot.gardener.cloud/local": "true"}}}
	if _, err := kube.CoreV1().Secrets(namespace).Create(t.Context(), secret, created); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
