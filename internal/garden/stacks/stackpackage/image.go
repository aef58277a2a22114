package stackpackage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/gardenlite/gardenlite/internal/ociregistry"
)

// These are the limits of an image.
const (
	// maxPackedBytes is the maximum size of an archive, and of all data that is pulled from a registry.
	maxPackedBytes   = 256 << 20
	maxManifestBytes = ociregistry.MaxManifest // an empty layer of three bytes becomes a descriptor of 136
	maxLayers        = 128
	// maxArchiveEntries is the maximum number of files in the archive of an image: layers, manifests, configurations.
	maxArchiveEntries = 10_000
)

// layer opens a compressed layer of an image. At its end, the reader returns an error if the digest of the content is
// not the one in the image's manifest.
type layer func() (io.ReadCloser, error)

// readLayers reads the package in an image, whose last layer is the uppermost one.
func readLayers(layers []layer) (Files, error) {
	if len(layers) > maxLayers {
		return nil, fmt.Errorf("the image has %d layers, %d are allowed", len(layers), maxLayers)
	}
	c := newCollector()
	limited := &io.LimitedReader{N: maxUnpackedBytes + 1}
	for _, open := range slices.Backward(layers) {
		if err := c.openLayer(open, limited); err != nil {
			return nil, err
		}
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("the image has no folder %s", registryDir)
	}
	return c.files, nil
}

func (c *collector) openLayer(open layer, limited *io.LimitedReader) error {
	packed, err := open()
	if err != nil {
		return err
	}
	defer packed.Close()
	if limited.R, err = unpack(packed); err != nil {
		return err
	}
	if err := c.readLayer(limited); err != nil {
		return err
	}
	// The digest is verified at the end of the content.
	if _, err := io.Copy(io.Discard, limited); err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	if limited.N <= 0 {
		return errUnpacked
	}
	_, err = io.Copy(io.Discard, packed)
	return err
}

func unpack(packed io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(packed)
	magic, err := buffered.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("a layer is packed with zstd: gzip is supported")
	}
	return buffered, nil
}

// readImage reads the package in an image. It also returns the digest of the manifest.
func readImage(ctx context.Context, from content.Fetcher, image ocispec.Descriptor) (Files, string, error) {
	for range 2 { // an image for several platforms is an index of images
		data, err := readManifest(ctx, from, image)
		if err != nil {
			return nil, "", err
		}
		var manifest struct{ Layers, Manifests []ocispec.Descriptor }
		if err := json.Unmarshal(data, &manifest); err != nil {
			return nil, "", fmt.Errorf("reading the manifest of the image: %w", err)
		}
		if len(manifest.Layers) > 0 {
			var layers []layer
			for _, descriptor := range manifest.Layers {
				layers = append(layers, func() (io.ReadCloser, error) { return fetch(ctx, from, descriptor) })
			}
			files, err := readLayers(layers)
			return files, image.Digest.String(), err
		}
		if image, err = pick(manifest.Manifests, ""); err != nil {
			return nil, "", err
		}
	}
	return nil, "", errors.New("the image has no layers")
}

// pick returns the image with the wanted tag or digest, or else the only one for this platform.
func pick(images []ocispec.Descriptor, wanted string) (ocispec.Descriptor, error) {
	fits := slices.DeleteFunc(slices.Clone(images), func(image ocispec.Descriptor) bool {
		isAttestation := image.Platform != nil && image.Platform.OS == "unknown"
		return isAttestation || wanted != "" && wanted != image.Digest.String() && wanted != image.Annotations[ocispec.AnnotationRefName]
	})
	if len(fits) > 1 {
		fits = slices.DeleteFunc(fits, func(image ocispec.Descriptor) bool {
			return image.Platform == nil || image.Platform.OS != "linux" || image.Platform.Architecture != runtime.GOARCH
		})
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case wanted != "":
		return ocispec.Descriptor{}, fmt.Errorf("there is no image %s", shorten(wanted))
	}
	return ocispec.Descriptor{}, fmt.Errorf("there are %d images: name one of them with :TAG or @DIGEST", len(images))
}

