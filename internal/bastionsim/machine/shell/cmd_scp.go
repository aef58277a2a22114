package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const scpLine = vfs.MaxPath + 64

// Answers of scp's protocol. A line with the error follows the last two.
const (
	scpOK    = "\x00"
	scpError = "\x01"
	scpFatal = "\x02"
)

// scp is one end of a transfer with scp's original protocol, which "scp -O" still uses.
type scp struct {
	p   *Process
	in  *bufio.Reader
	out io.Writer
	// recursive copies directories, keep the mode and the times of files.
	recursive, keep bool
	status          int
}

var errLost = errors.New("lost connection")

// scpProgram is scp as the scp of another machine calls it: -t receives files, -f sends them.
func scpProgram(p *Process, f flags) int {
	s := &scp{p: p, in: bufio.NewReaderSize(p.Stdin, scpLine), out: p.Stdout, recursive: f.has('r'), keep: f.has('p')}
	switch {
	case f.has('t') == f.has('f'):
		return p.Failf(255, noNetwork)
	case f.has('f'):
		return max(p.done(s.send(f.args)), s.status)
	case len(f.args) != 1:
		return p.Failf(1, "ambiguous target")
	}
	return max(p.done(s.receive(f.args[0], f.has('d'))), s.status)
}

func (s *scp) write(format string, args ...any) error {
	_, err := fmt.Fprintf(s.out, format, args...)
	return err
}

// complain reports an error of a file to the other end. The transfer continues.
func (s *scp) complain(name string, err error) error {
	s.status = 1
	text := strings.ReplaceAll(fmt.Sprintf("scp: %s: %v", name, reason(err)), "\n", "?")
	return s.write(scpError+"%.*s\n", vfs.MaxPath, text)
}

// fatal reports an error that ends the transfer to the other end.
func (s *scp) fatal(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	_ = s.write(scpFatal+"scp: %v\n", err) // it ends anyway
	return err
}

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

// answer reads the answer of the other end. It returns false for an error of the file, which the other end reports
// itself.
func (s *scp) answer() (bool, error) {
	answer, err := s.in.ReadByte()
	if err == nil && string(answer) == scpOK {
		return true, nil
	}
	s.status = 1
	if _, lineErr := s.line(); lineErr != nil || string(answer) != scpError {
		return false, errLost
	}
	return false, nil
}

func (s *scp) ask(format string, args ...any) (bool, error) {
	if err := s.write(format, args...); err != nil {
		return false, err
	}
	return s.answer()
}

func (s *scp) send(names []string) error {
	if _, err := s.answer(); err != nil { // the other end is ready
		return err
	}
	for _, name := range names {
		if err := s.sendOne(name); err != nil {
			return err
		}
	}
	return nil
}

// sendOne sends a file or a directory. Errors of files are reported to the other end.
func (s *scp) sendOne(name string) error {
	if err := s.p.step(1); err != nil {
		return err
	}
	info, err := s.p.fs.Stat(s.p.abs(name))
	switch {
	case err != nil:
	case strings.Contains(path.Base(name), "\n"):
		err = errors.New("the name has a line break")
	case info.IsDir() && s.recursive:
		return s.sendDir(name, info)
	case info.Mode().IsRegular():
		return s.sendFile(name, info)
	default:
		err = errors.New("not a regular file")
	}
	return s.complain(name, err)
}

// announce sends the times, if they are to be kept, and the header of a file or directory. It returns false if the
// other end refuses.
func (s *scp) announce(kind byte, name string, size int64, info fs.FileInfo) (bool, error) {
	if s.keep {
		atime := info.Sys().(*vfs.Stat).Atime
		if ok, err := s.ask("T%d 0 %d 0\n", max(0, info.ModTime().Unix()), max(0, atime.Unix())); !ok {
			return false, err
		}
	}
	return s.ask("%c%04o %d %s\n", kind, vfs.UnixMode(info.Mode()), size, path.Base(name))
}

func (s *scp) sendFile(name string, info fs.FileInfo) error {
	file, err := s.p.fs.Open(s.p.abs(name))
	if err != nil {
		return s.complain(name, err)
	}
	defer file.Close()
	if ok, err := s.announce('C', name, info.Size(), info); !ok {
		return err
	}
	out := s.out
	if stream, ok := out.(*stream); ok {
		out = uncounted{stream} // the content of files is no output of the session
	}
	if _, err := io.CopyN(out, file, info.Size()); err != nil { // also if the file has become shorter
		return err
	}
	_, err = s.ask(scpOK)
	return err
}

func (s *scp) sendDir(name string, info fs.FileInfo) error {
	entries, err := s.p.readDir(name)
	if err != nil {
		return s.complain(name, err)
	}
	if ok, err := s.announce('D', name, 0, info); !ok {
		return err
	}
	for _, entry := range entries {
		if err := s.sendOne(name + "/" + entry.Name()); err != nil {
			return err
		}
	}
	_, err = s.ask("E\n")
	return err
}

