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
	// recursive copies directories, keep the mode and the times of files, dir needs the destination to be a directory.
	recursive, keep, dir bool
	status               int
}

var (
	errLost     = errors.New("lost connection")
	errProtocol = errors.New("protocol error")
)

// scpProgram is scp as that of another machine calls it: -t receives files, -f sends them.
func scpProgram(p *Process, f flags) int {
	s := &scp{p: p, in: bufio.NewReaderSize(p.Stdin, scpLine), out: p.Stdout}
	s.recursive, s.keep, s.dir = f.has('r'), f.has('p'), f.has('d')
	switch {
	case f.has('t') == f.has('f'):
		return p.Failf(255, noNetwork)
	case f.has('t') && len(f.args) != 1 || len(f.args) == 0:
		return p.Failf(1, "ambiguous target")
	}
	run := s.send
	if f.has('t') {
		run = s.receive
	}
	return max(p.done(run(f.args)), s.status)
}

func (s *scp) say(answer byte) error {
	_, err := s.out.Write([]byte{answer})
	return err
}

// complain reports an error of a file to the other end; the copying goes on.
func (s *scp) complain(name string, err error) error {
	s.status = 1
	text := strings.ReplaceAll(fmt.Sprintf("scp: %s: %v", name, reason(err)), "\n", "?")
	_, err = fmt.Fprintf(s.out, "%c%.*s\n", scpError, vfs.MaxPath, text)
	return err
}

// fatal reports an error to the other end that ends the copying.
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

// answer reads whether the other end accepts what it was sent. It is false for an error of the file, which the other
// end reports itself.
func (s *scp) answer() (bool, error) {
	answer, err := s.in.ReadByte()
	if err != nil {
		return false, errLost
	}
	if answer == scpOK {
		return true, nil
	}
	s.status = 1
	if _, err := s.line(); err != nil {
		return false, err
	}
	if answer != scpError {
		return false, errLost
	}
	return false, nil
}

// ask sends a line and reads the answer.
func (s *scp) ask(format string, args ...any) (bool, error) {
	if _, err := fmt.Fprintf(s.out, format, args...); err != nil {
		return false, err
	}
	return s.answer()
}

func (s *scp) send(names []string) error {
	if _, err := s.answer(); err != nil { // the other end is ready
		return err
	}
	for _, name := range names {
		if err := s.sendOne(s.p.Path(name), name, 0); err != nil {
			return err
		}
	}
	return nil
}

// sendOne sends a file or a directory. Errors of files are reported to the other end.
func (s *scp) sendOne(full, name string, depth int) error {
	if err := s.p.step(); err != nil {
		return err
	}
	info, err := s.p.FS.Stat(full)
	switch {
	case err != nil:
	case strings.Contains(path.Base(full), "\n"):
		err = errors.New("the name has a line break")
	case info.IsDir() && !s.recursive, !info.IsDir() && !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case depth > scpDepth:
		err = fmt.Errorf("directories are more than %d deep", scpDepth)
	case info.IsDir():
		return s.sendDir(full, name, info, depth)
	default:
		return s.sendFile(full, name)
	}
	return s.complain(name, err)
}

// announce sends the times, if they are to be kept, and what comes next. It is false if the other end does not want it.
func (s *scp) announce(kind byte, info fs.FileInfo, size int64, full string) (bool, error) {
	if s.keep {
		atime := info.Sys().(*vfs.Stat).Atime
		if ok, err := s.ask("T%d 0 %d 0\n", max(0, info.ModTime().Unix()), max(0, atime.Unix())); !ok {
			return false, err
		}
	}
	return s.ask("%c%04o %d %s\n", kind, vfs.UnixMode(info.Mode()), size, path.Base(full))
}

