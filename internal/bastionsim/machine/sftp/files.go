package sftp

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

type handle struct {
	*vfs.File
	name    string
	isDir   bool
	entries []fs.DirEntry // unread ones of a directory
}

// access maps the protocol's flags for reading and writing to vfs flags.
var access = [...]int{vfs.O_RDONLY, openRead: vfs.O_RDONLY, openWrite: vfs.O_WRONLY, openRead | openWrite: vfs.O_RDWR}

var openFlags = map[uint32]int{
	openAppend: vfs.O_APPEND, openCreate: vfs.O_CREATE, openTrunc: vfs.O_TRUNC, openExcl: vfs.O_EXCL,
}

func (s *server) openFile() error {
	flag := access[s.number&(openRead|openWrite)]
	for bit, also := range openFlags {
		if s.number&bit != 0 {
			flag |= also
		}
	}
	return s.open(handle{}, flag)
}

func (s *server) openDir() error {
	entries, err := s.View.ReadDir(s.path)
	if err != nil {
		return err
	}
	if s.unlisted+len(entries) > MaxEntries {
		return fmt.Errorf("a session may have %d unread entries of open directories", MaxEntries)
	}
	s.unlisted += len(entries)
	if err = syscall.ENOMEM; s.Hold(sizeOf(entries)) {
		err = s.open(handle{isDir: true, entries: slices.Clip(entries)}, vfs.O_RDONLY)
	}
	if err != nil {
		s.release(entries)
	}
	return err
}

// release gives the memory of entries back that are listed or not needed any more.
func (s *server) release(entries []fs.DirEntry) {
	s.unlisted -= len(entries)
	s.Hold(-sizeOf(entries))
}

func sizeOf(entries []fs.DirEntry) (bytes int64) {
	for _, entry := range entries {
		bytes += int64(entrySize + len(entry.Name()))
	}
	return bytes
}

// open opens a file and answers with its handle. A handle's name is never used again.
func (s *server) open(h handle, flag int) (err error) {
	if len(s.handles) >= MaxHandles {
		return fmt.Errorf("a session may have %d open files", MaxHandles)
	}
	if h.File, err = s.View.OpenFile(s.path, flag, s.attributes.newMode(0o666)); err != nil {
		return err
	}
	s.last++
	h.name = string(binary.BigEndian.AppendUint64(nil, s.last))
	s.handles[h.name] = &h
	s.out.begin(typeHandle, s.id)
	s.out.text(h.name)
	return nil
}

func (s *server) closeHandle() error {
	delete(s.handles, s.handle.name)
	s.release(s.handle.entries)
	return s.handle.Close()
}

func (s *server) closeAll() {
	for _, h := range s.handles {
		s.release(h.entries)
		_ = h.Close() // fails only for a closed file
	}
}

// seek moves to the offset of the request. The file rejects one that is negative as an int64.
func (s *server) seek() error {
	_, err := s.handle.Seek(int64(s.offset), io.SeekStart)
	return err
}

func (s *server) read() error {
	if err := s.seek(); err != nil {
		return err
	}
	s.out.begin(typeData, s.id)
	length := s.out.later()
	start, size := len(s.out.data), int(min(s.number, MaxTransfer))
	s.out.data = slices.Grow(s.out.data, size)
	n, err := s.handle.Read(s.out.data[start : start+size])
	s.out.data = s.out.data[:start+n]
	length(n)
	return err
}

// write writes at the offset, or at the end of a file that is open for appending.
func (s *server) write() error {
	if err := s.seek(); err != nil {
		return err
	}
	_, err := s.handle.Write(s.data)
	return err
}

func (s *server) readDir() error {
	if !s.handle.isDir {
		return syscall.ENOTDIR
	}
	if len(s.handle.entries) == 0 {
		return io.EOF
	}
	s.out.begin(typeName, s.id)
	count, listed := s.out.later(), 0
	for ; listed < len(s.handle.entries) && len(s.out.data) < maxListing; listed++ {
		info, err := s.handle.entries[listed].Info()
		if err != nil {
			return err
		}
		s.out.text(info.Name())
		s.out.text(s.longName(info))
		s.out.info(info)
	}
	count(listed)
	s.release(s.handle.entries[:listed])
	s.handle.entries = s.handle.entries[listed:]
	return nil
}
