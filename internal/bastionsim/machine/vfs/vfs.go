package vfs

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// Limits are the limits of a file system. A zero stands for the default, which the comments name.
type Limits struct {
	Bytes    int64 // of all files, names and inodes together: 64 MiB
	FileSize int64 // bytes of a file: 16 MiB
	Inodes   int   // files, directories and links in addition to those of the image: 32768
}

// Limits of POSIX systems, which are not configurable.
const (
	MaxName     = 255
	MaxPath     = 4096
	MaxSymlinks = 40
)

// inodeCost is the number of bytes that an inode counts in addition to its content, so that empty files are not free.
const inodeCost = 512

// nameSize returns the number of bytes that a name in a directory counts: more than its length, so that hard links are not free.
func nameSize(name string) int64 { return int64(len(name)) + 64 }

// flushDelay is the delay before changes are written to the host's disk, so that several changes are written together.
const flushDelay = 200 * time.Millisecond

// Config is the configuration of a file system.
type Config struct {
	// Dir is a folder of the host for this file system alone, created (0700) if it is missing. If it is empty, all is
	// in memory.
	Dir      string
	Hostname string           // for /etc/hostname and /etc/hosts of a new file system
	Clock    clock.WithTicker // for the times of files; required
	Limits   Limits
	// Save, if set, is called with the file in Dir after it was written.
	Save func(file string) error
}

// Cred are the credentials of a user.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // the supplementary ones
}

// Root are the credentials of root, who may do everything.
var Root = Cred{}

func (c Cred) in(gid uint32) bool { return c.GID == gid || slices.Contains(c.Groups, gid) }

// FS is the file system of one machine. Its methods may be called concurrently.
type FS struct {
	clock  clock.WithTicker
	limits Limits
	base   *image
	booted time.Time // for /proc/uptime

	mu    sync.Mutex
	nodes map[uint64]*node // copied and new nodes; all others are in base
	opens map[uint64]int
	next  uint64
	used  int64
	dirty map[uint64]struct{}

	journal *journal // nil if all is in memory
}

// Open opens the file system in a folder, or creates a new one.
func Open(cfg Config) (*FS, error) {
	f := &FS{
		clock: cfg.Clock, limits: cfg.Limits.withDefaults(), base: baseImage(), booted: cfg.Clock.Now(), next: 2,
		nodes: map[uint64]*node{}, opens: map[uint64]int{}, dirty: map[uint64]struct{}{},
	}
	if cfg.Dir != "" {
		if err := f.load(cfg.Dir, cfg.Save); err != nil {
			return nil, err
		}
	}
	if len(f.nodes) == 0 {
		if err := f.firstFiles(cfg.Hostname); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	if f.journal != nil {
		f.journal.start()
	}
	return f, nil
}

// firstFiles writes the files that are different on every machine.
func (f *FS) firstFiles(hostname string) error {
	hostname = cmp.Or(hostname, "localhost")
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	for name, text := range map[string]string{
		"/etc/hostname":   hostname + "\n",
		"/etc/hosts":      "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 " + hostname + "\n",
		"/etc/machine-id": hex.EncodeToString(id) + "\n",
	} {
		if err := f.WriteFile(name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("making a new file system: %w", err)
		}
	}
	return nil
}

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(max(l.Bytes, 0), 64<<20)
	l.FileSize = cmp.Or(max(l.FileSize, 0), 16<<20)
	l.Inodes = cmp.Or(max(l.Inodes, 0), 32768)
	return l
}

// Sync returns when all changes are on the host's disk.
func (f *FS) Sync() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.flush()
}

// Close writes all pending changes. The file system must not be used afterwards.
func (f *FS) Close() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.close()
}

// Usage returns how many bytes and inodes are used, and their limits.
func (f *FS) Usage() (used, size int64, inodes, maxInodes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, f.limits.Bytes, len(f.nodes), f.limits.Inodes
}

// As returns a view of the file system with the permissions of a user.
func (f *FS) As(c Cred) *View { return &View{fs: f, cred: c} }

// ReadFile reads a file as root.
func (f *FS) ReadFile(name string) ([]byte, error) { return f.As(Root).ReadFile(name) }

// WriteFile replaces a file's content as root. The file gets the mode even if it exists already. Its directory must
// exist.
func (f *FS) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return f.As(Root).WriteFile(name, data, mode)
}

// MkdirAll creates a directory and its missing parents as root.
func (f *FS) MkdirAll(name string, mode fs.FileMode) error { return f.As(Root).MkdirAll(name, mode) }

// fail adds what was being done to an error. It returns nil if there is none.
func fail(op, name string, err syscall.Errno) error {
	if err == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
