package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// coming is what the other end announces: a file, or a directory.
type coming struct {
	mode         fs.FileMode
	size         int64
	name         string
	atime, mtime time.Time // zero if they are not to be kept
}

// take takes files from the other end.
func (s *scp) take(name string) error {
	target := s.p.Path(name)
	info, err := s.p.FS.Stat(target)
	isDir := err == nil && info.IsDir()
	if s.dir && !isDir {
		if err == nil {
			err = errors.New("not a directory")
		}
		return s.fatal("%s: %v", name, reason(err))
	}
	if err := s.say(scpOK); err != nil {
		return err
	}
	return s.takeInto(target, name, isDir, 0)
}

// takeInto takes what comes until the other end has no more for a directory. A target that is not one is the name of the
// file or directory that comes.
func (s *scp) takeInto(target, shown string, isDir bool, depth int) error {
	if depth > scpDepth {
		return s.fatal("%s: directories are more than %d deep", shown, scpDepth)
	}
	times := coming{}
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
		switch {
		case strings.HasPrefix(line, "\x01"): // the other end has told its user
			s.status = 1
			continue
		case line == "E" && depth > 0: // takeDir answers
			return nil
		case strings.HasPrefix(line, "T"):
			if err = times.parseTimes(line); err == nil {
				err = s.say(scpOK)
			}
		case strings.HasPrefix(line, "C"), strings.HasPrefix(line, "D") && s.recursive:
			err = s.takeOne(target, shown, isDir, line, times, depth)
			times = coming{}
		case strings.HasPrefix(line, "\x02"):
			return errLost
		default:
			err = errProtocol
		}
		if errors.Is(err, errProtocol) {
			return s.fatal("%s: %v", shown, err)
		}
		if err != nil {
			return err
		}
	}
}

var errProtocol = errors.New("protocol error")

// takeOne takes the file or directory that a line announces.
func (s *scp) takeOne(target, shown string, isDir bool, line string, times coming, depth int) error {
	c := times
	if err := c.parse(line); err != nil {
		return err
	}
	if isDir {
		target, shown = strings.TrimSuffix(target, "/")+"/"+c.name, strings.TrimSuffix(shown, "/")+"/"+c.name
	}
	if line[0] == 'D' {
		return s.takeDir(target, shown, c, depth)
	}
	return s.takeFile(target, shown, c)
}

// parse reads "C0644 12 name" or "D0755 0 name". The name is never a way to somewhere else.
func (c *coming) parse(line string) error {
	fields := strings.SplitN(line[1:], " ", 3)
	if len(fields) != 3 || len(fields[0]) != 4 {
		return errProtocol
	}
	mode, err := strconv.ParseUint(fields[0], 8, 12)
	if err != nil {
		return errProtocol
	}
	if c.size, err = strconv.ParseInt(fields[1], 10, 64); err != nil || c.size < 0 {
		return errProtocol
	}
	c.mode, c.name = vfs.FileMode(uint32(mode)), fields[2]
	if c.name == "" || c.name == "." || c.name == ".." || strings.Contains(c.name, "/") {
		return fmt.Errorf("%w: unexpected name %q", errProtocol, c.name)
	}
	return nil
}

// parseTimes reads "T1700000000 0 1700000000 0": the changed and the read time in seconds and microseconds.
func (c *coming) parseTimes(line string) error {
	var numbers [4]int64
	fields := strings.Fields(line[1:])
	if len(fields) != len(numbers) {
		return errProtocol
	}
	for i, field := range fields {
		var err error
		if numbers[i], err = strconv.ParseInt(field, 10, 64); err != nil || numbers[i] < 0 || i%2 == 1 && numbers[i] >= 1e6 {
			return errProtocol
		}
	}
	c.mtime, c.atime = time.Unix(numbers[0], numbers[1]*1000), time.Unix(numbers[2], numbers[3]*1000)
	return nil
}

// keepOf gives a file that has come the times and, if asked to, the mode of the other end's.
func (s *scp) keepOf(c coming, chmod func(fs.FileMode) error, chtimes func(atime, mtime time.Time) error) error {
	var err error
	if s.keep {
		err = chmod(c.mode)
	}
	if !c.mtime.IsZero() {
		err = errors.Join(err, chtimes(c.atime, c.mtime))
	}
	return err
}

// takeFile takes a file. All that was announced is read, also if it cannot be written, and the other end is told then.
func (s *scp) takeFile(target, shown string, c coming) error {
	file, err := s.p.FS.OpenFile(target, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC, c.mode&^fs.FileMode(s.p.sh.umask))
	if err != nil {
		return s.complain(shown, err)
	}
	defer file.Close()
	if err := s.say(scpOK); err != nil {
		return err
	}
	writing := &untilError{w: file}
	if n, err := io.Copy(writing, io.LimitReader(s.in, c.size)); err != nil {
		return err
	} else if n < c.size {
		return errLost
	}
	if _, err := s.answer(); err != nil {
		return err
	}
	failed := writing.err
	if failed == nil {
		failed = s.keepOf(c, file.Chmod, file.Chtimes)
	}
	if failed != nil {
		return s.complain(shown, failed)
	}
	return s.say(scpOK)
}

// untilError writes until that fails; the rest is dropped.
type untilError struct {
	w   io.Writer
	err error
}

func (u *untilError) Write(p []byte) (int, error) {
	if u.err == nil {
		_, u.err = u.w.Write(p)
	}
	return len(p), nil
}

func (s *scp) takeDir(target, shown string, c coming, depth int) error {
	info, err := s.p.FS.Stat(target)
	made := errors.Is(err, fs.ErrNotExist)
	switch {
	case made:
		err = s.p.FS.Mkdir(target, c.mode&^fs.FileMode(s.p.sh.umask)|0o700)
	case err == nil && !info.IsDir():
		err = errors.New("not a directory")
	}
	if err != nil {
		return s.complain(shown, err)
	}
	if err := s.say(scpOK); err != nil {
		return err
	}
	if err := s.takeInto(target, shown, true, depth+1); err != nil {
		return err
	}
	// Only now: files had to be written into it.
	if made && !s.keep {
		err = s.p.FS.Chmod(target, c.mode&^fs.FileMode(s.p.sh.umask))
	}
	err = errors.Join(err, s.keepOf(c,
		func(mode fs.FileMode) error { return s.p.FS.Chmod(target, mode) },
		func(atime, mtime time.Time) error { return s.p.FS.Chtimes(target, atime, mtime) }))
	if err != nil {
		return s.complain(shown, err)
	}
	return s.say(scpOK)
}