func (s *scp) receive(target string, needsDir bool) error {
	info, err := s.p.fs.Stat(s.p.abs(target))
	isDir := err == nil && info.IsDir()
	if needsDir && !isDir {
		return s.fatal("%s: not a directory", target)
	}
	if err := s.write(scpOK); err != nil {
		return err
	}
	return s.receiveInto(target, isDir, 0)
}

// Lines of the protocol: "C0644 12 name" or "D0755 0 name", and the times of change and access, whose microseconds are
// ignored.
var (
	scpFile  = regexp.MustCompile(`^[CD]([0-7]{4}) (\d{1,18}) (.*)$`)
	scpTimes = regexp.MustCompile(`^T(\d{1,11}) \d{1,6} (\d{1,11}) \d{1,6}$`)
)

// announced is a file or a directory that the other end sends next.
type announced struct {
	name         string
	mode         fs.FileMode
	size         int64
	atime, mtime time.Time // zero if they are not to be kept
}

const maxScpDepth = 200

// receiveInto receives until the end of a directory. If target is no directory, it is the name of what is received.
func (s *scp) receiveInto(target string, isDir bool, depth int) error {
	if depth > maxScpDepth {
		return s.fatal("%s: directories are more than %d deep", target, maxScpDepth)
	}
	next := announced{}
	for {
		if err := s.p.step(1); err != nil {
			return err
		}
		if _, err := s.in.Peek(1); err == io.EOF && depth == 0 {
			return nil
		}
		line, err := s.line()
		if err != nil {
			return err
		}
		times, file := scpTimes.FindStringSubmatch(line), scpFile.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, scpError): // the other end reports the error
			s.status = 1
			continue
		case strings.HasPrefix(line, scpFatal):
			return errLost
		case line == "E" && depth > 0: // receiveDir answers
			return nil
		case times != nil:
			next.mtime, next.atime = scpTime(times[1]), scpTime(times[2])
			err = s.write(scpOK)
		case file == nil, line[0] == 'D' && !s.recursive:
			return s.fatal("%s: protocol error", target)
		case file[3] == "", file[3] == ".", file[3] == "..", strings.Contains(file[3], "/"):
			return s.fatal("%s: protocol error: unexpected name %q", target, file[3])
		default:
			mode, _ := strconv.ParseUint(file[1], 8, 32) // scpFile lets only numbers through
			next.mode = vfs.FileMode(uint32(mode))
			next.size, _ = strconv.ParseInt(file[2], 10, 64)
			if next.name = target; isDir {
				next.name = strings.TrimSuffix(target, "/") + "/" + file[3]
			}
			if line[0] == 'D' {
				err = s.receiveDir(next, depth)
			} else {
				err = s.receiveFile(next)
			}
			next = announced{}
		}
		if err != nil {
			return err
		}
	}
}

func scpTime(text string) time.Time {
	seconds, _ := strconv.ParseInt(text, 10, 64) // scpTimes lets only numbers through
	return time.Unix(seconds, 0)
}

// finish sets the mode and times of a received file or directory, and answers.
func (s *scp) finish(a announced) error {
	var err error
	if s.keep {
		err = s.p.fs.Chmod(s.p.abs(a.name), a.mode)
	}
	if !a.mtime.IsZero() {
		err = errors.Join(err, s.p.fs.Chtimes(s.p.abs(a.name), a.atime, a.mtime))
	}
	if err != nil {
		return s.complain(a.name, err)
	}
	return s.write(scpOK)
}

// receiveFile receives a file. It reads all announced bytes even if they cannot be written.
func (s *scp) receiveFile(a announced) error {
	const flags = vfs.O_WRONLY | vfs.O_CREATE | vfs.O_TRUNC
	file, err := s.p.fs.OpenFile(s.p.abs(a.name), flags, a.mode&^fs.FileMode(s.p.umask))
	if err != nil {
		return s.complain(a.name, err)
	}
	defer file.Close()
	if err := s.write(scpOK); err != nil {
		return err
	}
	content := &io.LimitedReader{R: s.in, N: a.size}
	_, failed := io.Copy(file, content)
	if _, err := io.Copy(io.Discard, content); err != nil || content.N > 0 {
		return errLost
	}
	if _, err := s.answer(); err != nil {
		return err
	}
	if failed != nil {
		return s.complain(a.name, failed)
	}
	return s.finish(a)
}

func (s *scp) receiveDir(a announced, depth int) error {
	dir := s.p.abs(a.name)
	mode := a.mode &^ fs.FileMode(s.p.umask)
	err := s.p.fs.Mkdir(dir, mode|0o700) // files have to be written into it first
	made := err == nil
	if info, statErr := s.p.fs.Stat(dir); statErr == nil && info.IsDir() {
		err = nil
	}
	if err == nil {
		err = s.write(scpOK)
	}
	if err != nil {
		return s.complain(a.name, err)
	}
	if err := s.receiveInto(a.name, true, depth+1); err != nil {
		return err
	}
	if made && !s.keep {
		if err := s.p.fs.Chmod(dir, mode); err != nil {
			return s.complain(a.name, err)
		}
	}
	return s.finish(a)
}