func readManifest(ctx context.Context, from content.Fetcher, image ocispec.Descriptor) ([]byte, error) {
	r, err := fetch(ctx, from, image)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readLimited(r, "the manifest of the image")
}

// fetch opens content, whose digest is verified at its end.
func fetch(ctx context.Context, from content.Fetcher, descriptor ocispec.Descriptor) (io.ReadCloser, error) {
	d := descriptor.Digest
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("the digest %q: %w", shorten(d.String()), err)
	}
	r, err := from.Fetch(ctx, descriptor)
	if err != nil {
		return nil, err
	}
	return &verified{r, d.Verifier(), d}, nil
}

// verified is a reader that returns an error at its end if the content has another digest.
type verified struct {
	io.ReadCloser
	verifier digest.Verifier
	digest   digest.Digest
}

func (v *verified) Read(into []byte) (int, error) {
	n, err := v.ReadCloser.Read(into)
	_, _ = v.verifier.Write(into[:n]) // a hash never returns an error
	if errors.Is(err, io.EOF) && !v.verifier.Verified() {
		return n, fmt.Errorf("the content does not match its digest %s", v.digest)
	}
	return n, err
}

func readBounded(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, name)
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxManifestBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxManifestBytes)
	}
	return data, nil
}

// layout is an OCI image layout.
type layout struct{ fs fs.FS }

// read reads the image with the wanted tag or digest, or the only one. It also returns the digest of the manifest.
func (l layout) read(ctx context.Context, wanted string) (Files, string, error) {
	data, err := readBounded(l.fs, "index.json")
	if err != nil {
		return nil, "", err
	}
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, "", fmt.Errorf("reading the index of the images: %w", err)
	}
	image, err := pick(index.Manifests, wanted)
	if err != nil {
		return nil, "", err
	}
	return readImage(ctx, l, image)
}

// Fetch implements content.Fetcher.
func (l layout) Fetch(_ context.Context, descriptor ocispec.Descriptor) (io.ReadCloser, error) {
	return l.fs.Open("blobs/" + descriptor.Digest.Algorithm().String() + "/" + descriptor.Digest.Encoded())
}

// archive has the positions of the files in an archive on disk, by name.
type archive map[string]section

type section struct {
	file         *os.File
	offset, size int64
}

// newArchive reads the positions of the files in an archive, but not their content.
func newArchive(f *os.File) (archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPackedBytes {
		return nil, fmt.Errorf("the archive has %d bytes, %d are allowed", info.Size(), maxPackedBytes)
	}
	all, entries := archive{}, tar.NewReader(f)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the archive, one of an image is expected: %w", err)
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if len(all) == maxArchiveEntries {
			return nil, fmt.Errorf("the archive has more than %d files", maxArchiveEntries)
		}
		if header.Typeflag == tar.TypeReg {
			all[path.Clean(header.Name)] = section{f, offset, min(header.Size, info.Size()-offset)}
		}
	}
}

// Open opens a file of the archive.
func (a archive) Open(name string) (fs.File, error) {
	s, ok := a[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &sectionFile{io.NewSectionReader(s.file, s.offset, s.size), s}, nil
}

type sectionFile struct {
	*io.SectionReader
	section section
}

func (s *sectionFile) Close() error { return nil }

func (s *sectionFile) Stat() (fs.FileInfo, error) { return s.section.file.Stat() }

// readDockerArchive reads the image in an archive of docker save, which must have only one. Its manifest has no
// digests.
func readDockerArchive(a archive) (Files, error) {
	data, err := readBounded(a, "manifest.json")
	if err != nil {
		return nil, fmt.Errorf("it is no archive of an image: %w", err)
	}
	var images []struct{ Layers []string }
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fmt.Errorf("reading manifest.json: %w", err)
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("the archive has %d images, one is expected", len(images))
	}
	var layers []layer
	for _, name := range images[0].Layers {
		layers = append(layers, func() (io.ReadCloser, error) { return a.Open(name) })
	}
	return readLayers(layers)
}
