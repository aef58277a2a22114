package stackpackage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

// These are the limits of a package.
const (
	maxFiles = 500
	// maxFileBytes is the maximum size of each file, maxTotalBytes that of all files together.
	maxFileBytes, maxTotalBytes = 1 << 20, 8 << 20
	// maxPath is the maximum length of the path of a file.
	maxPath = 256
	// maxUnpackedBytes is the maximum size of all unpacked layers of an image, including files that are not part of the
	// package.
	maxUnpackedBytes = 1 << 30
)

// registryDir is the folder with the package, at the root of a folder or an image.
const registryDir = ".registry"

// Files has the content of the files of a package by their path below .registry.
type Files map[string][]byte

var errUnpacked = fmt.Errorf("it has more than %d bytes unpacked", maxUnpackedBytes)

// ReadDir reads the package in the folder .registry of dir. Paths and links that lead out of it are refused.
func ReadDir(dir string) (Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readRoot(root)
}

func readRoot(root *os.Root) (Files, error) {
	// WalkDir would follow the root if it were a link.
	if info, err := root.Lstat(registryDir); err != nil {
		return nil, fmt.Errorf("there is no folder %s: %w", registryDir, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", registryDir)
	}
	c := newCollector()
	err := fs.WalkDir(root.FS(), registryDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == registryDir {
			return err
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder: links and devices are not allowed", name)
		}
		if err := c.count(name); err != nil || entry.IsDir() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.add(name, f)
	})
	return c.files, err
}

// collector collects the files of a package from one or more layers, the uppermost one first.
type collector struct {
	files   Files
	bytes   int
	entries int
	// hidden are the paths that a layer has removed from the layers below it.
	hidden []string
}

func newCollector() *collector { return &collector{files: Files{}} }

// readLayer reads a layer. The paths that it removes are hidden only in the layers below it.
func (c *collector) readLayer(limited *io.LimitedReader) error {
	archive := tar.NewReader(limited)
	seen, hidden := map[string]bool{}, []string(nil)
	for limited.N > 0 {
		header, err := archive.Next()
		switch {
		case limited.N <= 0:
			return errUnpacked
		case errors.Is(err, io.EOF):
			c.hidden = append(c.hidden, hidden...)
			return nil
		case err != nil:
			return fmt.Errorf("unpacking it: %w", err)
		}
		name, ok, err := entryName(header.Name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		folder, base := path.Split(name)
		if removed, ok := strings.CutPrefix(base, ".wh."); ok {
			if removed == ".wh..opq" {
				removed = ""
			}
			if hidden = append(hidden, path.Join(folder, removed)); len(hidden) > maxFiles {
				return fmt.Errorf("it removes more than %d files", maxFiles)
			}
			continue
		}
		if header.Typeflag != tar.TypeDir && seen[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if err := c.addEntry(name, header, archive); err != nil {
			return err
		}
	}
	return errUnpacked
}

func (c *collector) addEntry(name string, header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s is neither a file nor a folder: links and devices are not allowed", name)
	}
	if err := c.count(name); err != nil || header.Typeflag == tar.TypeDir {
		return err
	}
	if name == registryDir {
		return fmt.Errorf("%s is no folder", registryDir)
	}
	if _, ok := c.files[below(name)]; ok || c.isHidden(name) {
		return nil // a layer above has replaced or removed it
	}
	return c.add(name, content)
}

// entryName returns the cleaned name of an entry of an archive, and whether the entry may be part of the package. Other
// files of an image are ignored; names that lead out of it are refused.
func entryName(raw string) (string, bool, error) {
	if strings.HasPrefix(raw, "/") || slices.Contains(strings.Split(raw, "/"), "..") || strings.ContainsAny(raw, "\\\x00") {
		return "", false, fmt.Errorf("the path %q is not allowed: it leads out of the package", shorten(raw))
	}
	name := path.Clean(raw)
	inside := name == registryDir || strings.HasPrefix(name, registryDir+"/")
	// A whiteout in the root may remove everything below it, or the folder.
	removes := name == ".wh."+registryDir || name == ".wh..wh..opq"
	return name, inside || removes, nil
}

func (c *collector) isHidden(name string) bool {
	return slices.ContainsFunc(c.hidden, func(hidden string) bool {
		return hidden == "." || hidden == "" || name == hidden || strings.HasPrefix(name, hidden+"/")
	})
}

func (c *collector) count(name string) error {
	if c.entries++; c.entries > maxFiles {
		return fmt.Errorf("it has more than %d files and folders", maxFiles)
	}
	if len(name) > maxPath {
		return fmt.Errorf("the path %q has more than %d characters", shorten(name), maxPath)
	}
	return nil
}

func (c *collector) add(name string, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("%s has more than %d bytes", name, maxFileBytes)
	}
	if c.bytes += len(data); c.bytes > maxTotalBytes {
		return fmt.Errorf("its files have more than %d bytes together", maxTotalBytes)
	}
	c.files[below(name)] = data
	return nil
}

// below returns the path relative to .registry.
func below(name string) string { return strings.TrimPrefix(name, registryDir+"/") }

// shorten limits the length of a text from a package in a message, which has no line breaks or control characters of
// it.
func shorten(text string) string {
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// decode reads a YAML file with exactly one document. It refuses unknown and duplicate keys, and aliases, with which a
// small file can have values of any size.
func decode(name string, data []byte, into any) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var document, next yamlv3.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is empty", name)
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more than one document", name)
	}
	if err := plainyaml.Check(&document); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return plainly(name, err)
	}
	return nil
}
