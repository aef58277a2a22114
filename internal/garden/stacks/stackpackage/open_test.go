package stackpackage

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// newImage returns an image with a compressed layer for each archive, the uppermost one last.
func newImage(t *testing.T, archives ...[]byte) testutil.Artifact {
	t.Helper()
	var layers [][]byte
	for _, archive := range archives {
		layers = append(layers, compress(t, archive, gzip.DefaultCompression))
	}
	return testutil.NewImage(t, layers...)
}

func compress(t *testing.T, content []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func packageArchive(t *testing.T, files Files) []byte {
	t.Helper()
	archive, err := writeTar(files, registryDir+"/")
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// startRegistry starts a registry on a loopback address and returns the address.
func startRegistry(t *testing.T, registry http.Handler) string {
	t.Helper()
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// forPlatforms returns an image for several platforms, of which this one has the given image.
func forPlatforms(t *testing.T, image testutil.Artifact) testutil.Artifact {
	t.Helper()
	image.Manifest.Platform = &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	index, err := json.Marshal(ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{
		{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("other"), Size: 5,
			Platform: &ocispec.Platform{OS: "linux", Architecture: "other"}},
		image.Manifest,
		{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("attestation"), Size: 11,
			Platform: &ocispec.Platform{OS: "unknown", Architecture: "unknown"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	blobs := Files{}
	all := testutil.Artifact{Blobs: map[digest.Digest][]byte{}, Manifest: addBlob(blobs, ocispec.MediaTypeImageIndex, index)}
	all.Blobs[all.Manifest.Digest] = index
	for d, blob := range image.Blobs {
		all.Blobs[d] = blob
	}
	return all
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	writeFolder(t, filepath.Join(dir, "plain"), valid(nil))
	archive := packageArchive(t, valid(nil))
	image := newImage(t, archive)
	platforms := forPlatforms(t, image)
	testutil.WriteLayout(t, filepath.Join(dir, "layout"), map[string]testutil.Artifact{
		"1.2.3": image, "2": newImage(t, archive, writeArchive(t, []entry{{name: "other"}}))})
	testutil.WriteLayout(t, filepath.Join(dir, "platforms"), map[string]testutil.Artifact{"1": platforms})
	docker, err := writeTar(Files{"manifest.json": []byte(`[{"Layers": ["layer.tar.gz"]}]`),
		"layer.tar.gz": compress(t, archive, gzip.DefaultCompression)}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker.tar"), docker, 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, filepath.Join(dir, "plain"), filepath.Join(dir, "oci.tar"))
	address, several := startRegistry(t, image), startRegistry(t, platforms)
	digest := image.Manifest.Digest.String()
	if err := os.Symlink("/", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct{ reference, says string }{
		"folder":                   {"file://plain", ""},
		"docker archive":           {"file://docker.tar", ""},
		"OCI archive":              {"file://oci.tar", ""},
		"OCI archive, by tag":      {"file://oci.tar:1.2.3", ""},
		"layout, by tag":           {"file://layout:1.2.3", ""},
		"layout, by digest":        {"file://layout@" + digest, ""},
		"registry, by tag":         {address + "/stacks/buckets:1", ""},
		"registry, by digest":      {address + "/stacks/buckets@" + digest, ""},
		"layout with two":          {"file://layout", "there are 2 images"},
		"layout, another tag":      {"file://layout:3", "there is no image 3"},
		"tag of a folder":          {"file://plain:1", "a plain folder has no tags"},
		"tag of a docker archive":  {"file://docker.tar:1", "chosen by tag or digest"},
		"nothing":                  {"file://missing", "no such file"},
		"file outside":             {"file://../x", "leads out of its folder"},
		"absolute path":            {"file:///etc", "leads out of its folder"},
		"link that leads out":      {"file://link", "escapes"},
		"registry, another tag":    {address + "/stacks/buckets:2", "not found"},
		"registry, no reference":   {"UPPER", "invalid reference"},
		"registry, no tag":         {address + "/stacks/buckets", "it needs a tag or a digest"},
		"registry, platforms":      {several + "/stacks/buckets:1", ""},
		"layout, platforms":        {"file://platforms", ""},
		"registry, another digest": {address + "/stacks/buckets@sha256:" + strings.Repeat("a", 64), "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(t.Context(), test.reference, Options{Folder: dir, LoopbackRegistry: true})
			if test.says != "" {
				wantError(t, err, test.says)
				return
			}
			if err != nil || p.App.Title != "Buckets" || len(p.CRDs) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			if strings.HasPrefix(name, "registry") && p.Digest != digest {
				t.Errorf("digest %s instead of %s", p.Digest, digest)
			}
		})
	}
	_, err = Open(t.Context(), "file://plain", Options{})
	wantError(t, err, "references to files (file://) are not allowed here")
}

// build builds the package in dir and writes it to a file.
func build(t *testing.T, dir, file string) *Package {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Build(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOpenVerifiesDigests checks that content with a wrong digest is refused, whatever its source.
func TestOpenVerifiesDigests(t *testing.T) {
	archive := packageArchive(t, valid(nil))
	// The altered layer is a valid one: only its digest differs.
	layer, altered := compress(t, archive, gzip.DefaultCompression), newImage(t, archive)
	altered.Blobs[digest.FromBytes(layer)] = compress(t, archive, gzip.NoCompression)
	dir := t.TempDir()
	testutil.WriteLayout(t, filepath.Join(dir, "layout"), map[string]testutil.Artifact{"1": altered})
	_, err := Open(t.Context(), "file://layout", Options{Folder: dir})
	wantError(t, err, "does not match its digest")

	sent := func(image testutil.Artifact, suffix string, content []byte) string {
		return startRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, suffix) {
				image.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // without a length, which would differ, too
			_, _ = w.Write(content)
		}))
	}
	image := newImage(t, archive)
	name := "/stack@" + image.Manifest.Digest.String()
	local := Options{LoopbackRegistry: true}
	_, err = Open(t.Context(), sent(image, "/blobs/"+digest.FromBytes(layer).String(), altered.Blobs[digest.FromBytes(layer)])+name, local)
	wantError(t, err, "does not match its digest")

	other := newImage(t, packageArchive(t, valid(map[string]string{"icon.svg": "other"})))
	_, err = Open(t.Context(), sent(image, "/manifests/"+image.Manifest.Digest.String(), other.Blobs[other.Manifest.Digest])+name, local)
	wantError(t, err, "does not match its digest")
}

// TestLayers checks that an upper layer replaces and removes files of the layers below it, and that other files of an
// image are ignored.
func TestLayers(t *testing.T) {
	lower := packageArchive(
		t, valid(map[string]string{appFile: replace(app, "Buckets", "Old"), "icon.svg": "<svg/>", "resources/x.yaml": "refused"}))
	program := entry{name: "bin/program", content: strings.Repeat("x", 2*maxFileBytes)}
	files, err := readLayersOf(t, lower, writeArchive(t, []entry{
		program, {name: ".registry/app.yaml", content: app}, {name: ".registry/.wh.icon.svg"}, {name: ".registry/resources/.wh.x.yaml"}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := files["icon.svg"]; ok || string(files[appFile]) != app || string(files[installFile]) != controller || len(files) != 3 {
		t.Errorf("%q", files)
	}
	for _, whiteout := range []string{".wh..registry", ".wh..wh..opq", ".registry/.wh..wh..opq"} {
		files, err := readLayersOf(t, lower, writeArchive(t, []entry{{name: whiteout}, {name: ".registry/app.yaml", content: app}}))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: %q, %v", whiteout, files, err)
		}
	}
	_, err = readLayersOf(t, writeArchive(t, []entry{program}))
	wantError(t, err, "no folder .registry")
}

func readLayersOf(t *testing.T, archives ...[]byte) (Files, error) {
	t.Helper()
	var layers []layer
	for _, archive := range archives {
		packed := compress(t, archive, gzip.DefaultCompression)
		layers = append(layers, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil })
	}
	return readLayers(layers)
}

// TestPackedBomb checks that reading a small layer that unpacks to more than the limit is aborted. Its limit is smaller
// than the limit of images, which takes a minute to reach with the race detector.
func TestPackedBomb(t *testing.T) {
	const limit = 4 << 20
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for _, content := range [][]byte{writeArchive(t, []entry{{name: ".registry/app.yaml", content: app}}), make([]byte, limit)} {
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	wantError(t, newCollector().openLayer(open, &io.LimitedReader{N: limit}), "bytes unpacked")
	if err := newCollector().openLayer(open, &io.LimitedReader{N: 2 * limit}); err != nil {
		t.Errorf("below the limit: %v", err)
	}
}

// TestLoopbackRegistry checks that nothing on this machine is asked unless that is allowed, whatever its name.
func TestLoopbackRegistry(t *testing.T) {
	asked := atomic.Bool{}
	address := startRegistry(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "127.0.0.2", "[::1]"} {
		_, err := Open(t.Context(), host+":"+port+"/stack:1", Options{})
		wantError(t, err, "--allow-loopback-registry")
	}
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "localhost", "[::]", "[::ffff:127.0.0.1]"} { // as a name resolves
		connection, err := remote(t.Context(), "tcp", host+":"+port)
		wantError(t, err, "--allow-loopback-registry")
		if err == nil {
			connection.Close()
		}
	}
	if asked.Load() {
		t.Error("the server on this machine was asked")
	}
}

func TestTransport(t *testing.T) {
	for name, test := range map[string]struct{ registry, url, says string }{
		"plain HTTP to another machine": {"example.org", "http://example.org/v2/", "asked with TLS only"},
		"plain HTTP in a private range": {"10.0.0.1:5000", "http://10.0.0.1:5000/v2/", "asked with TLS only"},
		"from here to elsewhere":        {"localhost:5000", "http://example.org/v2/", "asked with TLS only"},
		"from elsewhere to here":        {"example.org", "https://127.0.0.1/v2/", "is on this machine"},
		"without TLS, too":              {"example.org", "http://[::1]:80/v2/", "asked with TLS only"},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := newBoundedTransport(test.registry).RoundTrip(request)
			wantError(t, err, test.says)
			if err == nil {
				response.Body.Close()
			}
		})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) }))
	t.Cleanup(server.Close)
	transport := newBoundedTransport(strings.TrimPrefix(server.URL, "http://"))
	transport.left.Store(150)
	read := func() error {
		response, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	if err := read(); err != nil {
		t.Error(err)
	}
	wantError(t, read(), "sends more than")
}

// TestLargeManifest checks that little is read of a manifest, of which a megabyte could have descriptors of some hundred
// megabytes, and of an error.
func TestLargeManifest(t *testing.T) {
	manifest := []byte(`{"errors":[{"message":"` + strings.Repeat("x", 2*maxManifestBytes) + `"}],"layers":[{}]}`)
	for status, says := range map[int]string{http.StatusOK: "has more than 1048576 bytes", http.StatusForbidden: "response status code 403"} {
		address := startRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(manifest).String())
			if r.Method == http.MethodHead {
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write(manifest)
		}))
		_, err := Open(t.Context(), address+"/name:tag", Options{LoopbackRegistry: true})
		wantError(t, err, says)
		if text := err.Error(); len(text) > 10<<10 {
			t.Errorf("the error has %d bytes", len(text))
		}
	}
}

func TestOpenEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, startRegistry(t, newImage(t))+"/stack:1", Options{LoopbackRegistry: true})
	wantError(t, err, "context canceled")
}

func TestBuild(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	writeFolder(t, dir, valid(map[string]string{"icon.svg": "<svg/>"}))
	if err := os.WriteFile(filepath.Join(dir, "beside"), []byte("not packed"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(out, "1.tar"), filepath.Join(out, "2.tar")
	p := build(t, dir, first)
	if err := os.Chtimes(filepath.Join(dir, registryDir, appFile), timeInPast, timeInPast); err != nil {
		t.Fatal(err)
	}
	build(t, dir, second)
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(second)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("the same package is other bytes: %v", err)
	}
	again, err := Open(t.Context(), "file://1.tar", Options{Folder: out})
	if err != nil || again.Digest != p.Digest || !strings.HasPrefix(p.Digest, "sha256:") {
		t.Errorf("%+v, %v", again, err)
	}
	if bytes.Contains(a, []byte("beside")) {
		t.Error("a file beside the package is packed")
	}

	writeFolder(t, dir, Files{"rbac.yaml": []byte("rules: []")})
	var written bytes.Buffer
	_, err = Build(dir, &written)
	wantError(t, err, "permissions of a stack are implicit")
	if written.Len() > 0 {
		t.Error("something is written of a package that is refused")
	}
}
