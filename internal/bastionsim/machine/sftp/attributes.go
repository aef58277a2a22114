package sftp

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// attributes of a file, as a client sets them.
type attributes struct {
	flags        uint32 // which of the others are set
	size         uint64
	uid, gid     uint32
	permissions  uint32
	atime, mtime uint32 // seconds
}

// newMode returns the mode of a new file: the one that is set or a default, without the umask.
func (a attributes) newMode(otherwise fs.FileMode) fs.FileMode {
	if a.flags&hasPermissions != 0 {
		otherwise = vfs.FileMode(a.permissions)
	}
	return otherwise &^ umask
}

// target is an open file or a path.
type target interface {
	Truncate(size int64) error
	Chown(uid, gid int) error
	Chmod(mode fs.FileMode) error
	Chtimes(atime, mtime time.Time) error
}

type named struct {
	view *vfs.View
	path string
}

func (n named) Truncate(size int64) error            { return n.view.Truncate(n.path, size) }
func (n named) Chown(uid, gid int) error             { return n.view.Chown(n.path, uid, gid) }
func (n named) Chmod(mode fs.FileMode) error         { return n.view.Chmod(n.path, mode) }
func (n named) Chtimes(atime, mtime time.Time) error { return n.view.Chtimes(n.path, atime, mtime) }

// set sets attributes up to the first one that fails. The owner comes before the mode, because changing the owner
// clears bits of the mode. The file system rejects a size that is negative as an int64.
func (a attributes) set(t target) (err error) {
	if a.flags&hasSize != 0 {
		err = t.Truncate(int64(a.size))
	}
	if err == nil && a.flags&hasOwner != 0 {
		err = t.Chown(int(a.uid), int(a.gid))
	}
	if err == nil && a.flags&hasPermissions != 0 {
		err = t.Chmod(vfs.FileMode(a.permissions))
	}
	if err == nil && a.flags&hasTimes != 0 {
		err = t.Chtimes(time.Unix(int64(a.atime), 0), time.Unix(int64(a.mtime), 0))
	}
	return err
}

// fileTypes maps types of files to their bits in POSIX permissions.
var fileTypes = map[fs.FileMode]uint32{
	0: syscall.S_IFREG, fs.ModeDir: syscall.S_IFDIR, fs.ModeSymlink: syscall.S_IFLNK,
	fs.ModeDevice: syscall.S_IFBLK, fs.ModeDevice | fs.ModeCharDevice: syscall.S_IFCHR,
}

func (e *encoder) info(info fs.FileInfo) {
	stat := info.Sys().(*vfs.Stat)
	e.uint32(hasSize | hasOwner | hasPermissions | hasTimes)
	e.uint64(uint64(info.Size()))
	e.uint32(stat.UID)
	e.uint32(stat.GID)
	e.uint32(vfs.UnixMode(info.Mode()) | fileTypes[info.Mode().Type()])
	e.uint32(uint32(stat.Atime.Unix()))
	e.uint32(uint32(info.ModTime().Unix()))
}

func (s *server) describe(info fs.FileInfo, err error) error {
	if err != nil {
		return err
	}
	s.out.begin(typeAttributes, s.id)
	s.out.info(info)
	return nil
}

// halfYear is the age from which a listing has the year of a file instead of the time of day.
const halfYear = 180 * 24 * time.Hour

// longName returns a line about a file in the format of ls -l.
func (s *server) longName(info fs.FileInfo) string {
	stat, when, layout := info.Sys().(*vfs.Stat), info.ModTime().UTC(), "Jan _2 15:04"
	if s.Clock.Since(when).Abs() > halfYear {
		layout = "Jan _2  2006"
	}
	user, group := s.Owner(stat.UID, stat.GID)
	return fmt.Sprintf("%s %4d %-8s %-8s %8d %s %s", vfs.ListMode(info.Mode()), stat.Nlink, user, group, info.Size(),
		when.Format(layout), info.Name())
}
