package stackpackage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// imageTag matches a valid tag of an image.
var imageTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// Build checks the package in a folder and writes it as an archive with an OCI image, tagged with the version of the
// package. The archive of the same package always has the same bytes.
func Build(dir string, w io.Writer) (*Package, error) {
	files, err := ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p, err := Read(files)
	if err != nil {
		return nil, err
	}
	blobs := Files{}
	content, err := writeTar(files, registryDir+"/")
	if err != nil {
		return nil, err
	}
	// The layer is not compressed, because the output of gzip differs between versions of Go.
	layer := addBlob(blobs, ocispec.MediaTypeImageLayer, content)
	config := ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: "amd64"},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
	}
	configBlob, err := addJSON(blobs, ocispec.MediaTypeImageConfig, config)
	if err != nil {
		return nil, err
	}
	manifest, err := addJSON(blobs, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: configBlob, Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		return nil, err
	}
	p.Digest = manifest.Digest.String()
	if imageTag.MatchString(p.App.Version) {
		manifest.Annotations = map[string]string{ocispec.AnnotationRefName: p.App.Version}
	}
	for name, value := range map[string]any{
		ocispec.ImageLayoutFile: ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion},
		"index.json": ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
			Manifests: []ocispec.Descriptor{manifest}},
	} {
		if blobs[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	archive, err := writeTar(blobs, "")
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(archive); err != nil {
		return nil, fmt.Errorf("writing the package: %w", err)
	}
	return p, nil
}

func addJSON(blobs Files, mediaType string, value any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return addBlob(blobs, mediaType, data), nil
}

func addBlob(blobs Files, mediaType string, data []byte) ocispec.Descriptor {
	d := digest.FromBytes(data)
	blobs["blobs/sha256/"+d.Encoded()] = data
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(data))}
}

// writeTar returns a tar archive of the files and their folders, sorted, without times and owners.
func writeTar(files Files, prefix string) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	folders := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		full := prefix + name
		for _, folder := range slices.Backward(withParents(path.Dir(full))) {
			if folder == "" || folders[folder] {
				continue
			}
			folders[folder] = true
			if err := archive.WriteHeader(&tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: 0o755, Format: tar.FormatPAX}); err != nil {
				return nil, err
			}
		}
		if err := archive.WriteHeader(&tar.Header{
			Name: full, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
