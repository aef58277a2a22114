package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// give gives files to the other end.
func (s *scp) give(names []string) error {
	if _, err := s.answer(); err != nil { // that it is there
		return err
	}
	for _, name := range names {
		if err := s.giveOne(s.p.Path(name), name, 0); err != nil {
			return err
		}
	}
	return nil
}

// giveOne gives a file or a directory. Errors of files are told to the other end.
func (s *scp) giveOne(full, name string, depth int) error {
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
		return s.giveDir(full, name, info, depth)
	default:
		return s.giveFile(full, name)
	}
	return s.complain(name, err)
}

// announce tells the times, if they are to be kept, and what comes next. It is false if the other end does not want it.
func (s *scp) announce(kind byte, info fs.FileInfo, size int64, full string) (bool, error) {
	if s.keep {
		atime := info.Sys().(*vfs.Stat).Atime
		if _, err := fmt.Fprintf(s.out, "T%d 0 %d 0\n", max(0, info.ModTime().Unix()), max(0, atime.Unix())); err != nil {
			return false, err
		}
		if ok, err := s.answer(); !ok {
			return false, err
		}
	}
	if _, err := fmt.Fprintf(s.out, "%c%04o %d %s\n", kind, vfs.UnixMode(info.Mode()), size, path.Base(full)); err != nil {
		return false, err
	}
	return s.answer()
}

func (s *scp) giveFile(full, name string) error {
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
	failed := s.content(file, info.Size())
	if failed != nil && !errors.Is(failed, io.ErrUnexpectedEOF) {
		return failed
	}
	if failed != nil {
		err = s.complain(name, errors.New("the file has become shorter"))
	} else {
		err = s.say(scpOK)
	}
	if err != nil {
		return err
	}
	_, err = s.answer()
	return err
}

// content writes what a file has, as much of it as was announced: zeros if it has become shorter.
func (s *scp) content(file io.Reader, size int64) error {
	out := s.out
	if stream, ok := out.(*stream); ok {
		out = bulk{stream}
	}
	buffer, short := make([]byte, 32<<10), false
	for size > 0 {
		part := buffer[:min(size, int64(len(buffer)))]
		if _, err := io.ReadFull(file, part); err != nil {
			clear(part)
			short = true
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
		size -= int64(len(part))
	}
	if short {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (s *scp) giveDir(full, name string, info fs.FileInfo, depth int) error {
	entries, err := s.p.FS.ReadDir(full)
	if err != nil {
		return s.complain(name, err)
	}
	if ok, err := s.announce('D', info, 0, full); !ok {
		return err
	}
	for _, entry := range entries {
		if err := s.giveOne(full+"/"+entry.Name(), name+"/"+entry.Name(), depth+1); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(s.out, "E\n"); err != nil {
		return err
	}
	_, err = s.answer()
	return err
}
