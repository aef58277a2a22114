package vfs

import (
	"crypto/rand"
	"io"
	"io/fs"
	"path"
	"sync"
	"syscall"
)

// Flags of OpenFile.
const (
	O_RDONLY = syscall.O_RDONLY
	O_WRONLY = syscall.O_WRONLY
	O_RDWR   = syscall.O_RDWR
	O_APPEND = syscall.O_APPEND
	O_CREATE = syscall.O_CREAT
	O_EXCL   = syscall.O_EXCL
	O_TRUNC  = syscall.O_TRUNC
)

// File is an open file. Its methods may be called concurrently.
type File struct {
	fs   *FS
	cred Cred // of the user who opened it
	name string
	ino  uint64
	flag int
	dev  device
	// procName is the name of a synthetic file in /proc, and proc is its content.
	procName string
	proc     []byte

	mu     sync.Mutex
	pos    int64
	closed bool
}

// Open opens a file for reading.
func (v *View) Open(name string) (*File, error) { return v.OpenFile(name, O_RDONLY, 0) }

// OpenFile opens a file like open(2). /dev/tty cannot be opened here: only a session knows its terminal.
func (v *View) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	file, err := v.open(name, flag, perm)
	if err != 0 {
		return nil, fail("open", name, err)
	}
	if file.procName != "" {
		file.proc = v.fs.proc(file.procName) // without the lock, because proc reads files itself
	}
	return file, nil
}

func (v *View) open(name string, flag int, perm fs.FileMode) (*File, syscall.Errno) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.walk(v.cred, name, flag&(O_CREATE|O_EXCL) != O_CREATE|O_EXCL)
	if err != 0 {
		return nil, err
	}
	if p.node == nil {
		if flag&O_CREATE == 0 {
			return nil, syscall.ENOENT
		}
		if err := v.createFile(&p, perm); err != 0 {
			return nil, err
		}
	} else if err := v.mayOpen(p.node, flag); err != 0 {
		return nil, err
	}
	n := p.node
	if flag&O_TRUNC != 0 && flag&(O_WRONLY|O_RDWR) != 0 && n.mode.IsRegular() && len(n.data) > 0 {
		if n, err = v.fs.own(n.ino); err == 0 {
			err = v.fs.resize(n, 0)
		}
		if err != 0 {
			return nil, err
		}
	}
	v.fs.opens[n.ino]++
	return &File{fs: v.fs, cred: v.cred, name: name, ino: n.ino, flag: flag, dev: n.dev, procName: n.proc}, 0
}

func (v *View) createFile(p *place, perm fs.FileMode) syscall.Errno {
	if p.slash {
		return syscall.EISDIR
	}
	if err := v.fs.mayAdd(v.cred, *p); err != 0 {
		return err
	}
	p.node = &node{mode: perm & modeBits}
	return v.add(*p, p.node)
}

func (v *View) mayOpen(n *node, flag int) syscall.Errno {
	write := flag&(O_WRONLY|O_RDWR) != 0
	var want fs.FileMode
	if write {
		want |= 2
	}
	if flag&O_WRONLY == 0 {
		want |= 4
	}
	switch {
	case flag&(O_CREATE|O_EXCL) == O_CREATE|O_EXCL:
		return syscall.EEXIST
	case n.mode&fs.ModeSymlink != 0:
		return syscall.ELOOP
	case n.mode.IsDir() && write:
		return syscall.EISDIR
	case !n.may(v.cred, want), n.fixed && write && n.dev == noDevice:
		return syscall.EACCES
	case n.dev == devTTY:
		return syscall.ENXIO
	}
	return 0
}

func (f *File) closedError(op string) error {
	return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
}

// Name returns the path that the file was opened by.
func (f *File) Name() string { return f.name }

// Stat describes the open file.
func (f *File) Stat() (fs.FileInfo, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n := f.fs.get(f.ino)
	if n == nil {
		return nil, fail("stat", f.name, syscall.ESTALE)
	}
	return n.info(path.Base(f.name)), nil
}

// Read reads from the current position.
func (f *File) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

func (f *File) readAt(p []byte, pos int64) (int, error) {
	switch {
	case f.closed:
		return 0, f.closedError("read")
	case f.flag&O_WRONLY != 0:
		return 0, fail("read", f.name, syscall.EBADF)
	case f.dev == devZero || f.dev == devFull:
		clear(p)
		return len(p), nil
	case f.dev == devRandom:
		return rand.Read(p)
	case f.dev != noDevice:
		return 0, io.EOF
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	data := f.proc
	if f.procName == "" {
		n := f.fs.get(f.ino)
		if n == nil || n.mode.IsDir() {
			return 0, fail("read", f.name, syscall.EISDIR)
		}
		data = n.data
	}
	if pos >= int64(len(data)) {
		return 0, io.EOF
	}
	return copy(p, data[pos:]), nil
}

// Write writes at the current position, or at the end of a file that was opened to append.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return 0, f.closedError("write")
	case f.flag&(O_WRONLY|O_RDWR) == 0:
		return 0, fail("write", f.name, syscall.EBADF)
	case f.dev == devFull:
		return 0, fail("write", f.name, syscall.ENOSPC)
	case f.dev != noDevice:
		return len(p), nil
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.fs.own(f.ino)
	if err != 0 {
		return 0, fail("write", f.name, err)
	}
	if f.flag&O_APPEND != 0 {
		f.pos = int64(len(n.data))
	}
	if room := f.fs.limits.FileSize - f.pos; int64(len(p)) > room {
		p, err = p[:max(0, room)], syscall.EFBIG
	}
	if end := f.pos + int64(len(p)); len(p) > 0 && end > int64(len(n.data)) {
		if roomErr := f.fs.resize(n, end); roomErr != 0 {
			return 0, fail("write", f.name, roomErr)
		}
	}
	if n.shared { // the image keeps the old data
		n.data, n.shared = append([]byte(nil), n.data...), false
	}
	count := copy(n.data[min(f.pos, int64(len(n.data))):], p)
	f.pos += int64(count)
	n.mode &^= fs.ModeSetuid
	n.mtime, n.ctime = f.fs.clock.Now(), f.fs.clock.Now()
	return count, fail("write", f.name, err)
}

// replace replaces the content.
func (f *File) replace(data []byte) error {
	if f.dev != noDevice {
		_, err := f.Write(data)
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.fs.own(f.ino)
	if err == 0 {
		err = f.fs.resize(n, int64(len(data)))
	}
	if err == 0 {
		copy(n.data, data)
		n.mode &^= fs.ModeSetuid
	}
	return fail("write", f.name, err)
}

// Seek sets the current position.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		offset += info.Size()
	}
	if offset < 0 {
		return 0, fail("seek", f.name, syscall.EINVAL)
	}
	f.pos = offset
	return offset, nil
}

// Truncate shortens the file, or extends it with zeros.
func (f *File) Truncate(size int64) error {
	if f.flag&(O_WRONLY|O_RDWR) == 0 || f.dev != noDevice {
		return fail("truncate", f.name, syscall.EINVAL)
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := f.fs.own(f.ino)
	if err == 0 {
		err = f.fs.resize(n, size)
	}
	return fail("truncate", f.name, err)
}

// Close closes the file. A file that has no name any more is deleted with its last handle.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.closedError("close")
	}
	f.closed = true
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.opens[f.ino]--; f.fs.opens[f.ino] <= 0 {
		delete(f.fs.opens, f.ino)
		if n := f.fs.nodes[f.ino]; n != nil {
			f.fs.forget(n)
		}
	}
	return nil
}
