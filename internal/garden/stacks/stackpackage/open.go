package stackpackage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FileScheme is the prefix of a reference to a file or folder instead of a registry.
const FileScheme = "file://"

// Options restrict where references may lead.
type Options struct {
	// Folder is the root of the names after file://. Names and links that lead out of it are refused. If it is empty,
	// only references to registries are allowed, because references may come from users who must not read files of this
	// machine.
	Folder string
	// LoopbackRegistry allows registries on loopback addresses. References may come from users who must not reach what
	// listens there.
	LoopbackRegistry bool
}

// Open reads and checks the package of a reference. A reference to a registry is HOST/NAME:TAG or HOST/NAME@DIGEST;
// the registry is accessed anonymously, and with TLS unless it has a loopback address. A reference file://NAME is
// relative to Options.Folder and leads to a folder with .registry, an OCI image layout, or the archive of an image;
// :TAG or @DIGEST selects one of several images.
func Open(ctx context.Context, reference string, options Options) (*Package, error) {
	p, err := open(ctx, reference, options)
	if err != nil {
		return nil, fmt.Errorf("the stack package %s: %w", shorten(reference), err)
	}
	return p, nil
}

func open(ctx context.Context, reference string, options Options) (*Package, error) {
	var files Files
	var digest string
	var err error
	if name, ok := strings.CutPrefix(reference, FileScheme); ok {
		files, digest, err = openFile(ctx, name, options.Folder)
	} else {
		files, digest, err = pull(ctx, reference, options.LoopbackRegistry)
	}
	if err != nil {
		return nil, err
	}
	p, err := Read(files)
	if err != nil {
		return nil, err
	}
	p.Digest = digest
	return p, nil
}

func openFile(ctx context.Context, name, folder string) (Files, string, error) {
	if folder == "" {
		return nil, "", fmt.Errorf("references to files (%s) are not allowed here", FileScheme)
	}
	if !filepath.IsLocal(name) {
		return nil, "", fmt.Errorf("the path %q is not allowed: it leads out of its folder", shorten(name))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	wanted := ""
	info, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if name, wanted = cutImage(name); wanted != "" {
			info, err = root.Stat(name)
		}
	}
	switch {
	case err != nil:
		return nil, "", err
	case info.IsDir():
		return openFolder(ctx, root, name, wanted)
	case info.Mode().IsRegular():
		return openArchive(ctx, root, name, wanted)
	}
	return nil, "", errors.New("it is neither a file nor a folder")
}

// cutImage separates a file name from the tag or digest that follows it.
func cutImage(name string) (file, image string) {
	if file, digest, ok := strings.Cut(name, "@"); ok {
		return file, digest
	}
	if i := strings.LastIndex(name, ":"); i > 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

func openFolder(ctx context.Context, root *os.Root, name, wanted string) (Files, string, error) {
	folder, err := root.OpenRoot(name)
	if err != nil {
		return nil, "", err
	}
	defer folder.Close()
	if _, err := folder.Lstat("oci-layout"); err == nil {
		return layout{folder.FS()}.read(ctx, wanted)
	}
	if wanted != "" {
		return nil, "", errors.New("a plain folder has no tags")
	}
	files, err := readRoot(folder)
	return files, "", err
}

func openArchive(ctx context.Context, root *os.Root, name, wanted string) (Files, string, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	archive, err := newArchive(f)
	if err != nil {
		return nil, "", err
	}
	if _, ok := archive["index.json"]; ok {
		return layout{archive}.read(ctx, wanted)
	}
	if wanted != "" {
		return nil, "", errors.New("only images of an OCI image layout are chosen by tag or digest")
	}
	files, err := readDockerArchive(archive)
	return files, "", err
}
