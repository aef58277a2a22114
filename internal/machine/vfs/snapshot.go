package vfs

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"
)

// entry is a file in a snapshot; directories come before what is in them.
type entry struct {
	Path     string
	Mode     fs.FileMode
	UID, GID int
	Modified time.Time
	Data     []byte
	Target   string
	Device   Device
}

// Snapshot is the whole file system as bytes, for Restore.
func (f *FS) Snapshot() ([]byte, error) {
	var entries []entry
	f.mu.Lock()
	collect(f.root, "/", &entries)
	f.mu.Unlock()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := gob.NewEncoder(z).Encode(entries); err != nil {
		return nil, fmt.Errorf("encoding a machine's file system: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing a machine's file system: %w", err)
	}
	return b.Bytes(), nil
}

func collect(n *node, at string, entries *[]entry) {
	*entries = append(*entries, entry{at, n.mode, n.uid, n.gid, n.mtime, slices.Clone(n.data), n.target, n.device})
	for _, name := range sortedNames(n) {
		collect(n.children[name], path.Join(at, name), entries)
	}
}

// Restore makes a file system from a snapshot. It refuses what is larger than the limits.
func Restore(snapshot []byte, limits Limits, now func() time.Time) (*FS, error) {
	f := New(limits, now)
	z, err := gzip.NewReader(bytes.NewReader(snapshot))
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot of a machine's file system: %w", err)
	}
	// Names and attributes come on top of the files' bytes.
	most := f.limits.Bytes + int64(f.limits.Inodes)*int64(f.limits.PathLength)
	var entries []entry
	if err := gob.NewDecoder(io.LimitReader(z, most)).Decode(&entries); err != nil {
		return nil, fmt.Errorf("decoding the snapshot of a machine's file system: %w", err)
	}
	v := f.As(Root)
	for _, e := range entries {
		if err := v.restore(e); err != nil {
			return nil, fmt.Errorf("restoring %s of a machine: %w", e.Path, err)
		}
	}
	// Only now: making what is in a directory changed its time.
	for _, e := range slices.Backward(entries) {
		if n, err := v.find(e.Path, false); err == nil {
			n.mtime = e.Modified
		}
	}
	return f, nil
}

func (v View) restore(e entry) error {
	if int64(len(e.Data)) > v.fs.limits.FileSize {
		return ErrTooLarge
	}
	dir, name, n, err := v.walk(e.Path, false)
	if err != nil {
		return err
	}
	if n == nil {
		n = &node{data: e.Data, target: e.Target, device: e.Device, mode: e.Mode}
		if e.Mode.IsDir() {
			n.children = map[string]*node{}
		}
		if err := v.link(dir, name, n); err != nil {
			return err
		}
	}
	n.mode, n.uid, n.gid = e.Mode, e.UID, e.GID
	return nil
}
