package stacks

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	containerregistry "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// imageOf returns the OCI image of a package.
func imageOf(t *testing.T, files stackFiles) containerregistry.Image {
	t.Helper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for file, text := range files {
		must(t, archive.WriteHeader(&tar.Header{Name: ".registry/" + file, Mode: 0o644, Size: int64(len(text))}))
		_, err := archive.Write([]byte(text))
		must(t, err)
	}
	must(t, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	must(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	must(t, err)
	return image
}

// TestSources installs the same package from a folder, an archive, an OCI image layout and a registry. A tag that moves
// upgrades nothing, and a digest that does not match is refused.
func TestSources(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	push := func(tag string, files stackFiles) string {
		reference, err := name.ParseReference(host + "/buckets:" + tag)
		must(t, err)
		image := imageOf(t, files)
		must(t, remote.Write(reference, image, remote.WithContext(t.Context())))
		digest, err := image.Digest()
		must(t, err)
		return digest.String()
	}
	files := bucketStack("sources.example.org", "Namespaced", "0.1")
	digest := push("latest", files)
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	files.writeTo(t, folder)
	archive := filepath.Join(dir, "stack.tar")
	suite.Gardenlite(t, shared.dir, "stack", "build", folder, "-f", archive).OK(t)
	images, err := layout.Write(filepath.Join(shared.dir, "stacks", "sources-layout"), empty.Index)
	must(t, err)
	must(t, images.AppendImage(imageOf(t, files)))
	shared.namespace(t, "sources-layout")
	shared.install(t, namespaceInstall, "sources-layout", "buckets", "file://sources-layout")
	shared.ready(t, namespaceInstall, "sources-layout", "buckets", "0.1")
	for namespace, source := range map[string]string{
		"sources-folder": folder, "sources-archive": archive, "sources-tag": host + "/buckets:latest",
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

	push("latest", files.replace(t, "app.yaml", "version: 0.1", "version: 0.2"))
	must(t, shared.kube.AppsV1().Deployments("sources-tag").Delete(t.Context(), "bucket-controller", metav1.DeleteOptions{}))
	shared.exists(t, objectsOf(namespaceInstall, "sources-tag", "buckets"), true)
	shared.ready(t, namespaceInstall, "sources-tag", "buckets", "0.1")
	suite.Gardenlite(t, shared.dir, "stack", "install", host+"/buckets:latest", "-n", "sources-new", "--as", "buckets").OK(t).Shows(t, "0.2")
	suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", "sources-new").OK(t)
	r := suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", "sources-new")
	if r.Code == 0 || !strings.Contains(r.Stderr, "no stack buckets") {
		t.Errorf("uninstalled twice: %d %s", r.Code, r.Stderr)
	}
}
