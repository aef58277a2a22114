package vfs

import (
	"crypto/rand"
	"io"
	"io/fs"
	"slices"
)

// Flag says how a file is opened.
type Flag int

// The flags; they combine.
const (
	Read Flag = 1 << iota
	Write
	Create
	Truncate
	Append
	Exclusive
)

// File is an open file. It may be used concurrently.
type File struct {
	view   View
	n      *node
	path   string
	flag   Flag
	offset int
	closed bool
}

// Open opens a file; Create makes it with perm if it is missing.
func (v View) Open(p string, flag Flag, perm fs.FileMode) (*File, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	dir, name, n, err := v.walk(p, flag&Exclusive == 0)
	switch {
	case err != nil:
	case n == nil && flag&Create == 0:
		err = ErrNotExist
	case n == nil:
		n = &node{mode: perm.Perm()}
		err = v.link(dir, name, n)
	case flag&Exclusive != 0:
		err = ErrExist
	case n.mode.IsDir() && flag&(Write|Append|Truncate) != 0:
		err = ErrIsDir
	case flag&Read != 0 && !v.may(n, permRead), flag&(Write|Append|Truncate) != 0 && !v.may(n, permWrite):
		err = ErrPermission
	}
	if err != nil {
		return nil, pathError("open", p, err)
	}
	if flag&Truncate != 0 && n.mode.IsRegular() {
		_ = v.fs.charge(-int64(len(n.data)), 0)
		n.data, n.mtime = nil, v.fs.now()
	}
	n.opens++
	return &File{view: v, n: n, path: p, flag: flag}, nil
}

// Read reads from the file's offset.
func (f *File) Read(b []byte) (int, error) {
	f.view.fs.mu.Lock()
	defer f.view.fs.mu.Unlock()
	switch {
	case f.closed || f.flag&Read == 0:
		return 0, pathError("read", f.path, ErrBadFile)
	case f.n.mode.IsDir():
		return 0, pathError("read", f.path, ErrIsDir)
	case f.n.device == DeviceZero || f.n.device == DeviceFull:
		clear(b)
		return len(b), nil
	case f.n.device == DeviceRandom:
		return rand.Read(b)
	case f.n.device != "" || f.offset >= len(f.n.data):
		return 0, io.EOF
	}
	n := copy(b, f.n.data[f.offset:])
	f.offset += n
	return n, nil
}

// Write writes at the file's offset, or at its end with Append.
func (f *File) Write(b []byte) (int, error) {
	f.view.fs.mu.Lock()
	defer f.view.fs.mu.Unlock()
	switch {
	case f.closed || f.flag&(Write|Append) == 0:
		return 0, pathError("write", f.path, ErrBadFile)
	case f.n.device == DeviceFull:
		return 0, pathError("write", f.path, ErrNoSpace)
	case f.n.device != "":
		return len(b), nil
	}
	if f.flag&Append != 0 {
		f.offset = len(f.n.data)
	}
	end := f.offset + len(b)
	if int64(end) > f.view.fs.limits.FileSize {
		return 0, pathError("write", f.path, ErrTooLarge)
	}
	if grow := end - len(f.n.data); grow > 0 {
		if err := f.view.fs.charge(int64(grow), 0); err != nil {
			return 0, pathError("write", f.path, err)
		}
		// The capacity is not charged: doubling is bounded by the limit on a file's size.
		f.n.data = slices.Grow(f.n.data, grow)[:end]
	}
	copy(f.n.data[f.offset:], b)
	f.offset, f.n.mtime = end, f.view.fs.now()
	return len(b), nil
}

// Stat describes the open file.
func (f *File) Stat() Info {
	f.view.fs.mu.Lock()
	defer f.view.fs.mu.Unlock()
	return f.n.info(f.path)
}

// Close closes the file; the space of a removed one is free when the last closes it.
func (f *File) Close() error {
	f.view.fs.mu.Lock()
	defer f.view.fs.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.n.opens--; f.n.opens == 0 && f.n.unlinked {
		_ = f.view.fs.charge(-int64(len(f.n.data)), 0)
		f.n.data = nil
	}
	return nil
}

// ReadFile reads a whole file. Devices are read as empty.
func (v View) ReadFile(p string) ([]byte, error) {
	f, err := v.Open(p, Read, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	if f.n.mode.IsDir() {
		return nil, pathError("read", p, ErrIsDir)
	}
	return slices.Clone(f.n.data), nil
}

// WriteFile writes a whole file, making it with perm if it is missing.
func (v View) WriteFile(p string, data []byte, perm fs.FileMode) error {
	f, err := v.Open(p, Write|Create|Truncate, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

// AppendFile appends to a file, making it with perm if it is missing.
func (v View) AppendFile(p string, data []byte, perm fs.FileMode) error {
	f, err := v.Open(p, Write|Create|Append, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}
