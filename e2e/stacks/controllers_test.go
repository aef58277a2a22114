package stacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// runs maps the image of a stack's controller to a shell script.
func (l *landscape) runs(t *testing.T, image, script string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "controller")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700))
	suite.Gardenlite(t, l.dir, "image", "run", image, program).OK(t)
}

// TestControllerCrashes: the install reports that the controller crashes, and that it is restarted with a back-off;
// the next version runs.
func TestControllerCrashes(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "crashes")
	files := bucketStack("crashes.example.org", "Namespaced", "0.1").replace(t, "install.yaml", "example.org/buckets", "example.org/crashes")
	shared.runs(t, "example.org/crashes:0.1", "exit 3\n")
	shared.install(t, namespaceInstall, "crashes", "buckets", shared.write(t, "crashes", files))
	shared.becomes(t, namespaceInstall, "crashes", "buckets", "Ready", "False", "CrashLoopBackOff: back-off")
	shared.becomes(t, namespaceInstall, "crashes", "buckets", "Synced", "True", "")
	eventually(t, suite.Timeout, func(context.Context) error { // the container may be running just now
		if r := suite.Gardenlite(t, shared.dir, "stack", "list", "-n", "crashes").OK(t); !strings.Contains(r.Stdout, "CrashLoopBackOff") {
			return errors.New(r.Stdout)
		}
		return nil
	})
	eventually(t, suite.Timeout, func(context.Context) error { // a shell waits two seconds for names, and then shows none
		if r := suite.Command(t, "", suite.Binary, "__complete", "--data-dir", shared.dir, "stack", "describe", "-n", "crashes",
			"").OK(t); !strings.Contains(r.Stdout, "buckets") {
			return fmt.Errorf("the names of stacks are completed to %q", r.Stdout)
		}
		return nil
	})

	shared.runs(t, "example.org/crashes:0.2", "exec tail -f /dev/null\n")
	files = files.replace(t, "app.yaml", "0.1", "0.2").replace(t, "install.yaml", ":0.1", ":0.2")
	shared.install(t, namespaceInstall, "crashes", "buckets", shared.write(t, "crashes-0.2", files))
	shared.ready(t, namespaceInstall, "crashes", "buckets", "0.2")

	// An upgrade to a Deployment that the API refuses does not end the controller.
	deployments := shared.kube.AppsV1().Deployments("crashes")
	before, err := deployments.Get(t.Context(), "bucket-controller", metav1.GetOptions{})
	must(t, err)
	files = files.replace(t, "app.yaml", "0.2", "0.3").replace(t, "install.yaml",
		"{name: controller,", "{name: controller, ports: [{containerPort: 0}],")
	shared.install(t, namespaceInstall, "crashes", "buckets", shared.write(t, "crashes-0.3", files))
	shared.becomes(t, namespaceInstall, "crashes", "buckets", "Synced", "False", "containers[0].ports[0].containerPort")
	if now, err := deployments.Get(t.Context(), "bucket-controller", metav1.GetOptions{}); err != nil || now.UID != before.UID ||
		now.DeletionTimestamp != nil {
		t.Errorf("the controller that runs is ended: %v", err)
	}
}

// TestControllerThatExits: an installation does not say that a controller is ready that exits at once, and says at the end of
// its time what it waits for.
func TestControllerThatExits(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "exits")
	folder := filepath.Join(t.TempDir(), "package")
	bucketStack("exits.example.org", "Namespaced", "0.1").replace(t, "install.yaml", "example.org/buckets", "example.org/exits").writeTo(t,
		folder)
	shared.runs(t, "example.org/exits:0.1", "sleep 0.3\nexit 3\n")
	r := suite.Gardenlite(t, shared.dir, "stack", "install", folder, "-n", "exits", "--timeout", "5s")
	for _, says := range []string{"not within 5s (--timeout)", "is not ready: ", "Pod bucket-controller-"} {
		if r.Code == 0 || !strings.Contains(r.Stderr, says) {
			t.Errorf("exit status %d, errors %q; it should say %q", r.Code, r.Stderr, says)
		}
	}
}

// waitsForFile is a controller that, once it is told to end, waits for a file. It records a second controller beside
// it.
const waitsForFile = `cd DIR
trap 'ending=1; touch ending' TERM
mkdir running || { touch overlap; exit 1; }
while [ -z "$ending" ] || [ ! -e end ]; do sleep 0.05; done
rm end ending
rmdir running
`

