package sftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const create = openWrite | openCreate | openTrunc

func TestFiles(t *testing.T) {
	c := connect(t, vfs.Limits{})
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	h := c.open("./file", create|openRead, attributes{flags: hasPermissions, permissions: 0o666 | 0o4000})
	for at := 0; at < len(content); at += MaxTransfer {
		c.do(typeWrite, h, uint64(at), content[at:min(at+MaxTransfer, len(content))])
	}
	if got := c.readAll(h); !bytes.Equal(got, content) {
		t.Errorf("%d bytes come back of %d", len(got), len(content))
	}
	set := attributes{flags: hasPermissions | hasTimes | hasSize, permissions: 0o604, atime: 5, mtime: 7, size: 3}
	c.do(typeFsetstat, h, set)
	set.flags, set.permissions, set.uid, set.gid = set.flags|hasOwner, syscall.S_IFREG|0o604, 1000, 1000
	if a := c.do(typeFstat, h).attributes(); a != set {
		t.Errorf("the open file has %+v, want %+v", a, set)
	}
	c.do(typeRename, "file", "other")
	c.do(typeFsetstat, h, attributes{flags: hasPermissions, permissions: 0o600}) // the handle follows the file
	c.do(typeClose, h)
	c.fails(codeFailure, typeClose, h)
	c.fails(codeFailure, typeRead, h, uint64(0), 1)
	if mode := c.mode("/home/gardener/other"); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
	c.do(typeRemove, "other")
	c.fails(codeNoSuchFile, typeLstat, "/home/gardener/other")
}

// Appending ignores the offset; other writes use it.
func TestWhereWritesGo(t *testing.T) {
	c := connect(t, vfs.Limits{})
	h := c.open("log", openWrite|openCreate|openAppend, attributes{})
	for i := range 3 {
		c.do(typeWrite, h, uint64(0), fmt.Sprint("line ", i, "\n"))
	}
	h = c.open("log", openWrite, attributes{})
	c.do(typeWrite, h, uint64(7), "LINE")
	c.do(typeWrite, h, uint64(23), "!")
	if got := c.content("/home/gardener/log"); got != "line 0\nLINE 1\nline 2\n\x00\x00!" {
		t.Errorf("the file has %q", got)
	}
	if mode := c.mode("/home/gardener/log"); mode != 0o644 {
		t.Errorf("mode %v", mode)
	}
	c.fails(codeFailure, typeOpen, "log", openWrite|openCreate|openExcl, attributes{})
	c.fails(codeFailure, typeWrite, h, uint64(1)<<63, "far away")
	c.fails(codeFailure, typeRead, h, uint64(0), 1) // it is open for writing
	c.fails(codeNoSuchFile, typeReaddir, h)
}

