package snapshot

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

const (
	// Format is the version of the format.
	Format = 1
	// Extension is how the names of the files end.
	Extension = ".tar.zst"

	manifestName = "manifest.json"
	maxManifest  = 32 << 20
	maxFiles     = 200_000
	maxSize      = 64 << 30
	// maxWindow is how much memory zstd may need to read a file.
	maxWindow = 8 << 20
)

// Manifest is what a snapshot says of itself.
type Manifest struct {
	Format int `json:"format"`
	// Version is that of the gardenlite that saved it, SavedAt when that was, by the real clock.
	Version string    `json:"version"`
	SavedAt time.Time `json:"savedAt"`
	// Run is of the process that ran the landscape, with the ports that it has again if they are free.
	Run statedir.Run `json:"run"`
	// Files are in the order in which they follow.
	Files []File `json:"files"`
}

// File is a file or a folder of a state directory.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Mode has the permissions of the owner, and whether it is a folder.
	Mode fs.FileMode `json:"mode"`
}

// ErrInvalid says that a file is no snapshot that can be used.
var ErrInvalid = errors.New("this is no snapshot that can be used")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// entries are the files and folders of a state directory that a snapshot may have, and whether each is a folder. Which programs of a
// machine run is not among them, nor are logs, charts that users put there, and the keys and configurations of their ssh.
var entries = map[string]bool{
	statedir.DataFolder: true, statedir.PKIFolder: true, statedir.CloudFolder: true, statedir.GardenletsFolder: true,
	statedir.StacksFolder: true, volumes: true, statedir.ClockFile: false, statedir.SeedsFile: false,
}

// volumes is the folder with what processes have in PersistentVolumes.
const volumes = statedir.ProcessesFolder + "/" + process.PersistentFolder

// entryOf returns the entry that a path belongs to, "" if there is none.
func entryOf(name string) string {
	for entry, isFolder := range entries {
		if name == entry || isFolder && strings.HasPrefix(name, entry+"/") {
			return entry
		}
	}
	return ""
}

// A snapshot begins with a skippable frame of zstd (RFC 8878, section 3.1.2).
const skippableMagic = 0x184D2A50

var formatPrefix = []byte("gardenlite snapshot ")

// header returns the frame before the content with a checksum.
func header(sum []byte) []byte {
	content := append(fmt.Appendf(nil, "%s%d\n", formatPrefix, Format), sum...)
	frame := binary.LittleEndian.AppendUint32(nil, skippableMagic)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(content))) //nolint:gosec // some bytes
	return append(frame, content...)
}

// check reads the header and all that follows, and leaves the file at the begin of what follows.
func check(file *os.File) error {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, invalid("it is no file"))
	}
	head := make([]byte, len(header(make([]byte, sha256.Size))))
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	of := func(frame []byte) []byte { return frame[:len(frame)-sha256.Size] }
	if begin := of(head); n < len(head) || !bytes.Equal(begin, of(header(head[len(begin):]))) {
		if version, found := bytes.CutPrefix(begin[8:], formatPrefix); found && n == len(head) {
			return invalid("it has format %q, and this gardenlite (format %d) cannot read it: use the gardenlite that made it, or a newer one",
				bytes.TrimSpace(version), Format)
		}
		return invalid("it does not begin as one")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), head[len(head)-sha256.Size:]) {
		return invalid("it is not complete, or has been altered: its checksum differs; copy it again")
	}
	_, err = file.Seek(int64(len(head)), io.SeekStart)
	return err
}

// reader reads the content of a file whose checksum is right, which says nothing of who made it.
type reader struct {
	Manifest
	zstd *zstd.Decoder
	tar  *tar.Reader
}

func newReader(file io.Reader) (_ *reader, err error) {
	r := &reader{}
	if r.zstd, err = zstd.NewReader(file, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)); err != nil {
		return nil, invalid("%v", err)
	}
	defer func() {
		if err != nil {
			r.zstd.Close()
		}
	}()
	r.tar = tar.NewReader(r.zstd)
	header, err := r.tar.Next()
	if err != nil || header.Name != manifestName || header.Size > maxManifest {
		return nil, invalid("it does not begin with a manifest")
	}
	if err := json.NewDecoder(io.LimitReader(r.tar, maxManifest)).Decode(&r.Manifest); err != nil {
		return nil, invalid("its manifest: %v", err)
	}
	if r.Format != Format {
		return nil, invalid("its manifest has format %d, and this gardenlite reads %d", r.Format, Format)
	}
	return r, r.validate()
}

// validate checks what the manifest lists.
func (m *Manifest) validate() error {
	if len(m.Files) > maxFiles {
		return invalid("it has %d files, more than %d", len(m.Files), maxFiles)
	}
	seen, total := map[string]bool{}, int64(0)
	for _, f := range m.Files {
		folder := path.Dir(f.Path)
		switch {
		case !fs.ValidPath(f.Path) || !filepath.IsLocal(filepath.FromSlash(f.Path)) || entryOf(f.Path) == "":
			return invalid("it has %q, which is not part of a landscape", f.Path)
		case seen[f.Path]:
			return invalid("it has %q twice", f.Path)
		case entryOf(folder) != "" && !seen[folder]:
			return invalid("it has %q before its folder", f.Path)
		case f.Mode&^(fs.ModeDir|0o700) != 0, f.Size < 0, f.Mode.IsDir() && f.Size != 0,
			entryOf(f.Path) == f.Path && f.Mode.IsDir() != entries[f.Path]:
			return invalid("%q is neither a file nor a folder of a landscape", f.Path)
		}
		if total += f.Size; total > maxSize {
			return invalid("its files have more than %d GiB", maxSize>>30)
		}
		seen[f.Path] = true
	}
	return nil
}

func (m *Manifest) size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// extract writes the files into a folder, which has none yet.
func (r *reader) extract(dir string) error {
	if free, err := fsutil.Free(dir); err == nil && free < uint64(r.size()) { //nolint:gosec // validated
		return fmt.Errorf("the disk of %s is full: the snapshot needs %d MiB: make room", dir, r.size()>>20)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range r.Files {
		header, err := r.tar.Next()
		if err != nil {
			return invalid("it ends before %q: %v", f.Path, err)
		}
		if name := strings.TrimSuffix(header.Name, "/"); name != f.Path || header.Size != f.Size ||
			(header.Typeflag == tar.TypeDir) != f.Mode.IsDir() || header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeReg {
			return invalid("it has %q where its manifest has %q", header.Name, f.Path)
		}
		if err := r.write(root, f); err != nil {
			return err
		}
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return invalid("it has more than its manifest says")
	}
	return nil
}

func (r *reader) write(root *os.Root, f File) error {
	if f.Mode.IsDir() {
		return root.MkdirAll(f.Path, 0o700)
	}
	if err := root.MkdirAll(path.Dir(f.Path), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode.Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, r.tar, f.Size)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	return nil
}