// TestControllersTakeTurns: with an upgrade and a downgrade, the old controller ends before the new one begins, and
// instances stay.
func TestControllersTakeTurns(t *testing.T) {
	for kind, scope := range scopes {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			name := "turns-" + strings.ToLower(scope)
			shared.namespace(t, name)
			dir, group := t.TempDir(), strings.ToLower(scope)+".turns.example.org"
			files := bucketStack(group, scope, "0.1").replace(t, "install.yaml", "example.org/buckets", "example.org/"+name).
				replace(t, "install.yaml", "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 60")
			newer := files.replace(t, "app.yaml", "0.1", "0.2").replace(t, "install.yaml", ":0.1", ":0.2")
			packages := map[string]string{"0.1": shared.write(t, name, files), "0.2": shared.write(t, name+"-0.2", newer)}
			for version := range packages {
				shared.runs(t, "example.org/"+name+":"+version, strings.ReplaceAll(waitsForFile, "DIR", dir))
			}
			shared.install(t, kind, name, "buckets", packages["0.1"])
			shared.ready(t, kind, name, "buckets", "0.1")
			buckets := shared.dyn.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "buckets"}).Namespace(name)
			var bucket *unstructured.Unstructured
			eventually(t, suite.Timeout, func(ctx context.Context) (err error) {
				bucket, err = buckets.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": group + "/v1alpha1", "kind": "Bucket", "metadata": map[string]any{"name": "kept"}}}, created)
				return err
			})

			for _, version := range []string{"0.2", "0.1"} {
				fileExists(t, filepath.Join(dir, "running"))
				shared.install(t, kind, name, "buckets", packages[version])
				shared.becomes(t, kind, name, "buckets", "Ready", "False", "to end")
				fileExists(t, filepath.Join(dir, "ending"))
				pods, err := shared.kube.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				if len(pods.Items) != 1 || pods.Items[0].DeletionTimestamp == nil {
					t.Errorf("while the old controller ends: %v", podsOf(pods))
				}
				must(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
				shared.ready(t, kind, name, "buckets", version)
			}
			if _, err := os.Stat(filepath.Join(dir, "overlap")); err == nil {
				t.Error("two controllers ran at the same time")
			}
			if now, err := buckets.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || now.GetUID() != bucket.GetUID() {
				t.Errorf("the instance is not kept: %v", err)
			}
			must(t, buckets.Delete(t.Context(), "kept", metav1.DeleteOptions{}))
			must(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
			shared.uninstall(t, kind, name, "buckets")
		})
	}
}

func fileExists(t *testing.T, path string) {
	t.Helper()
	eventually(t, suite.Timeout, func(context.Context) error {
		_, err := os.Stat(path)
		return err
	})
}

func podsOf(pods *corev1.PodList) (all []string) {
	for _, pod := range pods.Items {
		all = append(all, fmt.Sprintf("%s %s %v", pod.Name, pod.Spec.Containers[0].Image, pod.DeletionTimestamp))
	}
	return all
}

const oldCRD = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: buckets.old.example.org}
spec:
  group: old.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  version: v1alpha1
  subresources: {status: {}}
  additionalPrinterColumns: [{JSONPath: .spec.size, name: SIZE, type: integer}]
  validation:
    openAPIV3Schema:
      properties:
        spec: {properties: {size: {type: integer}}, type: object}
`

// TestPackageOfItsTime installs a package as those of Crossplane v0.4: a CRD of v1beta1, descriptions, icons and
// user interface schemas, and a Job as its controller ("Stack Package Author").
func TestPackageOfItsTime(t *testing.T) {
	t.Parallel()
	const folder = "resources/old.example.org/"
	shared.namespace(t, "old")
	shared.install(t, namespaceInstall, "old", "buckets", shared.write(t, "old", stackFiles{
		"app.yaml": "title: Old buckets\nversion: 0.0.1\npermissionScope: Namespaced\ncategory: Storage\nkeywords: [bucket]\n",
		"icon.svg": "<svg/>",
		"install.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: bucket-setup}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: setup, image: "example.org/setup:1"}]
`,
		folder + "group.yaml":                      "title: Storage\ncategory: Data\noverview: all\noverviewShort: some\nreadme: text\n",
		folder + "ui-schema.yaml":                  "title: Buckets\n",
		folder + "bucket/v1alpha1/bucket.crd.yaml": oldCRD,
		folder + "bucket/resource.yaml": "id: bucket\ntitle: Bucket\ntitlePlural: Buckets\ncategory: C\n" +
			"overview: o\noverviewShort: s\nreadme: r\n",
		folder + "bucket/icon.png": "png",
	}))
	shared.ready(t, namespaceInstall, "old", "buckets", "0.0.1")
	shared.becomes(t, namespaceInstall, "old", "buckets", "Synced", "True", "fields that its schema does not have are dropped")
	crd, err := shared.dyn.Resource(crdResource).Get(t.Context(), "buckets.old.example.org", metav1.GetOptions{})
	must(t, err)
	for key, want := range map[string]string{
		"stack-title": "Old buckets", "icon-data-uri": "data:image/png;base64,cG5n", "ui-schema": "title: Buckets\n",
		"group-title": "Storage", "group-category": "Data", "group-overview": "all", "group-overview-short": "some", "group-readme": "text",
		"resource-title": "Bucket", "resource-title-plural": "Buckets", "resource-category": "C", "resource-overview": "o",
		"resource-overview-short": "s", "resource-readme": "r",
	} {
		if got := crd.GetAnnotations()["stacks.crossplane.io/"+key]; got != want {
			t.Errorf("the annotation %s is %q, not %q", key, got, want)
		}
	}
	job, err := shared.kube.BatchV1().Jobs("old").Get(t.Context(), "bucket-setup", metav1.GetOptions{})
	must(t, err)
	if account := job.Spec.Template.Spec.ServiceAccountName; account != "buckets" {
		t.Errorf("the Job runs as %q", account)
	}
	shared.uninstall(t, namespaceInstall, "old", "buckets")
	shared.exists(t, []place{{crdResource, "", "buckets.old.example.org"},
		{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "old", "bucket-setup"}}, false)
}
