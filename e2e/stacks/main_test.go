// Package stacks tests stacks with the real binary. Its tests share one landscape without seeds, and have namespaces and
// API groups of their own in it; or they start landscapes of their own.
package stacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// shared is the landscape that the tests share.
var shared *landscape

func TestMain(m *testing.M) {
	_, config := suite.Enter("--seeds=0", "--allow-loopback-registry")
	shared = newLandscape(suite.DataDir(), config)
	os.Exit(suite.Run(m))
}

var (
	must       = suite.Must
	eventually = testutil.Eventually
	created    = metav1.CreateOptions{}

	crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	stacks      = stacksResource("stacks")
)

// The kinds of installs, by their resources.
const (
	clusterInstall   = "clusterstackinstalls"
	namespaceInstall = "stackinstalls"
)

func stacksResource(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "stacks.crossplane.io", Version: "v1alpha1", Resource: resource}
}

// landscape is a landscape and its administrator.
type landscape struct {
	dir   string
	admin *rest.Config
	kube  kubernetes.Interface
	dyn   dynamic.Interface
}

func newLandscape(dir string, config *rest.Config) *landscape {
	config.QPS = -1
	return &landscape{dir, config, kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)}
}

// namespace creates a namespace.
func (l *landscape) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := l.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, created)
	must(t, err)
}

// stackFiles are the files of a package. GROUP stands for its API group.
type stackFiles map[string]string

const crdPath = "resources/bucket.crd.yaml"

// bucketStack returns a small package of a stack of the scope, with a CRD and a controller.
func bucketStack(group, scope, version string) stackFiles {
	files := stackFiles{
		"app.yaml": "title: Buckets of GROUP\nversion: " + version + "\npermissionScope: " + scope + "\n",
		"install.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: bucket-controller}
spec:
  replicas: 1
  selector: {matchLabels: {app: buckets}}
  template:
    metadata: {labels: {app: buckets}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: controller, image: "example.org/buckets:` + version + `"}]
`,
		crdPath: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.GROUP}
spec:
  group: GROUP
  names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {size: {type: integer}}}
`,
	}
	return files.in(group)
}

// in replaces GROUP in the files by an API group.
func (f stackFiles) in(group string) stackFiles {
	files := stackFiles{}
	for name, text := range f {
		files[name] = strings.ReplaceAll(text, "GROUP", group)
	}
	return files
}

// replace replaces a text in a file, which has to contain it.
func (f stackFiles) replace(t *testing.T, name, old, new string) stackFiles {
	t.Helper()
	if !strings.Contains(f[name], old) {
		t.Fatalf("%s has no %q", name, old)
	}
	files := f.in("")
	files[name] = strings.ReplaceAll(f[name], old, new)
	return files
}

// with adds or replaces a file.
func (f stackFiles) with(name, text string) stackFiles {
	files := f.in("")
	files[name] = text
	return files
}

// write puts a package where the Stack Manager finds it, and returns its reference.
func (l *landscape) write(t *testing.T, name string, files stackFiles) string {
	t.Helper()
	dir := filepath.Join(l.dir, "stacks", name)
	must(t, os.RemoveAll(dir))
	files.writeTo(t, dir)
	return "file://" + name
}

// writeTo writes a package to a folder.
func (files stackFiles) writeTo(t *testing.T, dir string) {
	t.Helper()
	for file, text := range files {
		path := filepath.Join(dir, ".registry", file)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// install creates an install, or changes the package of an existing one.
func (l *landscape) install(t *testing.T, kind, namespace, name, reference string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stacks.crossplane.io/v1alpha1",
		"kind":       map[string]string{clusterInstall: "ClusterStackInstall", namespaceInstall: "StackInstall"}[kind],
		"metadata":   map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{"package": reference},
	}}
	_, err := l.dyn.Resource(stacksResource(kind)).Namespace(namespace).Apply(
		t.Context(), name, object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	must(t, err)
}

// condition returns the status and the message of an install's condition, for its current generation.
func (l *landscape) condition(ctx context.Context, kind, namespace, name, conditionType string) (status, message string, err error) {
	object, err := l.dyn.Resource(stacksResource(kind)).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", "", err
	}
	if observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); observed != object.GetGeneration() {
		return "", "not seen yet", nil
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditionedStatus", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == conditionType {
			message, _ := c["message"].(string)
			return c["status"].(string), message, nil
		}
	}
	return "", "", nil
}

// becomes waits until a condition of an install has a status, and its message contains a text.
func (l *landscape) becomes(t *testing.T, kind, namespace, name, condition, status, says string) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		is, message, err := l.condition(ctx, kind, namespace, name, condition)
		if err == nil && (is != status || !strings.Contains(message, says)) {
			err = fmt.Errorf("%s %s/%s: %s is %q (%s), not %q (%s)", kind, namespace, name, condition, is, message, status, says)
		}
		return err
	})
}

// ready waits until a stack is ready in a version.
func (l *landscape) ready(t *testing.T, kind, namespace, name, version string) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		stack, err := l.dyn.Resource(stacks).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is, _, _ := unstructured.NestedString(stack.Object, "spec", "version"); is != version {
			return fmt.Errorf("the version is %s, not %s", is, version)
		}
		return nil
	})
	l.becomes(t, kind, namespace, name, "Ready", "True", "")
}

// uninstall deletes an install and waits until it is gone.
func (l *landscape) uninstall(t *testing.T, kind, namespace, name string) {
	t.Helper()
	installs := l.dyn.Resource(stacksResource(kind)).Namespace(namespace)
	must(t, installs.Delete(t.Context(), name, metav1.DeleteOptions{}))
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		object, err := installs.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is still there: %v", object.Object["status"])
		}
		return ignoreNotFound(err)
	})
}
