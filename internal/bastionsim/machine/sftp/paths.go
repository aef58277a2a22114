package sftp

import (
	"cmp"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// absolute is a path from the root for one that a client gave. It is not cleaned: the file system follows it as it is. The
// empty path stays empty, and leads nowhere.
func (s *server) absolute(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(s.Home, "/") + "/" + name
}

// describe answers with attributes.
func (s *server) describe(r *request, info fs.FileInfo) error {
	s.out.begin(typeAttributes, r.id)
	s.out.attributes(attributesOf(info))
	return nil
}

// name answers with one path.
func (s *server) name(r *request, name string) error {
	s.out.begin(typeName, r.id)
	s.out.uint32(1)
	s.out.text(name)
	s.out.text(name)
	s.out.uint32(0) // no attributes
	return nil
}

func (s *server) stat(r *request) error {
	info, err := s.View.Stat(r.path)
	if err != nil {
		return err
	}
	return s.describe(r, info)
}

func (s *server) lstat(r *request) error {
	info, err := s.View.Lstat(r.path)
	if err != nil {
		return err
	}
	return s.describe(r, info)
}

func (s *server) setstat(r *request) error {
	return r.attributes.set(target{
		truncate: func(size int64) error { return s.View.Truncate(r.path, size) },
		chown:    func(uid, gid int) error { return s.View.Chown(r.path, uid, gid) },
		chmod:    func(mode fs.FileMode) error { return s.View.Chmod(r.path, mode) },
		chtimes:  func(atime, mtime time.Time) error { return s.View.Chtimes(r.path, atime, mtime) },
	})
}

func (s *server) remove(r *request) error {
	if err := s.mustBe(r.path, false); err != nil {
		return err
	}
	return s.View.Remove(r.path)
}

func (s *server) rmdir(r *request) error {
	if err := s.mustBe(r.path, true); err != nil {
		return err
	}
	return s.View.Remove(r.path)
}

// mustBe says what is wrong if a path does not lead to a directory, or to something else.
func (s *server) mustBe(name string, dir bool) error {
	info, err := s.View.Lstat(name)
	switch {
	case err != nil:
		return err
	case dir && !info.IsDir():
		return syscall.ENOTDIR
	case !dir && info.IsDir():
		return syscall.EISDIR
	}
	return nil
}

func (s *server) mkdir(r *request) error {
	return s.View.Mkdir(r.path, r.attributes.modeOr(0o777))
}

// rename replaces nothing; posixRename does.
func (s *server) rename(r *request) error      { return s.View.RenameNew(r.path, r.second) }
func (s *server) posixRename(r *request) error { return s.View.Rename(r.path, r.second) }
func (s *server) hardlink(r *request) error    { return s.View.Link(r.path, r.second) }

// symlink takes the target first, as OpenSSH's clients and servers do, and not as the draft says.
func (s *server) symlink(r *request) error { return s.View.Symlink(r.text, r.path) }

func (s *server) readlink(r *request) error {
	target, err := s.View.Readlink(r.path)
	if err != nil {
		return err
	}
	return s.name(r, target)
}

// realpath is how clients ask where they are, too: by "." or by nothing.
func (s *server) realpath(r *request) error {
	name, err := s.View.Resolve(cmp.Or(r.path, s.Home))
	if err != nil {
		return err
	}
	return s.name(r, name)
}
