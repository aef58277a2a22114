package stackpackage

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	imagelayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// newImage returns an image with a compressed layer for each archive, the uppermost one last.
func newImage(t *testing.T, archives ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, archive := range archives {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	return image
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
func startRegistry(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, reference string, image v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	writeFolder(t, filepath.Join(dir, "plain"), valid(nil))
	image := newImage(t, packageArchive(t, valid(nil)))
	path, err := imagelayout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	annotated := imagelayout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "1.2.3"})
	if err := path.AppendImage(image, annotated); err != nil {
		t.Fatal(err)
	}
	other := newImage(t, packageArchive(t, valid(nil)), writeArchive(t, []entry{{name: "other"}}))
	if err := path.AppendImage(other, imagelayout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "2"})); err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(dir, "docker.tar"), name.MustParseReference("example.org/stack:1"), image); err != nil {
		t.Fatal(err)
	}
	build(t, filepath.Join(dir, "plain"), filepath.Join(dir, "oci.tar"))
	address := startRegistry(t, nil)
	digest := push(t, address+"/stacks/buckets:1.2.3", image)
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
		"registry, by tag":         {address + "/stacks/buckets:1.2.3", ""},
		"registry, by digest":      {address + "/stacks/buckets@" + digest, ""},
		"layout with two":          {"file://layout", "there are 2 images"},
		"layout, another tag":      {"file://layout:3", "there is no image 3"},
		"tag of a folder":          {"file://plain:1", "a plain folder has no tags"},
		"tag of a docker archive":  {"file://docker.tar:1", "chosen by tag or digest"},
		"nothing":                  {"file://missing", "no such file"},
		"file outside":             {"file://../x", "leads out of its folder"},
		"absolute path":            {"file:///etc", "leads out of its folder"},
		"link that leads out":      {"file://link", "escapes"},
		"registry, another tag":    {address + "/stacks/buckets:2", "MANIFEST_UNKNOWN"},
		"registry, no reference":   {"UPPER", "could not parse reference"},
		"registry, another digest": {address + "/stacks/buckets@sha256:" + strings.Repeat("a", 64), "MANIFEST_UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(t.Context(), test.reference, Options{Folder: dir})
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
	image := newImage(t, packageArchive(t, valid(nil)))
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	// The altered layer is a valid one: only its digest differs.
	packed := replaceLayer(t, layers[0])

	dir := t.TempDir()
	path, err := imagelayout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "layout", "blobs", "sha256", layer.Hex), packed, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), "file://layout", Options{Folder: dir})
	wantError(t, err, "does not match its digest")

	altered := func(suffix string, content []byte) string {
		return startRegistry(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, suffix) {
					_, _ = w.Write(content)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
	}
	address := altered("/blobs/"+layer.String(), packed)
	push(t, address+"/stack:1", image)
	_, err = Open(t.Context(), address+"/stack:1", Options{})
	wantError(t, err, "sha256")

	manifest, err := newImage(t, packageArchive(t, valid(map[string]string{"icon.svg": "other"}))).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), altered("/manifests/"+digest.String(), manifest)+"/stack@"+digest.String(), Options{})
	wantError(t, err, "does not match requested digest")
}

// replaceLayer compresses the content of a layer with another level.
func replaceLayer(t *testing.T, layer v1.Layer) []byte {
	t.Helper()
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestLayers checks that an upper layer replaces and removes files of the layers below it, and that other files of an
// image are ignored.
func TestLayers(t *testing.T) {
	lower := packageArchive(
		t, valid(map[string]string{appFile: replace(app, "Buckets", "Old"), "icon.svg": "<svg/>", "resources/x.yaml": "refused"}))
	program := entry{name: "bin/program", content: strings.Repeat("x", 2*maxFileBytes)}
	files, err := readImage(t, newImage(t, lower, writeArchive(t, []entry{
		program, {name: ".registry/app.yaml", content: app}, {name: ".registry/.wh.icon.svg"}, {name: ".registry/resources/.wh.x.yaml"}})))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := files["icon.svg"]; ok || string(files[appFile]) != app || string(files[installFile]) != controller || len(files) != 3 {
		t.Errorf("%q", files)
	}
	for _, whiteout := range []string{".wh..registry", ".wh..wh..opq", ".registry/.wh..wh..opq"} {
		files, err := readImage(t, newImage(t, lower, writeArchive(t, []entry{{name: whiteout}, {name: ".registry/app.yaml", content: app}})))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: %q, %v", whiteout, files, err)
		}
	}
	_, err = readImage(t, newImage(t, writeArchive(t, []entry{program})))
	wantError(t, err, "no folder .registry")
}

func readImage(t *testing.T, image v1.Image) (Files, error) {
	t.Helper()
	all, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var layers []layer
	for _, l := range all {
		layers = append(layers, l.Compressed)
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
	for status, says := range map[int]string{http.StatusOK: "sends more than", http.StatusNotFound: "unexpected status code 404"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"errors":[{}],"layers":[{}`+strings.Repeat(",{}", maxManifestBytes/3)+"]}")
		}))
		t.Cleanup(server.Close)
		_, err := Open(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/name:tag", Options{})
		wantError(t, err, says)
		if text := err.Error(); len(text) > 2*maxErrorBytes {
			t.Errorf("the error has %d bytes", len(text))
		}
	}
}

func TestOpenEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, startRegistry(t, nil)+"/stack:1", Options{})
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
