package shell

import "unicode/utf8"

// maxSequence is how long a sequence of a key may be: more than any has.
const maxSequence = 32

// keys stands before the line editor of golang.org/x/term. That waits for the end of whatever looks like the beginning of a
// key, as long as it takes, and takes all that comes for a part of it: an invalid character, or Escape and then Enter, would
// hold up the terminal for good, and 256 such bytes would make it a loop. So it gets whole characters and ended sequences.
type keys struct {
	sequence  int    // how long the sequence is that has begun, 0 if none has
	character []byte // that has begun
}

// next is what the line editor is given for a byte that was typed.
func (k *keys) next(b byte) (given []byte) {
	const escape, end = 27, '~'
	if b >= utf8.RuneSelf {
		if k.character = append(k.character, b); !utf8.FullRune(k.character) {
			return nil
		}
		character := k.character
		k.character = nil
		if r, _ := utf8.DecodeRune(character); r == utf8.RuneError { // the one that is none, too
			return nil
		}
		if k.sequence > 0 {
			given, k.sequence = append(given, end), 0
		}
		return append(given, character...)
	}
	k.character = nil
	switch {
	case k.sequence == 0:
	case b < ' ' || b == 127 || k.sequence >= maxSequence:
		given, k.sequence = append(given, end), 0
	case b == end || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z':
		k.sequence = 0
		return []byte{b}
	default:
		k.sequence++
		return []byte{b}
	}
	switch b {
	case 3: // Ctrl-C: what is pasted ends, to the end of the line, delete it, begin a new one
		return append(given, escape, '[', '2', '0', '1', end, 5, 21, '\r')
	case escape:
		k.sequence = 1
	}
	return append(given, b)
}
