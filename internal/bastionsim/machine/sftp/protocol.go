package sftp

import "encoding/binary"

const version = 3

// Types of packets.
const (
	typeInit          = 1
	typeVersion       = 2
	typeOpen          = 3
	typeClose         = 4
	typeRead          = 5
	typeWrite         = 6
	typeLstat         = 7
	typeFstat         = 8
	typeSetstat       = 9
	typeFsetstat      = 10
	typeOpendir       = 11
	typeReaddir       = 12
	typeRemove        = 13
	typeMkdir         = 14
	typeRmdir         = 15
	typeRealpath      = 16
	typeStat          = 17
	typeRename        = 18
	typeReadlink      = 19
	typeSymlink       = 20
	typeStatus        = 101
	typeHandle        = 102
	typeData          = 103
	typeName          = 104
	typeAttributes    = 105
	typeExtended      = 200
	typeExtendedReply = 201
)

// Codes of a status.
const (
	codeOK               = 0
	codeEOF              = 1
	codeNoSuchFile       = 2
	codePermissionDenied = 3
	codeFailure          = 4
	codeUnsupported      = 8
)

// Flags of opening a file.
const (
	openRead   = 1
	openWrite  = 2
	openAppend = 4
	openCreate = 8
	openTrunc  = 16
	openExcl   = 32
)

// Flags for the attributes that are set.
const (
	hasSize        = 1
	hasOwner       = 2
	hasPermissions = 4
	hasTimes       = 8
	hasExtended    = 1 << 31
)

// decoder reads the fields of a packet. After the first incomplete field, all fields are zero and bad is true.
type decoder struct {
	rest []byte
	bad  bool
}

// take returns a part of the packet, whose buffer the next packet overwrites.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

// number reads a number of the given size in bytes.
func (d *decoder) number(size uint64) (n uint64) {
	for _, b := range d.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (d *decoder) byte() byte     { return byte(d.number(1)) }
func (d *decoder) uint32() uint32 { return uint32(d.number(4)) }
func (d *decoder) uint64() uint64 { return d.number(8) }
func (d *decoder) bytes() []byte  { return d.take(d.number(4)) }
func (d *decoder) text() string   { return string(d.bytes()) }

// attributes reads the attributes of a file. It ignores flags that this version does not define.
func (d *decoder) attributes() attributes {
	a := attributes{flags: d.uint32()}
	if a.flags&hasSize != 0 {
		a.size = d.uint64()
	}
	if a.flags&hasOwner != 0 {
		a.uid, a.gid = d.uint32(), d.uint32()
	}
	if a.flags&hasPermissions != 0 {
		a.permissions = d.uint32()
	}
	if a.flags&hasTimes != 0 {
		a.atime, a.mtime = d.uint32(), d.uint32()
	}
	if a.flags&hasExtended != 0 {
		for n := d.uint32(); n > 0 && !d.bad; n-- {
			d.bytes()
			d.bytes()
		}
	}
	return a
}

// encoder writes an answer to a buffer, which it uses again for the next one.
type encoder struct{ data []byte }

// begin starts an answer with a placeholder for its length, its type and the ID of the request.
func (e *encoder) begin(kind byte, id uint32) {
	e.data = append(e.data[:0], 0, 0, 0, 0, kind)
	e.uint32(id)
}

func (e *encoder) uint32(n uint32) { e.data = binary.BigEndian.AppendUint32(e.data, n) }
func (e *encoder) uint64(n uint64) { e.data = binary.BigEndian.AppendUint64(e.data, n) }

func (e *encoder) text(s string) {
	e.uint32(uint32(len(s)))
	e.data = append(e.data, s...)
}

// later leaves room for a number and returns the function that sets it.
func (e *encoder) later() (set func(n int)) {
	at := len(e.data)
	e.uint32(0)
	return func(n int) { binary.BigEndian.PutUint32(e.data[at:], uint32(n)) }
}

func (e *encoder) finish() []byte {
	binary.BigEndian.PutUint32(e.data, uint32(len(e.data)-4))
	return e.data
}
