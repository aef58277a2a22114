package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var fileCommands = map[string]Command{
	"ls": lsProgram, "mkdir": mkdirProgram, "rmdir": rmdirProgram, "rm": rmProgram, "cp": cpProgram, "mv": mvProgram, "ln": lnProgram,
	"touch": touchProgram, "readlink": readlinkProgram, "realpath": readlinkProgram, "stat": statProgram, "install": installProgram,
	"mktemp": mktempProgram, "chmod": chmodProgram, "chown": chownProgram, "chgrp": chownProgram, "find": findProgram,
	"df": dfProgram, "truncate": truncateProgram, "basename": basenameProgram, "dirname": basenameProgram,
}

// reason is an error without its path.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		text := pe.Err.Error()
		return errors.New(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}

func mkdirProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "pvm:", map[string]byte{"parents": 'p', "mode": 'm', "verbose": 'v'}, false)
	if err != nil || len(f.args) == 0 {
		return p.Failf(1, "%v", cmp.Or(err, errors.New("missing operand")))
	}
	mode := fs.FileMode(0o777 &^ p.sh.umask)
	if f.has('m') {
		if mode, err = parseMode(f.value('m', ""), 0o777); err != nil {
			return p.Fail(err)
		}
	}
	status := 0
	for _, name := range f.args {
		make := p.FS.Mkdir
		if f.has('p') {
			if info, statErr := p.FS.Stat(p.Path(name)); statErr == nil && info.IsDir() {
				continue
			}
			make = p.FS.MkdirAll
		}
		if err := make(p.Path(name), mode); err != nil {
			status = p.Failf(1, "cannot create directory '%s': %v", name, reason(err))
		}
	}
	return status
}

func rmdirProgram(_ context.Context, p *Process) int {
	status := 0
	for _, name := range p.Args[1:] {
		info, err := p.FS.Lstat(p.Path(name))
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "rmdir", Path: name, Err: syscall.ENOTDIR}
		}
		if err == nil {
			err = p.FS.Remove(p.Path(name))
		}
		if err != nil {
			status = p.Failf(1, "failed to remove '%s': %v", name, reason(err))
		}
	}
	return status
}

func rmProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "rRfvid", map[string]byte{"recursive": 'r', "force": 'f', "verbose": 'v', "no-preserve-root": 'd'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	status := 0
	for _, name := range f.args {
		if base := path.Base(name); base == "." || base == ".." || path.Clean(p.Path(name)) == "/" {
			status = p.Failf(1, "it is dangerous to operate recursively on '%s'", name)
			continue
		}
		info, err := p.FS.Lstat(p.Path(name))
		switch {
		case err != nil && f.has('f') && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
		case info.IsDir() && !f.has('r') && !f.has('R'):
			err = &fs.PathError{Op: "unlink", Path: name, Err: syscall.EISDIR}
		case info.IsDir():
			err = p.FS.RemoveAll(p.Path(name))
		default:
			err = p.FS.Remove(p.Path(name))
		}
		if err != nil {
			status = p.Failf(1, "cannot remove '%s': %v", name, reason(err))
		}
		if p.step() != nil {
			return statusKilled
		}
	}
	return status
}

func touchProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "acmd:t:r:", map[string]byte{"no-create": 'c', "date": 'd', "reference": 'r'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	when := p.now()
	if d := f.value('d', ""); d != "" {
		if when, err = parseDate(d, when); err != nil {
			return p.Fail(err)
		}
	}
	if reference := f.value('r', ""); reference != "" {
		info, err := p.FS.Stat(p.Path(reference))
		if err != nil {
			return p.Failf(1, "failed to get attributes of '%s': %v", reference, reason(err))
		}
		when = info.ModTime()
	}
	status := 0
	for _, name := range f.args {
		full := p.Path(name)
		if _, err = p.FS.Stat(full); errors.Is(err, fs.ErrNotExist) {
			if f.has('c') {
				continue
			}
			var file *vfs.File
			if file, err = p.FS.OpenFile(full, vfs.O_WRONLY|vfs.O_CREATE, fs.FileMode(0o666&^p.sh.umask)); err == nil {
				err = file.Close()
			}
		}
		if err == nil {
			err = p.FS.Chtimes(full, when, when)
		}
		if err != nil {
			status = p.Failf(1, "cannot touch '%s': %v", name, reason(err))
		}
	}
	return status
}

func readlinkProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "femnsqz", map[string]byte{"canonicalize": 'f'}, false)
	if err != nil || len(f.args) == 0 {
		return p.Failf(1, "%v", cmp.Or(err, errors.New("missing operand")))
	}
	full := p.name() == "realpath" || f.has('f') || f.has('e') || f.has('m')
	for _, name := range f.args {
		var text string
		if full {
			text, err = realPath(p.FS, p.Path(name))
			if err != nil && !f.has('e') { // the last part may be missing
				if up, upErr := realPath(p.FS, path.Dir(p.Path(name))); upErr == nil {
					text, err = path.Join(up, path.Base(name)), nil
				} else if f.has('m') {
					text, err = path.Clean(p.Path(name)), nil
				}
			}
		} else {
			text, err = p.FS.Readlink(p.Path(name))
		}
		if err != nil {
			if full {
				return p.Fail(describe(name, err))
			}
			return 1
		}
		p.Printf("%s\n", text)
	}
	return 0
}

func mktempProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "dqutp:", map[string]byte{"directory": 'd', "tmpdir": 't'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	dir := f.value('p', cmp.Or(p.Getenv("TMPDIR"), "/tmp"))
	template := "tmp.XXXXXXXXXX"
	if len(f.args) > 0 {
		template = f.args[0]
		if !f.has('p') && !f.has('t') {
			dir = p.Dir
		}
	}
	head := strings.TrimRight(template, "X")
	if len(template)-len(head) < 3 {
		return p.Failf(1, "too few X's in template '%s'", template)
	}
	if strings.HasPrefix(head, "/") {
		dir = ""
	}
	for range 100 {
		name := strings.TrimSuffix(dir+"/"+head, "/") + randomName(len(template)-len(head))
		if dir == "" {
			name = head + randomName(len(template)-len(head))
		}
		if f.has('u') {
			p.Printf("%s\n", name)
			return 0
		}
		if f.has('d') {
			err = p.FS.Mkdir(name, 0o700)
		} else {
			var file *vfs.File
			if file, err = p.FS.OpenFile(name, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_EXCL, 0o600); err == nil {
				err = file.Close()
			}
		}
		if err == nil {
			p.Printf("%s\n", name)
			return 0
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return p.Failf(1, "failed to create file via template '%s': %v", template, reason(err))
}

func truncateProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "s:c", map[string]byte{"size": 's'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	size, err := parseSize(f.value('s', ""))
	if err != nil {
		return p.Fail(err)
	}
	for _, name := range f.args {
		file, err := p.FS.OpenFile(p.Path(name), vfs.O_WRONLY|vfs.O_CREATE, fs.FileMode(0o666&^p.sh.umask))
		if err == nil {
			err = errors.Join(file.Truncate(size), file.Close())
		}
		if err != nil {
			return p.Failf(1, "failed to truncate '%s': %v", name, reason(err))
		}
	}
	return 0
}

// parseSize reads a number with a unit: K, M, G.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTkBib")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid number: '%s'", text)
	}
	if unit := text[len(digits):]; unit != "" {
		shift := map[byte]int{'K': 10, 'k': 10, 'M': 20, 'G': 30, 'T': 40}[unit[0]]
		if n > 1<<20 || n < -(1<<20) {
			return 0, fmt.Errorf("number too large: '%s'", text)
		}
		n <<= shift
	}
	return n, nil
}

func basenameProgram(_ context.Context, p *Process) int {
	args := p.Args[1:]
	if len(args) == 0 {
		return p.Failf(1, "missing operand")
	}
	if p.name() == "dirname" {
		for _, a := range args {
			p.Printf("%s\n", path.Dir(strings.TrimRight(a, "/")+map[bool]string{true: "/x"}[strings.Trim(a, "/") == ""]))
		}
		return 0
	}
	base := path.Base(args[0])
	if len(args) > 1 && base != args[1] {
		base = strings.TrimSuffix(base, args[1])
	}
	p.Printf("%s\n", base)
	return 0
}

// parseDate reads the dates that date -d and touch -d are given.
func parseDate(text string, now time.Time) (time.Time, error) {
	if n, ok := strings.CutPrefix(text, "@"); ok {
		s, err := strconv.ParseInt(n, 10, 64)
		return time.Unix(s, 0), err
	}
	switch text {
	case "now", "":
		return now, nil
	case "yesterday":
		return now.AddDate(0, 0, -1), nil
	case "tomorrow":
		return now.AddDate(0, 0, 1), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	var n int
	var unit string
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, "+"), "%d %s", &n, &unit); err == nil {
		if strings.HasSuffix(text, " ago") {
			n = -n
		}
		d, ok := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[strings.TrimSuffix(unit, "s")]
		if ok {
			return now.Add(time.Duration(n) * d), nil
		}
	}
	return now, fmt.Errorf("invalid date '%s'", text)
}
