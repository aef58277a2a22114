package stacks

import (
	"archive/tar"
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// imageOf returns the OCI image of a package.
func imageOf(t *testing.T, files stackFiles) *testutil.Artifact {
	t.Helper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for file, text := range files {
		must(t, archive.WriteHeader(&tar.Header{Name: ".registry/" + file, Mode: 0o644, Size: int64(len(text))}))
		_, err := archive.Write([]byte(text))
		must(t, err)
	}
	must(t, archive.Close())
	image := testutil.NewImage(t, content.Bytes())
	return &image
}

// TestSources installs the same package from a folder, an archive, an OCI image layout and a registry. A tag that moves
// upgrades nothing, and a digest that does not match is refused.
func TestSources(t *testing.T) {
	t.Parallel()
	var image atomic.Pointer[testutil.Artifact]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { image.Load().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	files := bucketStack("sources.example.org", "Namespaced", "0.1")
	first := imageOf(t, files)
	image.Store(first)
	digest := first.Manifest.Digest.String()
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	files.writeTo(t, folder)
	archive := filepath.Join(dir, "stack.tar")
	suite.Gardenlite(t, shared.dir, "stack", "build", folder, "-f", archive).OK(t)
	testutil.WriteLayout(t, filepath.Join(shared.dir, "stacks", "sources-layout"), map[string]testutil.Artifact{"1": *first})
	shared.namespace(t, "sources-layout")
	shared.install(t, namespaceInstall, "sources-layout", "buckets", "file://sources-layout")
	shared.ready(t, namespaceInstall, "sources-layout", "buckets", "0.1")
	for namespace, source := range map[string]string{
		"sources-folder": folder, "sources-archive": archive, "sources-tag": host + "/buckets:1",
		"sources-digest": host + "/buckets@" + digest,
	} {
		suite.Gardenlite(t, shared.dir, "stack", "install", source, "-n", namespace, "--as", "buckets").OK(t).Shows(
			t, namespace+"/buckets is ready", "0.1")
	}
	suite.Gardenlite(t, shared.dir, "stack", "list", "-n", "sources-tag").OK(t).Shows(t, "sources-tag", "buckets", "Namespaced", "True", "0.1")
	suite.Gardenlite(t, shared.dir, "stack", "describe", "buckets", "-n", "sources-tag").OK(t).Shows(
		t, digest, "buckets.sources.example.org", "StackInstall")

	shared.namespace(t, "sources-bad")
	shared.install(t, namespaceInstall, "sources-bad", "buckets", host+"/buckets@sha256:"+strings.Repeat("0", 64))
	shared.becomes(t, namespaceInstall, "sources-bad", "buckets", "Synced", "False", "sha256:000")

	second := imageOf(t, files.replace(t, "app.yaml", "version: 0.1", "version: 0.2"))
	maps.Copy(second.Blobs, first.Blobs)
	image.Store(second)
	must(t, shared.kube.AppsV1().Deployments("sources-tag").Delete(t.Context(), "bucket-controller", metav1.DeleteOptions{}))
	shared.exists(t, objectsOf(namespaceInstall, "sources-tag", "buckets"), true)
	shared.ready(t, namespaceInstall, "sources-tag", "buckets", "0.1")
	suite.Gardenlite(t, shared.dir, "stack", "install", host+"/buckets:1", "-n", "sources-new", "--as", "buckets").OK(t).Shows(t, "0.2")
	suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", "sources-new").OK(t)
	r := suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", "sources-new")
	if r.Code == 0 || !strings.Contains(r.Stderr, "no stack buckets") {
		t.Errorf("uninstalled twice: %d %s", r.Code, r.Stderr)
	}
}