func TestDirectories(t *testing.T) {
	c := connect(t, vfs.Limits{})
	c.do(typeMkdir, "d", attributes{flags: hasPermissions, permissions: 0o770})
	if a := c.attributes(typeStat, "d"); a.permissions != syscall.S_IFDIR|0o750 {
		t.Errorf("mode %o", a.permissions)
	}
	want := map[string]bool{}
	for i := range 500 {
		name := fmt.Sprintf("d/%s-%d", strings.Repeat("n", 100), i)
		c.do(typeClose, c.open(name, create, attributes{}))
		want[name[2:]] = true
	}
	h := c.do(typeOpendir, "d/").text()
	c.fails(codeFailure, typeRead, h, uint64(0), 1)
	answers := 0
	for ; ; answers++ {
		d, err := c.request(typeReaddir, h)
		if err != nil {
			if err.(failure).code != codeEOF {
				t.Fatal(err)
			}
			break
		}
		for n := d.uint32(); n > 0; n-- {
			name, line := d.text(), d.text()
			if a := d.attributes(); !want[name] || a.permissions != syscall.S_IFREG|0o644 {
				t.Errorf("%s is not there, or has mode %o", name, a.permissions)
			}
			if wantLine := "-rw-r--r--    1 user1000 group1000        0 Jan 15 08:00 " + name; line != wantLine {
				t.Errorf("line %q, want %q", line, wantLine)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 || answers < 2 {
		t.Errorf("%d names are missing after %d answers", len(want), answers)
	}
	c.fails(codeFailure, typeRmdir, "d")
	c.fails(codeFailure, typeRemove, "d")
	c.fails(codeNoSuchFile, typeRmdir, "/etc/public")
	c.fails(codeNoSuchFile, typeRmdir, "")
	c.do(typeMkdir, "e", attributes{})
	c.fails(codeFailure, typeRemove, "e")
	c.do(typeRmdir, "e")
}

// A listing has the time of day of a file that is less than half a year away, and the year of others.
func TestTimesInListings(t *testing.T) {
	c := connect(t, vfs.Limits{})
	c.do(typeMkdir, "d", attributes{})
	for _, file := range []struct {
		age  time.Duration
		want string
	}{
		{0, "Jan 15 08:00"}, {halfYear, "Jul 19 08:00"}, {halfYear + 1, "Jul 19  2026"},
		{-halfYear, "Jul 14 08:00"}, {-halfYear - 1, "Jul 14  2027"},
	} {
		h := c.open("d/f", create, attributes{})
		changed := now.Add(-file.age)
		if err := c.disk.As(vfs.Root).Chtimes("/home/gardener/d/f", changed, changed); err != nil {
			t.Fatal(err)
		}
		c.do(typeClose, h)
		d := c.do(typeReaddir, c.do(typeOpendir, "d").text())
		if n, _, line := d.uint32(), d.text(), d.text(); n != 1 || !strings.HasSuffix(line, file.want+" f") {
			t.Errorf("age %v: %q, want %q", file.age, line, file.want)
		}
	}
}

func TestLinks(t *testing.T) {
	c := connect(t, vfs.Limits{})
	c.do(typeMkdir, "/srv/shared/a", attributes{})
	c.do(typeSymlink, "/srv/shared/a", "link") // the target first, as OpenSSH has it
	c.do(typeClose, c.open("link/../up", create, attributes{}))
	if _, err := c.disk.ReadFile("/srv/shared/up"); err != nil {
		t.Errorf("link/.. is not above what the link leads to: %v", err)
	}
	for name, want := range map[string]string{
		".": "/home/gardener", "": "/home/gardener", "link": "/srv/shared/a", "link/..": "/srv/shared", "link/new": "/srv/shared/a/new",
		"/bin/../x": "/usr/x", "/": "/", "/../..": "/", "./a": "/home/gardener/a",
	} {
		d := c.do(typeRealpath, name)
		if n, got := d.uint32(), d.text(); n != 1 || got != want {
			t.Errorf("%q is at %q, want %q", name, got, want)
		}
	}
	c.fails(codeNoSuchFile, typeRealpath, "missing/new")
	c.fails(codeNoSuchFile, typeRealpath, "/etc/public/x")
	c.do(typeSymlink, "loop", "loop")
	c.fails(codeNoSuchFile, typeRealpath, "loop")
	if a := c.attributes(typeLstat, "link"); a.permissions != syscall.S_IFLNK|0o777 {
		t.Errorf("mode %o", a.permissions)
	}
	if a := c.attributes(typeStat, "link"); a.permissions != syscall.S_IFDIR|0o755 {
		t.Errorf("mode %o", a.permissions)
	}
	d := c.do(typeReadlink, "link")
	if n, got := d.uint32(), d.text(); n != 1 || got != "/srv/shared/a" {
		t.Errorf("the link leads to %q", got)
	}
	c.fails(codeFailure, typeReadlink, "/etc/public")
}

func TestExtensions(t *testing.T) {
	c := connect(t, vfs.Limits{})
	for _, name := range []string{"one", "two"} {
		h := c.open(name, create, attributes{})
		c.do(typeWrite, h, uint64(0), name)
		c.do(typeExtended, "fsync@openssh.com", h)
		c.do(typeClose, h)
	}
	c.fails(codeFailure, typeRename, "one", "two")
	c.do(typeExtended, "posix-rename@openssh.com", "one", "two")
	c.do(typeExtended, "hardlink@openssh.com", "two", "three")
	if got := c.content("/home/gardener/three"); got != "one" {
		t.Errorf("the file that was replaced has %q", got)
	}
	d := c.do(typeExtended, "limits@openssh.com")
	limits := [4]uint64{d.uint64(), d.uint64(), d.uint64(), d.uint64()}
	if limits != [4]uint64{MaxPacket, MaxTransfer, MaxTransfer, MaxHandles} {
		t.Errorf("limits %d", limits)
	}
	c.fails(codeUnsupported, typeExtended, "unknown@example.com", "x")
	c.fails(codeUnsupported, 99)
}

// A session has the permissions of its user.
func TestPermissions(t *testing.T) {
	c := connect(t, vfs.Limits{})
	h := c.open("/etc/public", openRead, attributes{})
	if got := c.readAll(h); string(got) != "all may read this" {
		t.Errorf("read %q", got)
	}
	c.fails(codeFailure, typeWrite, h, uint64(0), "x")
	mine := attributes{flags: hasPermissions, permissions: 0o777}
	for _, r := range []struct {
		kind   byte
		fields []any
	}{
		{typeOpen, []any{"/root/secret", openRead, attributes{}}}, {typeOpen, []any{"/etc/public", openWrite, attributes{}}},
		{typeOpen, []any{"/etc/new", create, attributes{}}}, {typeOpen, []any{"/etc/shadow", openRead, attributes{}}},
		{typeOpendir, []any{"/root"}}, {typeStat, []any{"/root/secret"}}, {typeLstat, []any{"/root/secret"}},
		{typeRealpath, []any{"/root/secret"}},
		{typeSetstat, []any{"/etc/public", mine}}, {typeFsetstat, []any{h, mine}}, {typeFsetstat, []any{h, attributes{flags: hasTimes}}},
		{typeSetstat, []any{"/home/gardener", attributes{flags: hasOwner}}}, {typeSetstat, []any{"/etc/public", attributes{flags: hasSize}}},
		{typeRemove, []any{"/etc/public"}}, {typeMkdir, []any{"/etc/d", mine}}, {typeRmdir, []any{"/home/gardener"}},
		{typeRename, []any{"/etc/public", "mine"}}, {typeSymlink, []any{"x", "/etc/x"}}, {typeReadlink, []any{"/root/x"}},
		{typeExtended, []any{"posix-rename@openssh.com", "/etc/public", "mine"}},
		{typeExtended, []any{"hardlink@openssh.com", "/etc/public", "mine"}},
	} {
		c.fails(codePermissionDenied, r.kind, r.fields...)
	}
	c.do(typeSymlink, "/root/secret", "bait")
	c.fails(codePermissionDenied, typeOpen, "bait", openRead, attributes{})
	if c.content("/etc/public") != "all may read this" || c.mode("/etc/public") != 0o644 {
		t.Error("the file of root has changed")
	}
}

func TestLimits(t *testing.T) {
	c := connect(t, vfs.Limits{Bytes: 1 << 20, FileSize: 512 << 10})
	var handles []string
	for range MaxHandles {
		handles = append(handles, c.open("/etc/public", openRead, attributes{}))
	}
	c.fails(codeFailure, typeOpen, "/etc/public", openRead, attributes{})
	c.fails(codeFailure, typeOpendir, "/")
	for _, h := range handles {
		c.do(typeClose, h)
	}
	block := make([]byte, 128<<10)
	full := func(name string, want string) {
		t.Helper()
		h := c.open(name, create, attributes{})
		for at := 0; ; at += len(block) {
			if _, err := c.request(typeWrite, h, uint64(at), block); err != nil {
				if err != (failure{codeFailure, want}) {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
				return
			}
		}
	}
	full("large", "file too large")
	full("next", "no space left on device")
	c.fails(codeFailure, typeSetstat, "large", attributes{flags: hasSize, size: 1 << 40})
	zeros := c.open("/dev/zero", openRead, attributes{})
	if d := c.do(typeRead, zeros, uint64(0), uint32(1<<32-1)); len(d.bytes()) != MaxTransfer {
		t.Error("a read is not shortened to the maximum")
	}
	c.do(typeMkdir, "made", 0, make([]byte, MaxPacket-21)) // the longest packet, with bytes after the fields
	name := strings.Repeat("n", vfs.MaxPath)
	c.fails(codeFailure, typeStat, name)
	c.fails(codeFailure, typeStat, "a\x00b")
}

// The unread entries of open directories are limited.
func TestManyEntries(t *testing.T) {
	c := connect(t, vfs.Limits{})
	const count = 30_000
	for i := range count {
		if err := c.disk.WriteFile(fmt.Sprint("/srv/shared/", i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var handles []string
	for range MaxEntries / count {
		handles = append(handles, c.do(typeOpendir, "/srv/shared").text())
	}
	c.fails(codeFailure, typeOpendir, "/srv/shared")
	for {
		if _, err := c.request(typeReaddir, handles[0]); err != nil {
			break
		}
	}
	c.do(typeOpendir, "/srv/shared")
	c.fails(codeFailure, typeOpendir, "/srv/shared")
	c.do(typeClose, handles[1])
	c.do(typeOpendir, "/srv/shared")
}

// A malformed packet ends the session, and no part of the request is executed.
func TestMalformed(t *testing.T) {
	init := packet(typeInit, version)
	for name, data := range map[string][]byte{
		"no init":           packet(typeStat, 1, "/"),
		"version 2":         packet(typeInit, 2),
		"short init":        {0, 0, 0, 1, typeInit},
		"second init":       append(init[:len(init):len(init)], init...),
		"half a length":     append(init[:len(init):len(init)], 0, 0),
		"no length":         append(init[:len(init):len(init)], 0, 0, 0, 0),
		"too long":          append(init[:len(init):len(init)], packet(typeMkdir, 1, "made", 0, make([]byte, MaxPacket-20))...),
		"very long":         append(init[:len(init):len(init)], 0xff, 0xff, 0xff, 0xff, typeStat),
		"ends within":       append(init[:len(init):len(init)], 0, 1, 0, 0, typeStat),
		"no number":         append(init[:len(init):len(init)], packet(typeStat)...),
		"no path":           append(init[:len(init):len(init)], packet(typeRemove, 1)...),
		"path too short":    append(init[:len(init):len(init)], packet(typeRemove, 1, 20, 0)...),
		"no attributes":     append(init[:len(init):len(init)], packet(typeMkdir, 1, "made")...),
		"half attributes":   append(init[:len(init):len(init)], packet(typeMkdir, 1, "made", hasOwner, 5)...),
		"endless extended":  append(init[:len(init):len(init)], packet(typeMkdir, 1, "made", uint32(hasExtended), uint32(1<<32-1), "a", "b")...),
		"no extension name": append(init[:len(init):len(init)], packet(typeExtended, 1)...),
		"half a rename":     append(init[:len(init):len(init)], packet(typeExtended, 1, "posix-rename@openssh.com", "/home/gardener")...),
	} {
		disk := newDisk(t, vfs.Limits{})
		err := Serve(context.Background(), configOf(disk), bytes.NewReader(data), io.Discard)
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := disk.As(vfs.Root).Stat("/home/gardener/made"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the request was done", name)
		}
	}
}

// The length of a packet allocates no memory before the bytes arrive.
func TestAnnouncedLength(t *testing.T) {
	s := &server{in: bytes.NewReader([]byte{0, 4, 0, 0, typeStat})}
	if _, err := s.receive(); !errors.Is(err, ErrMalformed) || s.body.Cap() > 8<<10 {
		t.Errorf("%d bytes are allocated: %v", s.body.Cap(), err)
	}
}

// A session ends without an error when the client closes it, and closes its files.
func TestEnd(t *testing.T) {
	c := connect(t, vfs.Limits{})
	used, _, _, _ := c.disk.Usage()
	h := c.open("f", create, attributes{})
	c.do(typeWrite, h, uint64(0), make([]byte, 10_000))
	c.do(typeRemove, "f")
	if now, _, _, _ := c.disk.Usage(); now < used+10_000 {
		t.Error("an open file takes no space")
	}
	_ = c.to.Close()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	if now, _, _, _ := c.disk.Usage(); now >= used+10_000 {
		t.Errorf("%d bytes are used and were %d: a file is open still", now, used)
	}
}

// The entries of open directories take memory of the machine, until they are listed or the directory is closed.
func TestListingsTakeMemory(t *testing.T) {
	const count = 1000
	disk, held := newDisk(t, vfs.Limits{}), int64(0)
	for i := range count {
		if err := disk.WriteFile(fmt.Sprint("/srv/shared/", i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := configOf(disk)
	cfg.Hold = func(bytes int64) bool {
		held += bytes
		return held < 2*count*entrySize
	}
	s := &server{Config: cfg, request: request{path: "/srv/shared"}, handles: map[string]*handle{}}
	if err := s.openDir(); err != nil || held < count*entrySize {
		t.Fatalf("opening the directory: %v; it holds %d bytes", err, held)
	}
	before := held
	if err := s.openDir(); !errors.Is(err, syscall.ENOMEM) || held != before || s.unlisted != count {
		t.Errorf("without memory: %v, from %d to %d bytes and %d entries", err, before, held, s.unlisted)
	}
	for _, s.handle = range s.handles {
	}
	if err := s.readDir(); err != nil || held >= before {
		t.Errorf("after listing some: %v, from %d to %d bytes", err, before, held)
	}
	if err := s.closeHandle(); err != nil || held != 0 || s.unlisted != 0 {
		t.Errorf("closed: %v, %d bytes and %d entries are held", err, held, s.unlisted)
	}
	if err := s.openDir(); err != nil {
		t.Fatal(err)
	}
	if s.closeAll(); held != 0 {
		t.Errorf("after the session, %d bytes are held", held)
	}
}
