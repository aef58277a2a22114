package sftp

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// attributes are what the protocol says about a file.
type attributes struct {
	flags        uint32 // which of the others a client has said
	size         uint64
	uid, gid     uint32
	permissions  uint32
	atime, mtime uint32 // seconds
}

// attributesOf describes a file.
func attributesOf(info fs.FileInfo) attributes {
	a := attributes{size: uint64(info.Size()), permissions: permissionsOf(info.Mode()), mtime: uint32(info.ModTime().Unix())}
	if stat, ok := info.Sys().(*vfs.Stat); ok {
		a.uid, a.gid, a.atime = stat.UID, stat.GID, uint32(stat.Atime.Unix())
	}
	return a
}

func permissionsOf(mode fs.FileMode) uint32 {
	permissions := vfs.UnixMode(mode)
	switch {
	case mode.IsRegular():
		return permissions | modeRegular
	case mode.IsDir():
		return permissions | modeDir
	case mode&fs.ModeSymlink != 0:
		return permissions | modeLink
	case mode&fs.ModeCharDevice != 0:
		return permissions | modeChar
	default:
		return permissions | modeBlock
	}
}

// mode is what a client wants a file's mode to be; the type of a file does not change.
func (a attributes) mode() fs.FileMode { return vfs.FileMode(a.permissions) }

// modeOr is the mode of a new file: what the client says, or something else, without the umask.
func (a attributes) modeOr(otherwise fs.FileMode) fs.FileMode {
	if a.flags&hasPermissions == 0 {
		return otherwise &^ umask
	}
	return a.mode() &^ umask
}

// target is what attributes are set of: an open file, or a path.
type target struct {
	truncate func(size int64) error
	chown    func(uid, gid int) error
	chmod    func(mode fs.FileMode) error
	chtimes  func(atime, mtime time.Time) error
}

// set sets the attributes that a client has said, up to the first that cannot be set. The owner comes before the mode,
// because changing it takes bits of the mode away.
func (a attributes) set(t target) (err error) {
	if a.flags&hasSize != 0 {
		err = t.truncate(int64(a.size)) // one that is too large for this is negative, and refused
	}
	if err == nil && a.flags&hasOwner != 0 {
		err = t.chown(int(a.uid), int(a.gid))
	}
	if err == nil && a.flags&hasPermissions != 0 {
		err = t.chmod(a.mode())
	}
	if err == nil && a.flags&hasTimes != 0 {
		err = t.chtimes(time.Unix(int64(a.atime), 0), time.Unix(int64(a.mtime), 0))
	}
	return err
}

// halfYear is how old a file is whose time of day nobody wants to see.
const halfYear = 180 * 24 * time.Hour

// longName is a line about a file as ls -l has it.
func (s *server) longName(name string, info fs.FileInfo) string {
	a := attributesOf(info)
	nlink, owner, group := 1, fmt.Sprint(a.uid), fmt.Sprint(a.gid)
	if stat, ok := info.Sys().(*vfs.Stat); ok {
		nlink = stat.Nlink
	}
	if s.Owner != nil {
		owner, group = s.Owner(a.uid, a.gid)
	}
	when, layout := info.ModTime().UTC(), "Jan _2 15:04"
	if age := s.Clock.Since(when); age > halfYear || age < -halfYear {
		layout = "Jan _2  2006"
	}
	return fmt.Sprintf("%s %4d %-8s %-8s %8d %s %s", vfs.ListMode(info.Mode()), nlink, owner, group, info.Size(), when.Format(layout), name)
}
