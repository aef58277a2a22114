package sftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Limits of a session. Sizes are in bytes. The file system limits the sizes of files and disks.
const (
	MaxPacket   = 256 << 10         // a packet, without the four bytes of the length itself
	MaxTransfer = MaxPacket - 1<<10 // what one request reads or writes; a longer read is shortened to it
	MaxHandles  = 64                // open files and directories
	MaxEntries  = 64 << 10          // unread entries of all open directories together

	entrySize   = 256      // approximately, an unread entry without its name
	maxListing  = 32 << 10 // after this length, an answer gets no more entries of a directory
	firstBuffer = 34 << 10 // the initial capacity of the buffer for packets
)

// umask is removed from the modes of new files and directories.
const umask = 0o022

// Config configures a session. All fields are required.
type Config struct {
	View  *vfs.View                                  // with the permissions of the user
	Home  string                                     // the absolute path where relative paths begin
	Owner func(uid, gid uint32) (user, group string) // the names for listings
	Clock clock.PassiveClock                         // for the age of files in listings
	// Hold takes bytes of the machine's memory or, if negative, gives them back. It reports whether there are enough.
	Hold func(bytes int64) bool
}

// ErrMalformed ends a session whose client sends something that is no packet of the protocol.
var ErrMalformed = errors.New("malformed packet")

var errUnsupported = errors.New("operation not supported")

type server struct {
	Config
	request // the current one

	in   io.Reader
	body bytes.Buffer // of the current packet
	to   io.Writer
	out  encoder // of the current answer

	handles  map[string]*handle
	last     uint64 // handle
	unlisted int    // entries of all open directories
}

// Serve answers requests from in on out until in ends between two packets, which is no error, or ctx is done. It checks
// ctx only between packets: to end it earlier, close in and out.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	s := &server{Config: cfg, in: in, to: out, handles: map[string]*handle{}}
	s.body.Grow(firstBuffer)
	defer s.closeAll()
	err := s.greet()
	for err == nil {
		if err = ctx.Err(); err == nil {
			err = s.serveOne()
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// receive reads a packet. It returns io.EOF if there are no more packets.
func (s *server) receive() (*decoder, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.in, head[:]); err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading the length of a packet: %w: it is incomplete", ErrMalformed)
	} else if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length == 0 || length > MaxPacket {
		return nil, fmt.Errorf("reading a packet: %w: length %d is not from 1 to %d", ErrMalformed, length, MaxPacket)
	}
	s.body.Reset()
	if n, err := io.CopyN(&s.body, s.in, int64(length)); err == io.EOF {
		return nil, fmt.Errorf("reading a packet: %w: it ends after %d of %d bytes", ErrMalformed, n, length)
	} else if err != nil {
		return nil, fmt.Errorf("reading a packet: %w", err)
	}
	return &decoder{rest: s.body.Bytes()}, nil
}

// greet negotiates the version and announces the extensions.
func (s *server) greet() error {
	d, err := s.receive()
	if err != nil {
		return err
	}
	if number, offered := d.byte(), d.uint32(); d.bad || number != typeInit || offered < version {
		return fmt.Errorf("starting a session: %w: type %d with version %d instead of an offer of version %d",
			ErrMalformed, number, offered, version)
	}
	s.out.begin(typeVersion, version)
	for _, e := range extensions {
		s.out.text(e.name)
		s.out.text("1")
	}
	return s.send()
}

// serveOne answers one request. It executes the request only if all fields are complete.
func (s *server) serveOne() error {
	d, err := s.receive()
	if err != nil {
		return err
	}
	number := d.byte()
	s.request = request{id: d.uint32()}
	kind, known := kindOf(number, d)
	for _, read := range kind.fields {
		read(s, d)
	}
	s.out.data = s.out.data[:0]
	switch {
	case d.bad || number == typeInit:
		return fmt.Errorf("reading a request of type %d: %w", number, ErrMalformed)
	case !known:
		err = errUnsupported
	case s.err != nil:
		err = s.err
	default:
		err = kind.do(s)
	}
	if err != nil || len(s.out.data) == 0 {
		s.status(err)
	}
	return s.send()
}

func (s *server) send() error {
	if _, err := s.to.Write(s.out.finish()); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return nil
}

func (s *server) status(err error) {
	code, message := uint32(codeOK), "Success"
	if err != nil {
		code, message = codeOf(err), err.Error()
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) { // the client knows the path
			message = pathErr.Err.Error()
		}
	}
	s.out.begin(typeStatus, s.id)
	s.out.uint32(code)
	s.out.text(message)
	s.out.text("en")
}

func codeOf(err error) uint32 {
	switch {
	case errors.Is(err, io.EOF):
		return codeEOF
	case errors.Is(err, errUnsupported):
		return codeUnsupported
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return codeNoSuchFile
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return codePermissionDenied
	default:
		return codeFailure
	}
}
