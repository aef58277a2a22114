package testutil

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Artifact is an OCI artifact of two layers, for tests of code that pulls charts.
type Artifact struct {
	Blobs    map[digest.Digest][]byte
	Manifest ocispec.Descriptor
}

// NewArtifact returns an artifact whose second layer is a chart, with the given media type and size.
func NewArtifact(t testing.TB, media string, size int64, chart []byte) Artifact {
	t.Helper()
	layer := ocispec.Descriptor{MediaType: media, Digest: digest.FromBytes(chart), Size: size}
	config := []byte("{}")
	manifest, err := json.Marshal(ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: "application/vnd.cncf.helm.config.v1+json", Digest: digest.FromBytes(config), Size: 2},
		Layers: []ocispec.Descriptor{{MediaType: "text/plain", Digest: digest.FromString("p"), Size: 1}, layer}})
	if err != nil {
		t.Fatal(err)
	}
	return Artifact{
		Blobs:    map[digest.Digest][]byte{layer.Digest: chart, digest.FromBytes(config): config, digest.FromBytes(manifest): manifest},
		Manifest: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))},
	}
}

// ServeHTTP serves the artifact as a registry does, as x/c:1.
func (a Artifact) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/x/c/"), "/")
	if name == "1" {
		name = a.Manifest.Digest.String()
	}
	blob, ok := a.Blobs[digest.Digest(name)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if kind == "manifests" {
		w.Header().Set("Content-Type", a.Manifest.MediaType)
		w.Header().Set("Docker-Content-Digest", a.Manifest.Digest.String())
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	_, _ = w.Write(blob)
}

// WriteLayout writes the artifact as a folder with an OCI layout, tagged 1.
func (a Artifact) WriteLayout(t testing.TB, folder string) {
	t.Helper()
	a.Manifest.Annotations = map[string]string{ocispec.AnnotationRefName: "1"}
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{a.Manifest}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion": "1.0.0"}`), "index.json": index}
	for d, blob := range a.Blobs {
		files["blobs/sha256/"+d.Encoded()] = blob
	}
	for name, data := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// PackChart returns an archive of the files of a chart, by their names in its folder, as helm package creates it.
func PackChart(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(files[file]))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatalf("packing the chart %s: %v", name, err)
		}
		if _, err := archive.Write([]byte(files[file])); err != nil {
			t.Fatalf("packing the chart %s: %v", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatalf("packing the chart %s: %v", name, err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatalf("packing the chart %s: %v", name, err)
	}
	return packed.Bytes()
}
