package vfs

import "io/fs"

// Bits of a mode beside the permissions, where Unix has them.
const (
	unixSetuid = 0o4000
	unixSetgid = 0o2000
	unixSticky = 0o1000
)

// specialBits are those bits, from the first group of permissions on, with what ListMode writes for them.
var specialBits = [...]struct {
	mode              fs.FileMode
	bit               uint32
	executable, plain byte
}{{fs.ModeSetuid, unixSetuid, 's', 'S'}, {fs.ModeSetgid, unixSetgid, 's', 'S'}, {fs.ModeSticky, unixSticky, 't', 'T'}}

// UnixMode is a mode as chmod and stat write it, without the type of the file.
func UnixMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for _, special := range specialBits {
		if m&special.mode != 0 {
			n |= special.bit
		}
	}
	return n
}

// FileMode is the mode for what UnixMode is for it. Other bits are ignored.
func FileMode(n uint32) fs.FileMode {
	m := fs.FileMode(n) & fs.ModePerm
	for _, special := range specialBits {
		if n&special.bit != 0 {
			m |= special.mode
		}
	}
	return m
}

// ListMode writes a mode as ls does.
func ListMode(m fs.FileMode) string {
	b := []byte("----------")
	switch {
	case m.IsDir():
		b[0] = 'd'
	case m&fs.ModeSymlink != 0:
		b[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		b[0] = 'c'
	case m&fs.ModeDevice != 0:
		b[0] = 'b'
	}
	for i := range 9 {
		if m&(1<<(8-i)) != 0 {
			b[i+1] = "rwx"[i%3]
		}
	}
	for i, special := range specialBits {
		if at := 3 * (i + 1); m&special.mode != 0 && b[at] == 'x' {
			b[at] = special.executable
		} else if m&special.mode != 0 {
			b[at] = special.plain
		}
	}
	return string(b)
}
