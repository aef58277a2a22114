package vfs

import "io/fs"

// The bits of a Unix mode in addition to the permissions.
const (
	unixSetuid = 0o4000
	unixSetgid = 0o2000
	unixSticky = 0o1000
)

// specialBits has these bits, in the order of the groups of permissions, with the letters that ListMode writes for
// them.
var specialBits = [...]struct {
	mode              fs.FileMode
	bit               uint32
	executable, plain byte
}{{fs.ModeSetuid, unixSetuid, 's', 'S'}, {fs.ModeSetgid, unixSetgid, 's', 'S'}, {fs.ModeSticky, unixSticky, 't', 'T'}}

// UnixMode returns a mode as chmod and stat write it, without the type of the file.
func UnixMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for _, special := range specialBits {
		if m&special.mode != 0 {
			n |= special.bit
		}
	}
	return n
}

// FileMode is the inverse of UnixMode. It ignores other bits.
func FileMode(n uint32) fs.FileMode {
	m := fs.FileMode(n) & fs.ModePerm
	for _, special := range specialBits {
		if n&special.bit != 0 {
			m |= special.mode
		}
	}
	return m
}

// ListMode returns a mode as ls writes it.
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