func (s *scp) sendFile(full, name string) error {
	file, err := s.p.FS.Open(full)
	if err != nil {
		return s.complain(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s.complain(name, err)
	}
	if ok, err := s.announce('C', info, info.Size(), full); !ok {
		return err
	}
	out := s.out
	if stream, ok := out.(*stream); ok {
		out = bulk{stream} // the content of files is no output of the session
	}
	if _, err := io.CopyN(out, file, info.Size()); err != nil { // also if the file has become shorter
		return err
	}
	_, err = s.ask("%c", scpOK)
	return err
}

func (s *scp) sendDir(full, name string, info fs.FileInfo, depth int) error {
	entries, err := s.p.FS.ReadDir(full)
	if err != nil {
		return s.complain(name, err)
	}
	if ok, err := s.announce('D', info, 0, full); !ok {
		return err
	}
	for _, entry := range entries {
		if err := s.sendOne(full+"/"+entry.Name(), name+"/"+entry.Name(), depth+1); err != nil {
			return err
		}
	}
	_, err = s.ask("E\n")
	return err
}

// announced is a file or directory that the other end sends.
type announced struct {
	mode         fs.FileMode
	size         int64
	atime, mtime time.Time // zero if they are not to be kept
	target       string
	shown        string
}

func (s *scp) receive(names []string) error {
	target := s.p.Path(names[0])
	info, err := s.p.FS.Stat(target)
	isDir := err == nil && info.IsDir()
	if s.dir && !isDir {
		if err == nil {
			err = errors.New("not a directory")
		}
		return s.fatal("%s: %v", names[0], reason(err))
	}
	if err := s.say(scpOK); err != nil {
		return err
	}
	return s.receiveInto(target, names[0], isDir, 0)
}

// Lines of the protocol: "C0644 12 name" or "D0755 0 name", and the times of change and reading with microseconds.
var (
	scpFile  = regexp.MustCompile(`^[CD]([0-7]{4}) (\d{1,18}) (.*)$`)
	scpTimes = regexp.MustCompile(`^T(\d{1,11}) (\d{1,6}) (\d{1,11}) (\d{1,6})$`)
)

// receiveInto receives until the end of a directory. A target that is no directory is the name of what is received.
func (s *scp) receiveInto(target, shown string, isDir bool, depth int) error {
	if depth > scpDepth {
		return s.fatal("%s: directories are more than %d deep", shown, scpDepth)
	}
	next := announced{}
	for {
		if err := s.p.step(); err != nil {
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
		case strings.HasPrefix(line, "\x01"): // the other end reports the error
			s.status = 1
			continue
		case strings.HasPrefix(line, "\x02"):
			return errLost
		case line == "E" && depth > 0: // receiveDir answers
			return nil
		case times != nil:
			next.mtime, next.atime = scpTime(times[1:3]), scpTime(times[3:5])
			err = s.say(scpOK)
		case file == nil, line[0] == 'D' && !s.recursive:
			return s.fatal("%s: %w", shown, errProtocol)
		case file[3] == "", file[3] == ".", file[3] == "..", strings.Contains(file[3], "/"):
			return s.fatal("%s: %w: unexpected name %q", shown, errProtocol, file[3])
		default:
			mode, _ := strconv.ParseUint(file[1], 8, 32) // scpFile lets only numbers through
			next.mode = vfs.FileMode(uint32(mode))
			next.size, _ = strconv.ParseInt(file[2], 10, 64)
			if next.target, next.shown = target, shown; isDir {
				next.target = strings.TrimSuffix(target, "/") + "/" + file[3]
				next.shown = strings.TrimSuffix(shown, "/") + "/" + file[3]
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

func scpTime(numbers []string) time.Time {
	seconds, _ := strconv.ParseInt(numbers[0], 10, 64) // scpTimes lets only numbers through
	micros, _ := strconv.ParseInt(numbers[1], 10, 64)
	return time.Unix(seconds, micros*1000)
}

// finish gives a file that was received its mode and times, and answers.
func (s *scp) finish(a announced) error {
	var err error
	if s.keep {
		err = s.p.FS.Chmod(a.target, a.mode)
	}
	if !a.mtime.IsZero() {
		err = errors.Join(err, s.p.FS.Chtimes(a.target, a.atime, a.mtime))
	}
	if err != nil {
		return s.complain(a.shown, err)
	}
	return s.say(scpOK)
}

// receiveFile receives a file. All that was announced is read, also if it cannot be written.
func (s *scp) receiveFile(a announced) error {
	file, err := s.p.FS.OpenFile(a.target, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC, a.mode&^fs.FileMode(s.p.sh.umask))
	if err != nil {
		return s.complain(a.shown, err)
	}
	defer file.Close()
	if err := s.say(scpOK); err != nil {
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
		return s.complain(a.shown, failed)
	}
	return s.finish(a)
}

func (s *scp) receiveDir(a announced, depth int) error {
	info, err := s.p.FS.Stat(a.target)
	made := errors.Is(err, fs.ErrNotExist)
	mode := a.mode &^ fs.FileMode(s.p.sh.umask)
	switch {
	case made:
		err = s.p.FS.Mkdir(a.target, mode|0o700) // files have to be written into it first
	case err == nil && !info.IsDir():
		err = errors.New("not a directory")
	}
	if err != nil {
		return s.complain(a.shown, err)
	}
	if err := s.say(scpOK); err != nil {
		return err
	}
	if err := s.receiveInto(a.target, a.shown, true, depth+1); err != nil {
		return err
	}
	if made && !s.keep {
		if err := s.p.FS.Chmod(a.target, mode); err != nil {
			return s.complain(a.shown, err)
		}
	}
	return s.finish(a)
}
