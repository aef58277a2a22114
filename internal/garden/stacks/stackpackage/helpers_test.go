package stackpackage

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var timeInPast = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	app = "title: Buckets\nversion: 1.2.3\npermissionScope: Namespaced\n"

	crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.storage.example.org
  annotations: {from: package}
  finalizers: [example.org/keep]
spec:
  group: storage.example.org
  names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
`

	controller = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: bucket-controller
  creationTimestamp: null
  labels: {app.kubernetes.io/name: buckets}
spec:
  selector: {matchLabels: {app: buckets}}
  template:
    metadata: {labels: {app: buckets}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000}
      containers:
      - name: controller
        image: example.org/stacks/buckets:1.2.3
        env: [{name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        securityContext: {privileged: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {}}]
status: {}
`

	controllerJob = `apiVersion: batch/v1
kind: Job
metadata: {name: bucket-setup}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: setup, image: "example.org/stacks/setup:1"}]
`
	crdPath = "resources/storage.example.org/bucket/v1alpha1/bucket.crd.yaml"
)

// valid returns a small package in which files are replaced by the given ones. A file "-" is left out.
func valid(changes map[string]string) Files {
	all := map[string]string{appFile: app, installFile: controller, crdPath: crd}
	maps.Copy(all, changes)
	files := Files{}
	for name, text := range all {
		if text != "-" {
			files[name] = []byte(text)
		}
	}
	return files
}

// replace replaces old, which text must contain.
func replace(text, old, new string) string {
	if !strings.Contains(text, old) {
		panic("there is no " + old)
	}
	return strings.ReplaceAll(text, old, new)
}

// writeFolder writes a package as a folder.
func writeFolder(t *testing.T, dir string, files Files) {
	t.Helper()
	for name, data := range files {
		file := filepath.Join(dir, registryDir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func wantError(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; it should say %q", err, says)
	}
}

// readTar reads the package in a tar archive of the files of an image.
func readTar(r io.Reader) (Files, error) {
	c := newCollector()
	if err := c.readLayer(&io.LimitedReader{R: r, N: maxUnpackedBytes + 1}); err != nil {
		return nil, err
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("there is no folder %s", registryDir)
	}
	return c.files, nil
}
