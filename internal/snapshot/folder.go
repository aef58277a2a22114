package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// MaxName is the maximum length of a snapshot's name.
const MaxName = 63

var nameForm = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

func checkName(name string) error {
	if len(name) > MaxName || !nameForm.MatchString(name) {
		return usage.Errorf("%q is no name of a snapshot: it has up to %d of a-z, 0-9, '-' and '.', and begins and ends with a letter or digit",
			name, MaxName)
	}
	return nil
}

// Path returns where the snapshot of a landscape with a name is.
func Path(dir, name string) string {
	return filepath.Join(dir, statedir.SnapshotsFolder, name+Extension)
}

// Find returns the path of a snapshot that is there.
func Find(dir, name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	file := Path(dir, name)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("there is no snapshot %q", name)
	}
	return file, nil
}

// Names returns the names of the snapshots of a landscape.
func Names(dir string) (names []string) {
	files, _ := filepath.Glob(Path(dir, "*")) // the pattern is well-formed
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), Extension); checkName(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// Delete deletes a snapshot.
func Delete(dir, name string) error {
	file, err := Find(dir, name)
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// lock keeps others from saving or restoring the same landscape.
func lock(dir string) (unlock func() error, err error) {
	folder := filepath.Join(dir, statedir.SnapshotsFolder)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	held := flock.New(filepath.Join(folder, "lock"), flock.SetPermissions(0o600))
	locked, err := held.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, errors.New("another process saves or restores this landscape: wait until it has ended")
	}
	return held.Unlock, nil
}

// unfinished begins the names of folders of what has not ended.
const unfinished = ".unfinished-"

// newWork returns a folder for what is being saved or restored. The caller holds the lock, so the folders of others can go: they were
// killed.
func newWork(dir string) (work string, remove func() error, err error) {
	folder := filepath.Join(dir, statedir.SnapshotsFolder)
	others, _ := filepath.Glob(filepath.Join(folder, unfinished+"*")) // the pattern is well-formed
	for _, other := range others {
		if err := fsutil.RemoveAll(other); err != nil {
			return "", nil, err
		}
	}
	work, err = os.MkdirTemp(folder, unfinished)
	return work, func() error { return fsutil.RemoveAll(work) }, err
}
