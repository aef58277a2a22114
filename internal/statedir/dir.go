package statedir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// MaxName is the maximum length of a landscape's name.
const MaxName = 40

// DefaultDir returns the state directory of a landscape: below XDG_STATE_HOME, else below ~/.local/state.
func DefaultDir(name string) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification says that relative paths are ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no home directory for the landscape's data: choose a directory with --data-dir: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "gardenlite", name), nil
}

// Names returns the names of the landscapes that have a state directory at the default place.
func Names() (names []string) {
	dir, err := DefaultDir("*")
	if err != nil {
		return nil
	}
	locks, _ := filepath.Glob(filepath.Join(dir, LockFile)) // the pattern is well-formed
	for _, file := range locks {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// Dirs returns the state directories at the default place.
func Dirs() (dirs []string) {
	for _, name := range Names() {
		if dir, err := DefaultDir(name); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Prepare creates the state directory with access for its owner only, and checks that it can be written. It takes an
// existing directory only if that is empty or a landscape's: others may need access to what else is there.
func Prepare(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		if err := errors.Join(checkOwn(dir), checkKinds(dir)); err != nil {
			return err
		}
		err = os.Chmod(dir, 0o700)
	}
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".probe"); err == nil {
			_ = probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk of %s is full: make room, or choose another place with --data-dir", dir)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s cannot be written by this user: correct its permissions, or choose another place with --data-dir: %w", dir, err)
	case err != nil:
		return fmt.Errorf("making the state directory: %w (choose another place with --data-dir)", err)
	}
	return nil
}

func checkOwn(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, LockFile)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking into the state directory: %w (choose another place with --data-dir)", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s has files that are not a landscape's, %s for example: choose an empty directory, or one that does not exist "+
			"yet, with --data-dir", dir, strconv.Quote(entries[0].Name()))
	}
	return nil
}

// checkKinds returns an error for each file of a landscape that is a directory, and each directory that is none.
func checkKinds(dir string) error {
	var errs []error
	check := func(folder bool, kind string, names ...string) {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.IsDir() != folder {
				errs = append(errs, fmt.Errorf("%s is no %s: move it away, and put back what was there; without a copy, "+
					"choose another place with --data-dir", path, kind))
			}
		}
	}
	check(false, "file", LockFile, RunFile, KubeconfigFile, LogFile, PortFile, ImagesFile, SeedsFile)
	check(true, "directory", DataFolder, PKIFolder, ChartsFolder, CloudFolder, GardenletsFolder, AdmissionFolder,
		ProcessesFolder, StacksFolder, SnapshotsFolder, bastionsFolder)
	return errors.Join(errs...)
}

// SeedKubeconfigPath returns the path of the administrator's kubeconfig for a seed's cluster, of the landscape in
// that directory.
func SeedKubeconfigPath(dir, name string) string {
	return filepath.Join(dir, KubeconfigFile+"-"+SeedPrefix+name)
}

// LocalSeeds returns the seeds whose clusters the landscape in that directory has, or had at its last run.
func LocalSeeds(dir string) []string {
	files, _ := filepath.Glob(SeedKubeconfigPath(dir, "*"))
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimPrefix(filepath.Base(file), filepath.Base(SeedKubeconfigPath(dir, "")))
	}
	return names
}

// StackFolder returns the folder with a landscape's own packages of stacks.
func StackFolder(dir string) string { return filepath.Join(dir, StacksFolder) }

// BastionDir returns the folder of a kept Bastion, below the landscape's state directory.
func BastionDir(landscape, bastion string) string {
	return filepath.Join(landscape, bastionsFolder, bastion)
}

// PortInUse reports whether another program listens on a port.
func PortInUse(address string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err == nil {
		_ = listener.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// minFree is how many bytes a landscape with a sqlite datastore needs to start: for the datastore, its write-ahead
// log, and its log.
const minFree = 32 << 20

// CheckDisk returns an error if the disk is full: the start would get stuck half-way.
func CheckDisk(dir string) error {
	free, err := fsutil.Free(dir)
	if err != nil {
		return err
	}
	if free < minFree {
		return fmt.Errorf("the disk is full: %s has %d KiB left, and a landscape needs %d MiB: make room, or choose "+
			"another place with --data-dir", dir, free>>10, minFree>>20)
	}
	return nil
}

// DiskMessage returns the free bytes, and a warning for the status if the disk is almost full.
func DiskMessage(dir string) (free uint64, message string) {
	free, err := fsutil.Free(dir)
	if err != nil {
		return 0, err.Error()
	}
	if free < minFree {
		return free, fmt.Sprintf("the disk is almost full (%d KiB left): writes fail when it is; make room", free>>10)
	}
	return free, ""
}
