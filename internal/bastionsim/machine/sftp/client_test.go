package sftp

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var (
	gardener = vfs.Cred{UID: 1000, GID: 1000}
	now      = time.Unix(1_800_000_000, 0)
)

// secret is the content of a file that only root may read and change.
const secret = "for root alone"

// newDisk returns a disk with the home of gardener and a secret.
func newDisk(t testing.TB, limits vfs.Limits) *vfs.FS {
	t.Helper()
	disk, err := vfs.Open(vfs.Config{Clock: clocktesting.NewFakeClock(now), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		disk.MkdirAll("/home/gardener", 0o755), disk.As(vfs.Root).Chown("/home/gardener", 1000, 1000),
		disk.WriteFile("/root/secret", []byte(secret), 0o600), disk.WriteFile("/etc/public", []byte("all may read this"), 0o644),
		disk.MkdirAll("/srv/shared", 0o777),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

func configOf(disk *vfs.FS) Config {
	owner := func(uid, gid uint32) (user, group string) { return fmt.Sprint("user", uid), fmt.Sprint("group", gid) }
	hold := func(int64) bool { return true }
	return Config{View: disk.As(gardener), Home: "/home/gardener", Owner: owner, Clock: clocktesting.NewFakeClock(now), Hold: hold}
}

// client is the other end of a session.
type client struct {
	t    *testing.T
	disk *vfs.FS
	to   *io.PipeWriter
	from *io.PipeReader
	id   uint32
	done chan error
}

// connect begins a session on a new disk.
func connect(t *testing.T, limits vfs.Limits) *client {
	t.Helper()
	disk := newDisk(t, limits)
	in, to := io.Pipe()
	from, out := io.Pipe()
	c := &client{t: t, disk: disk, to: to, from: from, done: make(chan error, 1)}
	go func() {
		err := Serve(context.Background(), configOf(disk), in, out)
		_ = out.Close()
		_ = in.Close()
		c.done <- err
	}()
	t.Cleanup(func() { _ = to.Close(); _ = from.Close() })
	c.send(packet(typeInit, version))
	if kind, d := c.receive(); kind != typeVersion || d.uint32() != version {
		t.Fatalf("the answer to the offer of version 3 is of type %d", kind)
	}
	return c
}

// packet encodes a packet with fields: numbers, texts and attributes.
func packet(kind byte, fields ...any) []byte {
	e := encoder{data: []byte{0, 0, 0, 0, kind}}
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			e.uint32(uint32(f))
		case uint32:
			e.uint32(f)
		case uint64:
			e.uint64(f)
		case string:
			e.text(f)
		case []byte:
			e.text(string(f))
		case attributes:
			e.uint32(f.flags)
			if f.flags&hasSize != 0 {
				e.uint64(f.size)
			}
			for _, pair := range []struct {
				flag uint32
				n    []uint32
			}{{hasOwner, []uint32{f.uid, f.gid}}, {hasPermissions, []uint32{f.permissions}}, {hasTimes, []uint32{f.atime, f.mtime}}} {
				for _, n := range pair.n {
					if f.flags&pair.flag != 0 {
						e.uint32(n)
					}
				}
			}
		default:
			panic(fmt.Sprintf("a field is a %T", f))
		}
	}
	return e.finish()
}

func (c *client) send(data []byte) {
	c.t.Helper()
	if _, err := c.to.Write(data); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive() (byte, *decoder) {
	c.t.Helper()
	var length [4]byte
	if _, err := io.ReadFull(c.from, length[:]); err != nil {
		c.t.Fatal(err)
	}
	data := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c.from, data); err != nil {
		c.t.Fatal(err)
	}
	d := &decoder{rest: data}
	return d.byte(), d
}

// failure is a status other than "OK".
type failure struct {
	code    uint32
	message string
}

func (f failure) Error() string { return fmt.Sprintf("%d: %s", f.code, f.message) }

// request sends a request and returns its answer after the ID.
func (c *client) request(kind byte, fields ...any) (*decoder, error) {
	c.t.Helper()
	c.id++
	c.send(packet(kind, append([]any{c.id}, fields...)...))
	got, d := c.receive()
	if id := d.uint32(); id != c.id {
		c.t.Fatalf("the answer is to request %d, not to %d", id, c.id)
	}
	if got == typeStatus {
		if code := d.uint32(); code != codeOK {
			return nil, failure{code, d.text()}
		}
	}
	return d, nil
}

// do sends a request that must succeed.
func (c *client) do(kind byte, fields ...any) *decoder {
	c.t.Helper()
	d, err := c.request(kind, fields...)
	if err != nil {
		c.t.Fatalf("request of type %d with %v: %v", kind, fields, err)
	}
	return d
}

// fails sends a request that must fail with a code.
func (c *client) fails(code uint32, kind byte, fields ...any) {
	c.t.Helper()
	if _, err := c.request(kind, fields...); err == nil || err.(failure).code != code {
		c.t.Errorf("request of type %d with %v: %v, want code %d", kind, fields, err, code)
	}
}

func (c *client) open(name string, flags uint32, a attributes) string {
	c.t.Helper()
	return c.do(typeOpen, name, flags, a).text()
}

func (c *client) readAll(handle string) (data []byte) {
	c.t.Helper()
	for {
		d, err := c.request(typeRead, handle, uint64(len(data)), uint32(1<<31))
		if err != nil {
			if err.(failure).code != codeEOF {
				c.t.Fatal(err)
			}
			return data
		}
		data = append(data, d.bytes()...)
	}
}

func (c *client) attributes(kind byte, name string) attributes {
	c.t.Helper()
	return c.do(kind, name).attributes()
}

// content reads a file as root.
func (c *client) content(name string) string {
	c.t.Helper()
	data, err := c.disk.ReadFile(name)
	if err != nil {
		c.t.Error(err)
	}
	return string(data)
}

func (c *client) mode(name string) fs.FileMode {
	c.t.Helper()
	info, err := c.disk.As(vfs.Root).Stat(name)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	return info.Mode()
}
