package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func open(t *testing.T, cfg Config) *FS {
	t.Helper()
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var alice, bob = Cred{UID: 1000, GID: 1000, Groups: []uint32{27}}, Cred{UID: 1001, GID: 1001}

// TestErrors verifies that each operation fails with the same error as in a kernel.
func TestErrors(t *testing.T) {
	f := open(t, Config{Limits: Limits{Bytes: 1 << 20, FileSize: 1 << 16}})
	root, a, b := f.As(Root), f.As(alice), f.As(bob)
	must(t, root.MkdirAll("/home/alice", 0o755), root.Chown("/home/alice", 1000, 1000), a.WriteFile("/home/alice/f", []byte("x"), 0o600),
		a.WriteFile("/tmp/a", nil, 0o666), a.Symlink("loop", "/tmp/loop"), a.Mkdir("/tmp/d", 0o700), a.WriteFile("/tmp/d/f", nil, 0o644),
		root.WriteFile("/tmp/big", make([]byte, 1<<16), 0o644), a.Symlink("/nowhere/x", "/tmp/dangling"))
	open := func(v *View, name string, flag int) error {
		file, err := v.OpenFile(name, flag, 0o644)
		if err == nil {
			_ = file.Close()
		}
		return err
	}
	_, readlink := a.Readlink("/etc/passwd")
	_, readDir := b.ReadDir("/tmp/d")
	_, stat := root.Stat("/" + strings.Repeat("n", 256))
	_, stat2 := root.Stat("/" + strings.Repeat("n/", 2100))
	for name, c := range map[string]struct {
		err  error
		want syscall.Errno
	}{
		"missing":                    {open(a, "/tmp/none", O_RDONLY), syscall.ENOENT},
		"nothing":                    {open(a, "", O_RDONLY), syscall.ENOENT},
		"zero byte":                  {open(a, "/tmp/\x00", O_RDONLY), syscall.EINVAL},
		"another's file":             {open(b, "/home/alice/f", O_RDONLY), syscall.EACCES},
		"a file as directory":        {open(a, "/etc/passwd/x", O_RDONLY), syscall.ENOTDIR},
		"a file with a slash":        {open(a, "/etc/passwd/", O_RDONLY), syscall.ENOTDIR},
		"write a directory":          {open(root, "/tmp", O_WRONLY), syscall.EISDIR},
		"create in a foreign place":  {open(a, "/etc/new", O_WRONLY|O_CREATE), syscall.EACCES},
		"create what is there":       {open(a, "/tmp/a", O_WRONLY|O_CREATE|O_EXCL), syscall.EEXIST},
		"create through a dead link": {open(a, "/tmp/dangling", O_WRONLY|O_CREATE), syscall.ENOENT},
		"a loop":                     {open(a, "/tmp/loop", O_RDONLY), syscall.ELOOP},
		"write /proc":                {open(root, "/proc/version", O_WRONLY), syscall.EACCES},
		"create in /proc":            {open(root, "/proc/new", O_WRONLY|O_CREATE), syscall.EPERM},
		"shadow":                     {open(a, "/etc/shadow", O_RDONLY), syscall.EACCES},
		"a long name":                {stat, syscall.ENAMETOOLONG},
		"a long path":                {stat2, syscall.ENAMETOOLONG},
		"readlink of a file":         {readlink, syscall.EINVAL},
		"list another's":             {readDir, syscall.EACCES},
		"sticky remove":              {b.Remove("/tmp/a"), syscall.EPERM},
		"sticky rename":              {b.Rename("/tmp/a", "/tmp/b"), syscall.EPERM},
		"remove a full directory":    {a.Remove("/tmp/d"), syscall.ENOTEMPTY},
		"remove the root":            {root.Remove("/"), syscall.EBUSY},
		"remove of /proc":            {root.Remove("/proc/version"), syscall.EPERM},
		"rename into itself":         {a.Rename("/tmp/d", "/tmp/d/sub"), syscall.EINVAL},
		"rename file over directory": {a.Rename("/tmp/a", "/tmp/d"), syscall.EISDIR},
		"rename directory over file": {a.Rename("/tmp/d", "/tmp/a"), syscall.ENOTDIR},
		"chmod another's":            {b.Chmod("/tmp/a", 0o777), syscall.EPERM},
		"give away":                  {a.Chown("/tmp/a", 1001, -1), syscall.EPERM},
		"take a foreign group":       {a.Chown("/tmp/a", -1, 0), syscall.EPERM},
		"link a directory":           {root.Link("/tmp/d", "/tmp/d2"), syscall.EPERM},
		"too big":                    {a.Truncate("/tmp/a", 1<<16+1), syscall.EFBIG},
		"mkdir of what is there":     {root.Mkdir("/tmp", 0o755), syscall.EEXIST},
		"access":                     {b.Access("/home/alice/f", 4), syscall.EACCES},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if err := a.Chown("/tmp/a", -1, 27); err != nil {
		t.Errorf("an owner gives a file to a group of his: %v", err)
	}
}

// TestFull verifies that a full file system takes no more, and has room again when a file is removed.
func TestFull(t *testing.T) {
	f := open(t, Config{Limits: Limits{Bytes: 100_000, FileSize: 60_000, Inodes: 30}})
	must(t, f.WriteFile("/tmp/one", make([]byte, 60_000), 0o644))
	if err := f.WriteFile("/tmp/two", make([]byte, 60_000), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
	if err := f.WriteFile("/tmp/three", make([]byte, 60_001), 0o644); err == nil {
		t.Fatal("a file longer than files may be was written")
	}
	must(t, f.As(Root).Remove("/tmp/one"), f.As(Root).Remove("/tmp/three"), f.WriteFile("/tmp/two", make([]byte, 60_000), 0o644),
		f.As(Root).Remove("/tmp/two"))
	var err error
	for i := 0; err == nil; i++ {
		if i > 30 {
			t.Fatal("there are more inodes than there may be")
		}
		err = f.WriteFile(fmt.Sprintf("/tmp/%d", i), nil, 0o644)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
}

// TestHardLinksTakeRoom verifies that names of a file are not free, and are given back.
func TestHardLinksTakeRoom(t *testing.T) {
	f := open(t, Config{})
	v := f.As(Root)
	must(t, v.WriteFile("/tmp/x", nil, 0o644))
	before, _, _, _ := f.Usage()
	must(t, v.Link("/tmp/x", "/tmp/y"))
	if after, _, _, _ := f.Usage(); after != before+nameSize("y") {
		t.Errorf("a link takes %d bytes", after-before)
	}
	must(t, v.Remove("/tmp/y"))
	if after, _, _, _ := f.Usage(); after != before {
		t.Errorf("%d bytes are used, before it were %d", after, before)
	}
}

// TestLongPath verifies that a path that is too long is refused at once.
func TestLongPath(t *testing.T) {
	if err := open(t, Config{}).As(Root).MkdirAll(strings.Repeat("/a", MaxPath), 0o755); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("got %v", err)
	}
}

// TestUnlinkedFile verifies that a file without a name exists, and takes room, while it is open.
func TestUnlinkedFile(t *testing.T) {
	f := open(t, Config{})
	v := f.As(Root)
	before, _, _, _ := f.Usage()
	file, err := v.OpenFile("/tmp/x", O_RDWR|O_CREATE, 0o644)
	must(t, err)
	_, err = file.Write([]byte("still here"))
	must(t, err, v.Remove("/tmp/x"))
	_, err = file.Seek(0, 0)
	buf := make([]byte, 20)
	n, readErr := file.Read(buf)
	must(t, err, readErr)
	if string(buf[:n]) != "still here" {
		t.Fatalf("read %q", buf[:n])
	}
	must(t, file.Close())
	if after, _, _, _ := f.Usage(); after > before+inodeCost { // /tmp itself became a copy
		t.Fatalf("%d bytes are used, before it were %d", after, before)
	}
}

// TestMachinesShareTheImageOnly verifies that a change on one machine is not visible on another one.
func TestMachinesShareTheImageOnly(t *testing.T) {
	one, two := open(t, Config{Hostname: "one"}), open(t, Config{Hostname: "two"})
	was, err := two.ReadFile("/etc/passwd")
	must(t, err)
	file, err := one.As(Root).OpenFile("/etc/passwd", O_RDWR, 0)
	must(t, err)
	_, err = file.Write([]byte("xxxx"))
	must(t, err, file.Close(), one.As(Root).RemoveAll("/usr"), one.As(Root).Chmod("/etc", 0o700))
	is, err := two.ReadFile("/etc/passwd")
	must(t, err)
	if !bytes.Equal(was, is) {
		t.Error("a write into one machine's file is in the other's")
	}
	if info, err := two.As(bob).Stat("/usr/lib/os-release"); err != nil || info.Size() == 0 {
		t.Errorf("after the other's /usr went: %v", err)
	}
	if name, _ := two.ReadFile("/proc/sys/kernel/hostname"); string(name) != "two\n" {
		t.Errorf("the hostname is %q", name)
	}
	if used, _, inodes, _ := two.Usage(); used > 8<<10 || inodes > 8 {
		t.Errorf("a fresh machine uses %d bytes and %d inodes", used, inodes)
	}
}

// TestKilled verifies that a disk that was not closed has all synced changes, even if its last record is cut off.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	f := open(t, Config{Dir: dir, Hostname: "m", Clock: clocktesting.NewFakeClock(time.Now())})
	v := f.As(Root)
	must(t, v.MkdirAll("/var/lib/a/b", 0o750), v.WriteFile("/var/lib/a/b/f", []byte("kept"), 0o640), v.Symlink("b/f", "/var/lib/a/l"),
		v.Chown("/var/lib/a/b/f", 7, 8), v.Remove("/etc/issue"), v.Rename("/etc/motd", "/etc/motd2"), f.Sync())
	whole, err := os.ReadFile(filepath.Join(dir, journalName))
	must(t, err, v.WriteFile("/var/lib/a/late", []byte("late"), 0o644), v.Remove("/var/lib/a/l"), f.Sync())
	both, err := os.ReadFile(filepath.Join(dir, journalName))
	must(t, err)
	for cut := len(whole); cut < len(both); cut += 37 {
		killed := t.TempDir()
		must(t, os.WriteFile(filepath.Join(killed, journalName), both[:cut], 0o600))
		again := open(t, Config{Dir: killed, Hostname: "other"})
		data, err := again.ReadFile("/var/lib/a/l")
		if err != nil || string(data) != "kept" {
			t.Fatalf("cut at %d of %d: read %q, %v", cut, len(both), data, err)
		}
		info, err := again.As(Root).Stat("/var/lib/a/b/f")
		must(t, err)
		if st := info.Sys().(*Stat); info.Mode() != 0o640 || st.UID != 7 || st.GID != 8 {
			t.Errorf("the file has mode %v and owner %d:%d", info.Mode(), st.UID, st.GID)
		}
		for _, gone := range []string{"/etc/issue", "/etc/motd", "/var/lib/a/late"} {
			if _, err := again.ReadFile(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there again: %v", gone, err)
			}
		}
		if name, _ := again.ReadFile("/etc/hostname"); string(name) != "m\n" {
			t.Errorf("the hostname became %q", name)
		}
		must(t, again.Close())
	}
	must(t, f.Close())
	if info, err := os.Stat(filepath.Join(dir, journalName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the disk's mode is %v, %v", info.Mode(), err)
	}
}

// TestCompaction verifies that the journal stays short if a file is written again and again.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	f := open(t, Config{Dir: dir})
	data := make([]byte, 1<<20)
	for i := range 12 {
		data[0] = byte(i)
		must(t, f.WriteFile("/tmp/log", data, 0o644), f.Sync())
	}
	must(t, f.Close())
	info, err := os.Stat(filepath.Join(dir, journalName))
	must(t, err)
	if info.Size() > 9<<20 {
		t.Errorf("the disk has %d bytes for one file of 1 MiB", info.Size())
	}
	again := open(t, Config{Dir: dir})
	got, err := again.ReadFile("/tmp/log")
	must(t, err, again.Close())
	if !bytes.Equal(got, data) {
		t.Error("the file came back with another content")
	}
}

// TestChangesAreWrittenByThemselves verifies that a change is in the journal a moment later, without Sync.
func TestChangesAreWrittenByThemselves(t *testing.T) {
	dir := t.TempDir()
	fake := clocktesting.NewFakeClock(time.Now())
	f := open(t, Config{Dir: dir, Clock: fake})
	must(t, f.WriteFile("/tmp/x", []byte("written later"), 0o644))
	testutil.EventuallyTrue(t, "the change is on the disk", func() bool {
		fake.Step(flushDelay)
		data, _ := os.ReadFile(filepath.Join(dir, journalName))
		return bytes.Contains(data, []byte("written later"))
	})
	must(t, f.Close())
}

// TestSave verifies that each write is told of, and that one that could not be told of is told of again.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	var saved []string
	fails := errors.New("it cannot be kept")
	f := open(t, Config{Dir: dir, Clock: clocktesting.NewFakeClock(time.Now()), Save: func(file string) error {
		if saved = append(saved, file); len(saved) == 1 {
			return fails
		}
		return nil
	}})
	must(t, f.WriteFile("/tmp/x", []byte("text"), 0o644))
	if err := f.Sync(); !errors.Is(err, fails) {
		t.Errorf("the first write: %v", err)
	}
	must(t, f.Sync(), f.Sync(), f.Close())
	if file := filepath.Join(dir, journalName); !slices.Equal(saved, []string{file, file}) {
		t.Errorf("it was told of %v", saved)
	}
}

// TestShrunkFile verifies that a file that is shortened releases its memory: the disk is not charged for it any more.
func TestShrunkFile(t *testing.T) {
	f := open(t, Config{})
	v := f.As(Root)
	must(t, v.WriteFile("/tmp/x", make([]byte, 1<<20), 0o644))
	file, err := v.OpenFile("/tmp/x", O_RDWR, 0o644)
	must(t, err, file.Truncate(7), file.Close())
	for _, n := range f.nodes {
		if len(n.data) == 7 && cap(n.data) > 1<<10 {
			t.Errorf("a file of 7 bytes has %d bytes", cap(n.data))
		}
	}
}
