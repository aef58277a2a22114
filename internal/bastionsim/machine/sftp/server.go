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

// Config is what a session needs.
type Config struct {
	// View is the file system as the user sees it.
	View *vfs.View
	// Home is where relative paths begin: an absolute path.
	Home string
	// Owner has the names of a user and a group for listings; if it is nil, these have the numbers.
	Owner func(uid, gid uint32) (user, group string)
	// Clock says how old files are.
	Clock clock.PassiveClock
}

// ErrMalformed is why a session ends that a client has sent something which is no packet of the protocol.
var ErrMalformed = errors.New("malformed packet")

// server is a session.
type server struct {
	Config
	in   io.Reader
	to   io.Writer
	body bytes.Buffer // of the packet that is worked on
	out  encoder

	handles map[uint64]*handle
	next    uint64
	entries int // of all directories in handles
}

// Serve answers requests from in on out until in ends between two packets, which is no error, or ctx is done. It notices ctx
// only between packets: who ends it has to end in and out, too.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	s := &server{Config: cfg, in: in, to: out, handles: map[uint64]*handle{}}
	s.body.Grow(firstBuffer)
	defer s.closeAll()
	if err := s.greet(); err != nil {
		return endOf(err)
	}
	for ctx.Err() == nil {
		if err := s.serveOne(); err != nil {
			return endOf(err)
		}
	}
	return ctx.Err()
}

// endOf is nil for the end that sessions have.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// receive reads a packet. The error is io.EOF if there is none any more.
func (s *server) receive() (*decoder, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.in, head[:]); err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading the length of a packet: %w: it ends", ErrMalformed)
	} else if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length == 0 || length > MaxPacket {
		return nil, fmt.Errorf("reading a packet: %w: it has %d bytes and may have 1 to %d", ErrMalformed, length, MaxPacket)
	}
	s.body.Reset()
	if n, err := io.CopyN(&s.body, s.in, int64(length)); err == io.EOF {
		return nil, fmt.Errorf("reading a packet: %w: it ends after %d of %d bytes", ErrMalformed, n, length)
	} else if err != nil {
		return nil, fmt.Errorf("reading a packet: %w", err)
	}
	return &decoder{rest: s.body.Bytes()}, nil
}

// greet agrees on the version and says which extensions there are.
func (s *server) greet() error {
	d, err := s.receive()
	if err != nil {
		return err
	}
	if kind, offered := d.byte(), d.uint32(); d.bad || kind != typeInit || offered < version {
		return fmt.Errorf("beginning a session: %w: the first packet has type %d and version %d, and should be an offer of version %d", ErrMalformed, kind, offered, version)
	}
	s.out.begin(typeVersion, version)
	for _, e := range extensions {
		s.out.text(e.name)
		s.out.text("1")
	}
	return s.send()
}

// serveOne answers one request. Nothing is done unless all of its fields are there.
func (s *server) serveOne() error {
	d, err := s.receive()
	if err != nil {
		return err
	}
	number := d.byte()
	r := &request{id: d.uint32()}
	kind, known := kindOf(number, d)
	for _, field := range kind.fields {
		field(s, d, r)
	}
	switch {
	case d.bad || number == typeInit:
		return fmt.Errorf("reading a request of type %d: %w", number, ErrMalformed)
	case !known:
		err = errUnsupported
	default:
		s.out.data = s.out.data[:0]
		err = kind.do(s, r)
	}
	if err != nil || len(s.out.data) == 0 {
		s.status(r, err)
	}
	return s.send()
}

func (s *server) send() error {
	if _, err := s.to.Write(s.out.finish()); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return nil
}

var errUnsupported = errors.New("this server does not have that")

// status answers how a request ended.
func (s *server) status(r *request, err error) {
	code, message := uint32(codeOK), "Success"
	if err != nil {
		code, message = codeOf(err), err.Error()
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) { // the client knows the path
			message = pathErr.Err.Error()
		}
	}
	s.out.begin(typeStatus, r.id)
	s.out.uint32(code)
	s.out.text(message[:min(len(message), maxMessage)])
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
