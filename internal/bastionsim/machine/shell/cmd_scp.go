package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Limits of copying by scp.
const (
	// scpLine is how long a line of the protocol may be.
	scpLine = vfs.MaxPath + 64
	// scpDepth is how deeply directories may be in each other.
	scpDepth = 200
)

// Answers of scp's protocol. After the last two there is a line that says what is wrong.
const (
	scpOK    = 0
	scpError = 1
	scpFatal = 2
)

// scp is one end of copying by the protocol that scp had before it used SFTP, and has with -O.
type scp struct {
	p   *Process
	in  *bufio.Reader
	out io.Writer
	// recursive takes or gives directories, keep the mode and the times of files, dir wants the destination to be one.
	recursive, keep, dir bool
	status               int
}

// errLost is that the other end has gone or does not keep to the protocol. There is nobody to tell.
var errLost = errors.New("lost connection")

// scpProgram is scp as the scp of another machine calls it: -t takes files, -f gives them. There is no network to do more.
func scpProgram(ctx context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "tfrpdvqBC1234O", nil, true)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	if f.has('t') == f.has('f') {
		return noNetwork(255, "connect to host: Network is unreachable")(ctx, p)
	}
	s := &scp{p: p, in: bufio.NewReaderSize(p.Stdin, scpLine), out: p.Stdout, recursive: f.has('r'), keep: f.has('p'), dir: f.has('d')}
	if f.has('t') && len(f.args) != 1 || len(f.args) == 0 {
		return p.Failf(1, "ambiguous target")
	}
	if f.has('t') {
		err = s.take(f.args[0])
	} else {
		err = s.give(f.args)
	}
	if err != nil {
		return p.Fail(err)
	}
	return s.status
}

func (s *scp) say(answer byte) error {
	_, err := s.out.Write([]byte{answer})
	return err
}

// complain tells the other end what is wrong with a file; the copying goes on.
func (s *scp) complain(name string, err error) error {
	s.status = 1
	text := strings.ReplaceAll(fmt.Sprintf("scp: %s: %v", name, reason(err)), "\n", "?")
	_, err = fmt.Fprintf(s.out, "%c%.*s\n", scpError, vfs.MaxPath, text)
	return err
}

// fatal tells the other end that the copying ends.
func (s *scp) fatal(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	_, _ = fmt.Fprintf(s.out, "%cscp: %v\n", scpFatal, err) // it ends anyway
	return err
}

// line reads to the end of a line.
func (s *scp) line() (string, error) {
	line, err := s.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", s.fatal("a line has more than %d bytes", scpLine)
	case err != nil:
		return "", errLost
	}
	return string(line[:len(line)-1]), nil
}

// answer reads whether the other end is content. An error of the file, which the other end tells its user, is false.
func (s *scp) answer() (bool, error) {
	answer, err := s.in.ReadByte()
	if err != nil {
		return false, errLost
	}
	if answer == scpOK {
		return true, nil
	}
	if _, err := s.line(); err != nil {
		return false, err
	}
	s.status = 1
	if answer != scpError {
		return false, errLost
	}
	return false, nil
}
