package sftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// handle is an open file or directory.
type handle struct {
	file    *vfs.File
	isDir   bool
	entries []fs.DirEntry // of a directory, those that have not been read yet
}

var errHandle = errors.New("there is no such handle")

// open is the handle of a request.
func (s *server) open(r *request) (*handle, error) {
	if len(r.handle) == 8 {
		if h := s.handles[binary.BigEndian.Uint64(r.handle)]; h != nil {
			return h, nil
		}
	}
	return nil, errHandle
}

// file is the handle of a request, which must be of a file.
func (s *server) file(r *request) (*vfs.File, error) {
	h, err := s.open(r)
	if err == nil && h.isDir {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, err
	}
	return h.file, nil
}

// keep answers with a handle of what has been opened.
func (s *server) keep(r *request, h *handle) error {
	s.next++ // no number is used twice
	s.handles[s.next] = h
	s.entries += len(h.entries)
	s.out.begin(typeHandle, r.id)
	s.out.text(string(binary.BigEndian.AppendUint64(nil, s.next)))
	return nil
}

// mayOpen says whether there may be one more handle.
func (s *server) mayOpen() error {
	if len(s.handles) >= MaxHandles {
		return fmt.Errorf("a session may have %d open files", MaxHandles)
	}
	return nil
}

func (s *server) openFile(r *request) error {
	if err := s.mayOpen(); err != nil {
		return err
	}
	flag := vfs.O_RDONLY
	switch r.number & (openRead | openWrite) {
	case openRead | openWrite:
		flag = vfs.O_RDWR
	case openWrite:
		flag = vfs.O_WRONLY
	}
	for bit, also := range map[uint32]int{openAppend: vfs.O_APPEND, openCreate: vfs.O_CREATE, openTrunc: vfs.O_TRUNC, openExcl: vfs.O_EXCL} {
		if r.number&bit != 0 {
			flag |= also
		}
	}
	file, err := s.View.OpenFile(r.path, flag, r.attributes.modeOr(0o666))
	if err != nil {
		return err
	}
	return s.keep(r, &handle{file: file})
}

func (s *server) openDir(r *request) error {
	if err := s.mayOpen(); err != nil {
		return err
	}
	entries, err := s.View.ReadDir(r.path)
	if err != nil {
		return err
	}
	if s.entries+len(entries) > MaxEntries {
		return fmt.Errorf("open directories may have %d entries together", MaxEntries)
	}
	file, err := s.View.Open(r.path)
	if err != nil {
		return err
	}
	return s.keep(r, &handle{file: file, isDir: true, entries: slices.Clip(entries)})
}

func (s *server) closeHandle(r *request) error {
	h, err := s.open(r)
	if err != nil {
		return err
	}
	delete(s.handles, binary.BigEndian.Uint64(r.handle))
	s.entries -= len(h.entries)
	return h.file.Close()
}

// closeAll closes what the client has left open.
func (s *server) closeAll() {
	for _, h := range s.handles {
		_ = h.file.Close() // a file in memory closes always
	}
	clear(s.handles)
}

func (s *server) read(r *request) error {
	file, err := s.file(r)
	if err != nil {
		return err
	}
	if _, err := file.Seek(int64(r.offset), io.SeekStart); err != nil { // one that is too large is negative, and refused
		return err
	}
	s.out.begin(typeData, r.id)
	s.out.uint32(0)
	start, length := len(s.out.data), int(min(r.number, MaxTransfer))
	s.out.data = slices.Grow(s.out.data, length)
	n, err := file.Read(s.out.data[start : start+length])
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(s.out.data[start-4:], uint32(n))
	s.out.data = s.out.data[:start+n]
	return nil
}

// write writes where the client says, or at the end of a file that is open to append.
func (s *server) write(r *request) error {
	file, err := s.file(r)
	if err != nil {
		return err
	}
	if _, err := file.Seek(int64(r.offset), io.SeekStart); err != nil {
		return err
	}
	_, err = file.Write(r.data)
	return err
}

// fsync returns when the disk is on the host's.
func (s *server) fsync(r *request) error {
	if _, err := s.file(r); err != nil {
		return err
	}
	return s.View.FS().Sync()
}

func (s *server) fstat(r *request) error {
	h, err := s.open(r)
	if err != nil {
		return err
	}
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	return s.describe(r, info)
}

func (s *server) fsetstat(r *request) error {
	h, err := s.open(r)
	if err != nil {
		return err
	}
	return r.attributes.set(target{truncate: h.file.Truncate, chown: h.file.Chown, chmod: h.file.Chmod, chtimes: h.file.Chtimes})
}

// readDir answers with the next entries of a directory.
func (s *server) readDir(r *request) error {
	h, err := s.open(r)
	switch {
	case err != nil:
		return err
	case !h.isDir:
		return syscall.ENOTDIR
	case len(h.entries) == 0:
		return io.EOF
	}
	s.out.begin(typeName, r.id)
	count := len(s.out.data)
	s.out.uint32(0)
	listed := 0
	for _, entry := range h.entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		s.out.text(entry.Name())
		s.out.text(s.longName(entry.Name(), info))
		s.out.attributes(attributesOf(info))
		if listed++; len(s.out.data) >= maxListing {
			break
		}
	}
	binary.BigEndian.PutUint32(s.out.data[count:], uint32(listed))
	h.entries = h.entries[listed:]
	s.entries -= listed
	return nil
}
