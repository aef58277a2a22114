package snapshot

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/version"
)

// Saved says what Save has saved.
type Saved struct {
	Manifest
	// Paused is how long writes to the landscape have waited.
	Paused time.Duration
}

// content is a file of a snapshot, and what is in it.
type content struct {
	File
	data []byte   // of a small file
	file *os.File // of others, as it was at the moment: files are replaced, and those that grow are read up to their size
	path string   // of others that nothing changes any more
}

// smallFile is up to which size files are read at the moment itself.
const smallFile = 64 << 10

// Save saves the landscape in a state directory under a name that no snapshot has yet. The landscape may be running: all is as of one
// moment, except what processes have in volumes, which is as it is soon afterwards.
func Save(ctx context.Context, dir, name string) (_ *Saved, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	run, err := statedir.ReadRun(dir)
	if errors.Is(err, statedir.ErrNotRunning) {
		return nil, fmt.Errorf("%s has no landscape", dir)
	}
	if err != nil {
		return nil, err
	}
	if run.Datastore != datastore.SQLite {
		return nil, fmt.Errorf("the data of this landscape is in %s, which a snapshot does not have: only landscapes with sqlite can be saved",
			run.Datastore)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	to := Path(dir, name)
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("there is a snapshot %q already: choose another name, or delete it first", name)
	}
	work, remove, err := newWork(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()

	saved := &Saved{Manifest: Manifest{Format: Format, Version: version.Version(), SavedAt: time.Now().UTC().Truncate(time.Second), Run: *run}}
	saved.Run.PID, saved.Run.Control = 0, ""
	contents, paused, err := collect(ctx, dir, work)
	defer func() {
		for _, c := range contents {
			if c.file != nil {
				_ = c.file.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	saved.Paused = paused
	for _, c := range contents {
		saved.Files = append(saved.Files, c.File)
	}
	if err := saved.validate(); err != nil {
		return nil, fmt.Errorf("saving the landscape: %w", err)
	}
	file := filepath.Join(work, "snapshot")
	if err := writeFile(ctx, file, &saved.Manifest, contents); err != nil {
		return nil, fmt.Errorf("saving the landscape: %w", err)
	}
	if err := os.Rename(file, to); err != nil {
		return nil, fmt.Errorf("saving the landscape: %w", err)
	}
	return saved, nil
}

// collect returns all files of a landscape as of one moment. Those of datastores are copied to the folder work.
func collect(ctx context.Context, dir, work string) (contents []content, paused time.Duration, err error) {
	copies := map[string]string{} // by file
	find := func() (map[string]string, error) {
		err := filepath.WalkDir(filepath.Join(dir, statedir.DataFolder), func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == datastore.FileName && copies[name] == "" {
				copies[name] = filepath.Join(work, fmt.Sprintf("%06d", len(copies)))
			}
			return ignoreGone(err)
		})
		return copies, err
	}
	paused, err = datastore.CopyFiles(ctx, find, func() error {
		for entry := range entries {
			if entry == volumes {
				continue
			}
			var err error
			if contents, err = appendFiles(contents, dir, entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		contents, err = appendFiles(contents, dir, volumes)
	}
	if err != nil {
		return contents, paused, err
	}
	for name, copied := range copies {
		info, err := os.Stat(copied)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a datastore without data, or one that was being deleted
		}
		if err != nil {
			return contents, paused, err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return contents, paused, err
		}
		contents = append(contents, content{File: File{Path: filepath.ToSlash(relative), Size: info.Size(), Mode: 0o600}, path: copied})
	}
	slices.SortFunc(contents, func(a, b content) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return contents, paused, nil
}

// appendFiles appends what an entry has, without datastores, sockets and links.
func appendFiles(contents []content, dir, entry string) ([]content, error) {
	err := filepath.WalkDir(filepath.Join(dir, entry), func(name string, found fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		isDatastore := entry == statedir.DataFolder && strings.HasPrefix(found.Name(), datastore.FileName)
		isUnfinished, _ := filepath.Match(fsutil.Unfinished, found.Name()) // the pattern is well-formed
		if isDatastore || isUnfinished && entry != volumes || !found.IsDir() && !found.Type().IsRegular() {
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		c := content{File: File{Path: filepath.ToSlash(relative), Mode: fs.ModeDir | 0o700}}
		if !found.IsDir() {
			if err := c.open(name); err != nil {
				return ignoreGone(err)
			}
		}
		contents = append(contents, c)
		return nil
	})
	return contents, err
}

// open reads a file, or opens it if it is large.
func (c *content) open(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	c.Size, c.Mode = info.Size(), info.Mode().Perm()&0o700|0o600
	if c.Size > smallFile {
		c.file = file
		return nil
	}
	c.data = make([]byte, c.Size)
	_, err = io.ReadFull(file, c.data)
	return errors.Join(err, file.Close())
}

// ignoreGone returns nil if a file is not there, or not any more.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func writeFile(ctx context.Context, name string, manifest *Manifest, contents []content) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(header(make([]byte, sha256.Size))); err != nil {
		return err
	}
	sum := sha256.New()
	if err := writeContent(ctx, io.MultiWriter(file, sum), manifest, contents); err != nil {
		return err
	}
	if _, err := file.WriteAt(header(sum.Sum(nil)), 0); err != nil {
		return err
	}
	return file.Close()
}

func writeContent(ctx context.Context, w io.Writer, manifest *Manifest, contents []content) error {
	compressed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(maxWindow/2))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if len(data) > maxManifest {
		return fmt.Errorf("there are too many files: %d", len(contents))
	}
	err = writeEntry(archive, content{File: File{Path: manifestName, Size: int64(len(data)), Mode: 0o600}, data: data})
	for i := 0; err == nil && i < len(contents); i++ {
		if err = ctx.Err(); err == nil {
			err = writeEntry(archive, contents[i])
		}
	}
	if err == nil {
		err = archive.Close()
	}
	return errors.Join(err, compressed.Close())
}

func writeEntry(archive *tar.Writer, c content) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: c.Path, Size: c.Size, Mode: int64(c.Mode.Perm())}
	if c.Mode.IsDir() {
		header.Typeflag, header.Name = tar.TypeDir, c.Path+"/"
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	file := c.file
	if c.path != "" {
		var err error
		if file, err = os.Open(c.path); err != nil {
			return err
		}
		defer file.Close()
	}
	if file == nil {
		_, err := archive.Write(c.data)
		return err
	}
	if _, err := io.CopyN(archive, file, c.Size); err != nil {
		return fmt.Errorf("reading %s: %w", c.Path, err)
	}
	return nil
}
