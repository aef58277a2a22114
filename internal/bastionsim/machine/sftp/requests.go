package sftp

// request is a request of a client; it has the fields that are of its type.
type request struct {
	id           uint32
	path, second string // absolute
	text         string
	handle       []byte
	number       uint32 // flags of opening, length of reading
	offset       uint64
	data         []byte
	attributes   attributes
}

// field reads a field of a request.
type field func(s *server, d *decoder, r *request)

func fieldPath(s *server, d *decoder, r *request)       { r.path = s.absolute(d.text()) }
func fieldSecond(s *server, d *decoder, r *request)     { r.second = s.absolute(d.text()) }
func fieldText(_ *server, d *decoder, r *request)       { r.text = d.text() }
func fieldHandle(_ *server, d *decoder, r *request)     { r.handle = d.bytes() }
func fieldNumber(_ *server, d *decoder, r *request)     { r.number = d.uint32() }
func fieldOffset(_ *server, d *decoder, r *request)     { r.offset = d.uint64() }
func fieldData(_ *server, d *decoder, r *request)       { r.data = d.bytes() }
func fieldAttributes(_ *server, d *decoder, r *request) { r.attributes = d.attributes() }

// kind is a type of request: its fields, and what it does when all of them are there. Without an error, do may have made an
// answer; if not, the answer is that all is well.
type kind struct {
	fields []field
	do     func(s *server, r *request) error
}

var requests = map[byte]kind{
	typeOpen:     {[]field{fieldPath, fieldNumber, fieldAttributes}, (*server).openFile},
	typeClose:    {[]field{fieldHandle}, (*server).closeHandle},
	typeRead:     {[]field{fieldHandle, fieldOffset, fieldNumber}, (*server).read},
	typeWrite:    {[]field{fieldHandle, fieldOffset, fieldData}, (*server).write},
	typeLstat:    {[]field{fieldPath}, (*server).lstat},
	typeFstat:    {[]field{fieldHandle}, (*server).fstat},
	typeSetstat:  {[]field{fieldPath, fieldAttributes}, (*server).setstat},
	typeFsetstat: {[]field{fieldHandle, fieldAttributes}, (*server).fsetstat},
	typeOpendir:  {[]field{fieldPath}, (*server).openDir},
	typeReaddir:  {[]field{fieldHandle}, (*server).readDir},
	typeRemove:   {[]field{fieldPath}, (*server).remove},
	typeMkdir:    {[]field{fieldPath, fieldAttributes}, (*server).mkdir},
	typeRmdir:    {[]field{fieldPath}, (*server).rmdir},
	typeRealpath: {[]field{fieldPath}, (*server).realpath},
	typeStat:     {[]field{fieldPath}, (*server).stat},
	typeRename:   {[]field{fieldPath, fieldSecond}, (*server).rename},
	typeReadlink: {[]field{fieldPath}, (*server).readlink},
	typeSymlink:  {[]field{fieldText, fieldPath}, (*server).symlink},
}

// extension is a request that has a name. All are of version 1.
type extension struct {
	name string
	kind
}

var extensions = []extension{
	{"posix-rename@openssh.com", kind{[]field{fieldPath, fieldSecond}, (*server).posixRename}},
	{"hardlink@openssh.com", kind{[]field{fieldPath, fieldSecond}, (*server).hardlink}},
	{"fsync@openssh.com", kind{[]field{fieldHandle}, (*server).fsync}},
	{"limits@openssh.com", kind{nil, (*server).limits}},
}

// limits answers what a client may do in one request and at a time.
func (s *server) limits(r *request) error {
	s.out.begin(typeExtendedReply, r.id)
	for _, limit := range []uint64{MaxPacket, MaxTransfer, MaxTransfer, MaxHandles} {
		s.out.uint64(limit)
	}
	return nil
}

// kindOf is the type of a request, whose name is read if it has one.
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
