package sftp

import (
	"cmp"
	"errors"
	"strings"
	"syscall"
)

// request is a decoded request. Only the fields of its type are set.
type request struct {
	id           uint32
	path, second string // absolute
	text         string
	handle       *handle
	number       uint32 // flags of opening, length of reading
	offset       uint64
	data         []byte
	attributes   attributes
	err          error // of a field that is complete, but not valid
}

type field func(s *server, d *decoder)

func fieldPath(s *server, d *decoder)       { s.path = s.absolute(d.text()) }
func fieldSecond(s *server, d *decoder)     { s.second = s.absolute(d.text()) }
func fieldText(s *server, d *decoder)       { s.text = d.text() }
func fieldNumber(s *server, d *decoder)     { s.number = d.uint32() }
func fieldOffset(s *server, d *decoder)     { s.offset = d.uint64() }
func fieldData(s *server, d *decoder)       { s.data = d.bytes() }
func fieldAttributes(s *server, d *decoder) { s.attributes = d.attributes() }

func fieldHandle(s *server, d *decoder) {
	if s.handle = s.handles[string(d.bytes())]; s.handle == nil {
		s.err = errors.New("no such handle")
	}
}

// absolute makes a path absolute without cleaning it. The empty path stays empty, which the file system rejects.
func (s *server) absolute(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(s.Home, "/") + "/" + name
}

// kind is a type of request: its fields, and the function that executes it once all of them are valid. If the function
// returns no error and writes no answer, the answer is the status "OK".
type kind struct {
	fields []field
	do     func(s *server) error
}

var requests = map[byte]kind{
	typeOpen:     {[]field{fieldPath, fieldNumber, fieldAttributes}, (*server).openFile},
	typeClose:    {[]field{fieldHandle}, (*server).closeHandle},
	typeRead:     {[]field{fieldHandle, fieldOffset, fieldNumber}, (*server).read},
	typeWrite:    {[]field{fieldHandle, fieldOffset, fieldData}, (*server).write},
	typeLstat:    {[]field{fieldPath}, func(s *server) error { return s.describe(s.View.Lstat(s.path)) }},
	typeFstat:    {[]field{fieldHandle}, func(s *server) error { return s.describe(s.handle.Stat()) }},
	typeSetstat:  {[]field{fieldPath, fieldAttributes}, func(s *server) error { return s.attributes.set(named{s.View, s.path}) }},
	typeFsetstat: {[]field{fieldHandle, fieldAttributes}, func(s *server) error { return s.attributes.set(s.handle) }},
	typeOpendir:  {[]field{fieldPath}, (*server).openDir},
	typeReaddir:  {[]field{fieldHandle}, (*server).readDir},
	typeRemove:   {[]field{fieldPath}, func(s *server) error { return s.remove(false) }},
	typeMkdir:    {[]field{fieldPath, fieldAttributes}, func(s *server) error { return s.View.Mkdir(s.path, s.attributes.newMode(0o777)) }},
	typeRmdir:    {[]field{fieldPath}, func(s *server) error { return s.remove(true) }},
	// Clients send the empty path or "." to get the home.
	typeRealpath: {[]field{fieldPath}, func(s *server) error { return s.name(s.View.Resolve(cmp.Or(s.path, s.Home))) }},
	typeStat:     {[]field{fieldPath}, func(s *server) error { return s.describe(s.View.Stat(s.path)) }},
	// Unlike posix-rename, this replaces no file.
	typeRename:   {[]field{fieldPath, fieldSecond}, func(s *server) error { return s.View.RenameNew(s.path, s.second) }},
	typeReadlink: {[]field{fieldPath}, func(s *server) error { return s.name(s.View.Readlink(s.path)) }},
	// The target comes first, as in OpenSSH's clients and servers; in the draft it comes second.
	typeSymlink: {[]field{fieldText, fieldPath}, func(s *server) error { return s.View.Symlink(s.text, s.path) }},
}

// extensions are requests with a name. The version of each is 1.
var extensions = []struct {
	name string
	kind
}{
	{"posix-rename@openssh.com", kind{[]field{fieldPath, fieldSecond}, func(s *server) error { return s.View.Rename(s.path, s.second) }}},
	{"hardlink@openssh.com", kind{[]field{fieldPath, fieldSecond}, func(s *server) error { return s.View.Link(s.path, s.second) }}},
	{"fsync@openssh.com", kind{[]field{fieldHandle}, func(s *server) error { return s.View.FS().Sync() }}},
	{"limits@openssh.com", kind{nil, (*server).limits}},
}

// kindOf returns the type of a request. It reads the name of an extension.
func kindOf(number byte, d *decoder) (kind, bool) {
	if number != typeExtended {
		k, known := requests[number]
		return k, known
	}
	name := d.text()
	for _, e := range extensions {
		if e.name == name {
			return e.kind, true
		}
	}
	return kind{}, false
}

func (s *server) limits() error {
	s.out.begin(typeExtendedReply, s.id)
	for _, limit := range []uint64{MaxPacket, MaxTransfer, MaxTransfer, MaxHandles} {
		s.out.uint64(limit)
	}
	return nil
}

// name answers with a path.
func (s *server) name(name string, err error) error {
	s.out.begin(typeName, s.id)
	s.out.uint32(1)
	s.out.text(name)
	s.out.text(name)
	s.out.uint32(0) // no attributes
	return err
}

func (s *server) remove(dir bool) error {
	info, err := s.View.Lstat(s.path)
	switch {
	case err != nil:
		return err
	case dir && !info.IsDir():
		return syscall.ENOTDIR
	case !dir && info.IsDir():
		return syscall.EISDIR
	}
	return s.View.Remove(s.path)
}
