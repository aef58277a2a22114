package vfs

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// Limits of a file system. Zero is the default.
type Limits struct {
	// Bytes is how much all files, names and inodes together may take. The default is 64 MiB.
	Bytes int64
	// FileSize is how long one file may be. The default is 16 MiB.
	FileSize int64
	// Inodes is how many files, directories and links there may be beside those of the image. The default is 32768.
	Inodes int
}

// Limits of POSIX systems that cannot be configured here.
const (
	MaxName     = 255
	MaxPath     = 4096
	MaxSymlinks = 40
)

// inodeCost is what an inode is charged beside its content, so that empty files are not free.
const inodeCost = 512

// flushDelay is how long changes wait for more of them before they are written to the host's disk.
const flushDelay = 200 * time.Millisecond

// Config is what Open needs.
type Config struct {
	// Dir is a folder of the host for this file system alone. It is made (0700) if it is missing. Empty keeps all in memory.
	Dir string
	// Hostname goes into /etc/hostname and /etc/hosts of a new file system.
	Hostname string
	// Clock is where times of files come from. Required.
	Clock clock.WithTicker
	// Limits that are zero have their defaults.
	Limits Limits
}

// Cred is who does something.
type Cred struct {
	UID, GID uint32
	// Groups are the supplementary groups.
	Groups []uint32
}

// Root may do everything.
var Root = Cred{}

// Is says whether the credential is of a group.
func (c Cred) in(gid uint32) bool {
	if c.GID == gid {
		return true
	}
	for _, g := range c.Groups {
		if g == gid {
			return true
		}
	}
	return false
}

// FS is one machine's file system. Its methods may be called by many at a time.
type FS struct {
	clock  clock.WithTicker
	limits Limits
	base   *image

	mu    sync.Mutex
	nodes map[uint64]*node // copies and new ones; what is not here is in base
	opens map[uint64]int
	procs map[string]func() []byte
	next  uint64
	used  int64
	dirty map[uint64]struct{}

	journal *journal // nil if all is in memory
}

// Open opens the file system in a folder, or makes a new one.
func Open(cfg Config) (*FS, error) {
	if cfg.Clock == nil {
		return nil, fmt.Errorf("opening a file system: the config has no clock")
	}
	f := &FS{
		clock: cfg.Clock, limits: cfg.Limits.withDefaults(), base: baseImage(), next: 2,
		nodes: map[uint64]*node{}, opens: map[uint64]int{}, procs: map[string]func() []byte{}, dirty: map[uint64]struct{}{},
	}
	if cfg.Dir != "" {
		if err := f.load(cfg.Dir); err != nil {
			return nil, err
		}
	}
	if len(f.nodes) == 0 {
		if err := f.firstFiles(cfg.Hostname); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	f.addProcs()
	if f.journal != nil {
		f.journal.start()
	}
	return f, nil
}

// firstFiles are what no two machines have in common.
func (f *FS) firstFiles(hostname string) error {
	if hostname == "" {
		hostname = "localhost"
	}
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
	if l.Bytes <= 0 {
		l.Bytes = 64 << 20
	}
	if l.FileSize <= 0 {
		l.FileSize = 16 << 20
	}
	if l.Inodes <= 0 {
		l.Inodes = 32768
	}
	return l
}

// Sync returns when all changes are on the host's disk.
func (f *FS) Sync() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.flush()
}

// Close writes what is not written yet. The file system must not be used afterwards.
func (f *FS) Close() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.close()
}

// Usage is how many bytes and inodes are used, and how many there may be.
func (f *FS) Usage() (used, size int64, inodes, maxInodes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, f.limits.Bytes, len(f.nodes), f.limits.Inodes
}

// As is the file system with the permissions of a user.
func (f *FS) As(c Cred) *View { return &View{fs: f, cred: c} }

// ReadFile reads a file as root.
func (f *FS) ReadFile(name string) ([]byte, error) { return f.As(Root).ReadFile(name) }

// WriteFile replaces a file's content as root; the file has the mode given also if it was there before.
// Its directory must exist.
func (f *FS) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return f.As(Root).WriteFile(name, data, mode)
}

// MkdirAll makes a directory and those above it as root.
func (f *FS) MkdirAll(name string, mode fs.FileMode) error { return f.As(Root).MkdirAll(name, mode) }

// SetProc gives a synthetic file of /proc ("meminfo", "self/status") its content, which is asked for at every open.
// Names that the image does not have are ignored.
func (f *FS) SetProc(name string, content func() []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.procs[name] = content
}

func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// errno is nil as an interface if e is zero.
func errno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
