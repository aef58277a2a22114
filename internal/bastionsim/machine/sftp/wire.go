package sftp

import "encoding/binary"

// decoder reads the fields of a packet. After the first one that is not there, all are zero and bad is set.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes is part of the packet, whose buffer is used again.
func (d *decoder) bytes() []byte { return d.take(uint64(d.uint32())) }

func (d *decoder) text() string { return string(d.bytes()) }

// attributes reads what a client says about a file. Flags that the version does not have are ignored.
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

// encoder makes an answer in a buffer that is used again.
type encoder struct{ data []byte }

// begin starts an answer: its length, which send knows, its type and the number of the request.
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

func (e *encoder) attributes(a attributes) {
	e.uint32(hasSize | hasOwner | hasPermissions | hasTimes)
	e.uint64(a.size)
	e.uint32(a.uid)
	e.uint32(a.gid)
	e.uint32(a.permissions)
	e.uint32(a.atime)
	e.uint32(a.mtime)
}

// finish is the packet with its length.
func (e *encoder) finish() []byte {
	binary.BigEndian.PutUint32(e.data, uint32(len(e.data)-4))
	return e.data
}
