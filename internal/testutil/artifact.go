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
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Artifact is an OCI artifact, for tests of code that pulls charts and images.
type Artifact struct {
	Blobs    map[digest.Digest][]byte
	Manifest ocispec.Descriptor
}

// NewArtifact returns an artifact whose second layer is a chart, with the given media type and size.
func NewArtifact(t testing.TB, media string, size int64, chart []byte) Artifact {
	t.Helper()
	a := Artifact{Blobs: map[digest.Digest][]byte{}}
	layer := a.add(media, chart)
	layer.Size = size
	a.addManifest(t, ocispec.Manifest{Config: a.add("application/vnd.cncf.helm.config.v1+json", []byte("{}")),
		Layers: []ocispec.Descriptor{{MediaType: "text/plain", Digest: digest.FromString("p"), Size: 1}, layer}})
	return a
}

// NewImage returns an image with a layer for each archive, the uppermost one last.
func NewImage(t testing.TB, archives ...[]byte) Artifact {
	t.Helper()
	a := Artifact{Blobs: map[digest.Digest][]byte{}}
	manifest := ocispec.Manifest{Config: a.add(ocispec.MediaTypeImageConfig, []byte("{}"))}
	for _, archive := range archives {
		manifest.Layers = append(manifest.Layers, a.add(ocispec.MediaTypeImageLayer, archive))
	}
	a.addManifest(t, manifest)
	return a
}

// add adds a blob.
func (a *Artifact) add(media string, blob []byte) ocispec.Descriptor {
	d := digest.FromBytes(blob)
	a.Blobs[d] = blob
	return ocispec.Descriptor{MediaType: media, Digest: d, Size: int64(len(blob))}
}

func (a *Artifact) addManifest(t testing.TB, manifest ocispec.Manifest) {
	t.Helper()
	manifest.Versioned, manifest.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	a.Manifest = a.add(manifest.MediaType, data)
}

// ServeHTTP serves the artifact as a registry does, with the tag 1 in every repository.
func (a Artifact) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parent, name := path.Split(r.URL.Path)
	if name == "1" {
		name = a.Manifest.Digest.String()
	}
	blob, ok := a.Blobs[digest.Digest(name)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if path.Base(parent) == "manifests" {
		var manifest struct{ MediaType string }
		if err := json.Unmarshal(blob, &manifest); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", manifest.MediaType)
		w.Header().Set("Docker-Content-Digest", name)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	_, _ = w.Write(blob)
}

// WriteLayout writes artifacts by their tags as a folder with an OCI layout.
func WriteLayout(t testing.TB, folder string, artifacts map[string]Artifact) {
	t.Helper()
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion": "1.0.0"}`)}
	for tag, a := range artifacts {
		a.Manifest.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
		index.Manifests = append(index.Manifests, a.Manifest)
		for d, blob := range a.Blobs {
			files["blobs/sha256/"+d.Encoded()] = blob
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	files["index.json"] = data
	for name, data := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
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
