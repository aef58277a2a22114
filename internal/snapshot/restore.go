package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// Read returns the manifest of a file that is complete.
func Read(name string) (*Manifest, error) {
	r, closeFile, err := open(name)
	if err != nil {
		return nil, err
	}
	return &r.Manifest, closeFile()
}

func open(name string) (_ *reader, closeFile func() error, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if err = check(file); err == nil {
		var r *reader
		if r, err = newReader(file); err == nil {
			return r, func() error { r.zstd.Close(); return file.Close() }, nil
		}
	}
	return nil, nil, fmt.Errorf("%s: %w", name, errors.Join(err, file.Close()))
}

// Restore replaces the landscape in a state directory by the one of a file. The caller holds the lock of the landscape, which is not
// running. If Restore returns an error, or is killed, the landscape is either as it was, or the next call of Finish makes it that of
// the snapshot.
func Restore(dir, name string) (err error) {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := Finish(dir); err != nil {
		return err
	}
	r, closeFile, err := open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	work, remove, err := newWork(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := r.extract(work); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	data, err := json.Marshal(r.Manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, manifestName), data, 0o600); err != nil {
		return err
	}
	// From here on, the landscape is that of the snapshot.
	if err := os.Rename(work, filepath.Join(dir, statedir.RestoringFolder)); err != nil {
		return fmt.Errorf("restoring the landscape: %w", err)
	}
	return Finish(dir)
}

// Finish ends what a Restore has begun that was killed. The caller holds the lock of the landscape, which is not running.
func Finish(dir string) error {
	from := filepath.Join(dir, statedir.RestoringFolder)
	data, err := os.ReadFile(filepath.Join(from, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return fsutil.RemoveAll(from)
	}
	manifest := &Manifest{}
	if err == nil {
		err = json.Unmarshal(data, manifest)
	}
	if err == nil {
		err = finish(dir, from, manifest)
	}
	if err != nil {
		return fmt.Errorf("restoring the landscape: %w", err)
	}
	return nil
}

func finish(dir, from string, manifest *Manifest) error {
	has := map[string]bool{}
	for _, f := range manifest.Files {
		has[f.Path] = true
	}
	for entry := range entries {
		source, target := filepath.Join(from, entry), filepath.Join(dir, entry)
		_, err := os.Lstat(source)
		if has[entry] && errors.Is(err, fs.ErrNotExist) {
			continue // moved before
		}
		if err := fsutil.RemoveAll(target); err != nil {
			return err
		}
		if !has[entry] {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.Rename(source, target)); err != nil {
			return err
		}
	}
	run := manifest.Run
	run.Control = filepath.Join(dir, statedir.ControlSocket)
	if err := statedir.WriteRun(dir, &run); err != nil {
		return err
	}
	// The manifest goes first: without it there is nothing to finish.
	return errors.Join(os.Remove(filepath.Join(from, manifestName)), fsutil.RemoveAll(from))
}
