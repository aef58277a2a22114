package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/reference"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// maxImages is the maximum number of mappings that are kept in the file.
const maxImages = 1000

// Image maps an image to a program.
type Image struct {
	// Reference is the image, as containers name it. Without a tag and a digest, it matches all of them.
	Reference string `json:"reference"`
	// Program is the absolute path of the program, Args are its first arguments: those of the container follow.
	Program string   `json:"program"`
	Args    []string `json:"args,omitempty"`
}

// ParseImage reads "REFERENCE=PROGRAM [ARGUMENT…]". Arguments are separated by spaces.
func ParseImage(text string) (Image, error) {
	ref, program, ok := strings.Cut(text, "=")
	fields := strings.Fields(program)
	if !ok || len(fields) == 0 {
		return Image{}, fmt.Errorf("%q: an image is mapped to a program with REFERENCE=PROGRAM [ARGUMENT…]", text)
	}
	image := Image{Reference: ref, Program: fields[0], Args: fields[1:]}
	return image, image.Complete()
}

// Complete makes the path of the program absolute, and checks the mapping.
func (i *Image) Complete() error {
	if _, err := parse(i.Reference); err != nil {
		return err
	}
	path, err := filepath.Abs(i.Program)
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Reference, err)
	}
	i.Program = path
	return checkProgram(path)
}

// checkProgram returns an error if a path is not that of an executable file.
func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("program %s: %w", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("program %s: not a regular file", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("program %s: not executable", path)
	}
	return nil
}

func parse(ref string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, fmt.Errorf("%q is no reference of an image: %w", ref, err)
	}
	return named, nil
}

// same reports whether two references are spellings of one, such as nginx and docker.io/library/nginx.
func same(a, b string) bool {
	one, err := parse(a)
	if err != nil {
		return a == b
	}
	other, err := parse(b)
	return err == nil && one.String() == other.String()
}

// matches reports whether a container's image is that of a mapping. As in Kubernetes, digests take precedence over tags.
func matches(mapping, image reference.Named) bool {
	if mapping.Name() != image.Name() {
		return false
	}
	if reference.IsNameOnly(mapping) {
		return true
	}
	want, hasDigest := mapping.(reference.Digested)
	have, isDigested := image.(reference.Digested)
	if hasDigest || isDigested {
		return hasDigest && isDigested && want.Digest() == have.Digest()
	}
	return reference.TagNameOnly(mapping).String() == reference.TagNameOnly(image).String()
}

// Images holds the mappings. Those that are set while the landscape runs are kept in a file.
type Images struct {
	path string

	mu      sync.Mutex
	fixed   []Image // of this start; they take precedence
	kept    []Image
	changed chan struct{} // closed by the next change; nil if nobody waits for it
}

// OpenImages reads the mappings that are kept in a file. Those of this start are fixed.
func OpenImages(path string, fixed []Image) (*Images, error) {
	images := &Images{path: path, fixed: fixed}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return images, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &images.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the mapped images: %w (delete %s to begin without any)", err, path)
	}
	return images, nil
}

// List returns all mappings, sorted by reference.
func (i *Images) List() []Image {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := slices.Clone(i.fixed)
	for _, image := range i.kept {
		if !slices.ContainsFunc(all, func(other Image) bool { return same(other.Reference, image.Reference) }) {
			all = append(all, image)
		}
	}
	slices.SortFunc(all, func(a, b Image) int { return cmp.Compare(a.Reference, b.Reference) })
	return all
}

// Set maps an image, and replaces its former mapping. Running containers are not affected.
func (i *Images) Set(image Image) error {
	if err := image.Complete(); err != nil {
		return err
	}
	return i.replace(image.Reference, image)
}

// Delete removes a mapping.
func (i *Images) Delete(ref string) error {
	if !slices.ContainsFunc(i.List(), func(image Image) bool { return same(image.Reference, ref) }) {
		return fmt.Errorf("image %s is not mapped: see \"gardenlite image list\"", ref)
	}
	return i.replace(ref)
}

// replace replaces the mapping of a reference, and writes the mappings to the file.
func (i *Images) replace(ref string, with ...Image) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	is := func(image Image) bool { return same(image.Reference, ref) }
	kept := append(slices.DeleteFunc(slices.Clone(i.kept), is), with...)
	if len(kept) > maxImages {
		return fmt.Errorf("%d images are mapped: forget one first", maxImages)
	}
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	if err := fsutil.WriteFile(i.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("keeping the mapped images: %w", err)
	}
	i.kept, i.fixed = kept, slices.DeleteFunc(slices.Clone(i.fixed), is)
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
	return nil
}

// Changed returns a channel that is closed when a mapping changes.
func (i *Images) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changed == nil {
		i.changed = make(chan struct{})
	}
	return i.changed
}

// Program returns the program to which a container's image is mapped, "" if it is not.
func (i *Images) Program(image string) string {
	found, _ := i.Lookup(image)
	return found.Program
}

// Lookup returns the mapping of a container's image. A mapping with a tag or digest takes precedence over one without.
func (i *Images) Lookup(image string) (Image, bool) {
	named, err := parse(image)
	if err != nil {
		return Image{}, false
	}
	var found Image
	for _, mapping := range i.List() {
		to, err := parse(mapping.Reference)
		if err == nil && matches(to, named) && (found.Program == "" || !reference.IsNameOnly(to)) {
			found = mapping
		}
	}
	return found, found.Program != ""
}
