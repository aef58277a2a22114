package sftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// bounds are small, so that sessions reach them.
var bounds = vfs.Limits{Bytes: 1 << 20, FileSize: 256 << 10, Inodes: 200}

// try serves a session that sends data. It checks that the answers are packets, and that the session stays within the
// permissions of the user and the limits of the disk.
func try(t *testing.T, data []byte) {
	t.Helper()
	disk := newDisk(t, bounds)
	var out bytes.Buffer
	err := Serve(context.Background(), configOf(disk), bytes.NewReader(data), &out)
	if err != nil && !errors.Is(err, ErrMalformed) {
		t.Errorf("the session ended with %v", err)
	}
	if bytes.Contains(out.Bytes(), []byte(secret)) {
		t.Error("the secret comes out")
	}
	if kept, err := disk.ReadFile("/root/secret"); string(kept) != secret {
		t.Errorf("the secret is %q: %v", kept, err)
	}
	if used, size, inodes, maxInodes := disk.Usage(); used > size || inodes > maxInodes {
		t.Errorf("%d bytes of %d and %d inodes of %d are used", used, size, inodes, maxInodes)
	}
	for answers := out.Bytes(); len(answers) > 0; {
		length := uint32(0)
		if len(answers) >= 4 {
			length = binary.BigEndian.Uint32(answers)
		}
		if length < 5 || length > MaxPacket || int(length) > len(answers)-4 {
			t.Fatalf("an answer has length %d, and %d bytes are left", length, len(answers))
		}
		answers = answers[4+length:]
	}
}

// FuzzServe sends arbitrary data after the first packet.
func FuzzServe(f *testing.F) {
	f.Add([]byte{})
	f.Add(packet(typeOpen, 1, "f", create, attributes{}))
	f.Add(packet(typeWrite, 1, "\x00\x00\x00\x00\x00\x00\x00\x01", uint64(0), "data"))
	f.Add(packet(typeReaddir, 2, "\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add(packet(typeSetstat, 1, "f", attributes{flags: hasSize | hasOwner | hasPermissions | hasTimes}))
	f.Add(packet(typeExtended, 1, "hardlink@openssh.com", "f", "g"))
	f.Fuzz(func(t *testing.T, data []byte) { try(t, append(packet(typeInit, version), data...)) })
}

// TestRandomRequests sends sessions of mostly valid requests on the same few files. GARDENLITE_SOAK=1 sends more of them.
func TestRandomRequests(t *testing.T) {
	sessions := uint64(150)
	if testutil.Soaking() {
		sessions = 20_000
	}
	first := testutil.Seed(t)
	for seed := first; seed < first+sessions; seed++ {
		random := randomRequests{rand.New(rand.NewPCG(seed, 1))}
		data := packet(typeInit, version)
		for range random.IntN(200) {
			data = append(data, random.request()...)
		}
		if random.IntN(2) == 0 { // something is wrong at the end
			data = data[:random.IntN(len(data))+1]
			data[random.IntN(len(data))] ^= byte(1 << random.IntN(8))
		}
		try(t, data)
		if t.Failed() {
			t.Fatalf("GARDENLITE_SEED=%d begins with this session", seed)
		}
	}
}

type randomRequests struct{ *rand.Rand }

func pick[T any](r randomRequests, of ...T) T { return of[r.IntN(len(of))] }

func (r randomRequests) path() string {
	parts := make([]string, 1+r.IntN(4))
	for i := range parts {
		parts[i] = pick(r, "a", "b", "c", ".", "..", "", "root", "secret", "etc", "srv/shared", "dev/full", "proc/self/status",
			strings.Repeat("x", r.IntN(300)))
	}
	return pick(r, "", "/", "/srv/shared/") + strings.Join(parts, "/")
}

func (r randomRequests) handle() string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(r.IntN(30)))) + pick(r, "", "", "", "", "x")
}

func (r randomRequests) number() uint64 {
	return pick(r, uint64(r.IntN(10)), uint64(r.IntN(300_000)), 1<<31, 1<<32-1, 1<<63-1, 1<<63, 1<<64-1)
}

func (r randomRequests) attributes() attributes {
	return attributes{flags: uint32(r.IntN(16)), size: r.number(), uid: pick[uint32](r, 0, 1000, 5),
		gid: pick[uint32](r, 0, 1000), permissions: r.Uint32(), atime: r.Uint32(), mtime: r.Uint32()}
}

func (r randomRequests) request() []byte {
	id := r.Uint32()
	switch r.IntN(12) {
	case 0, 1:
		return packet(typeOpen, id, r.path(), uint32(r.IntN(64)), r.attributes())
	case 2:
		return packet(typeWrite, id, r.handle(), r.number(), make([]byte, r.IntN(20_000)))
	case 3:
		return packet(typeRead, id, r.handle(), r.number(), uint32(r.number()))
	case 4:
		return packet(pick[byte](r, typeSetstat, typeMkdir), id, r.path(), r.attributes())
	case 5:
		return packet(typeFsetstat, id, r.handle(), r.attributes())
	case 6:
		return packet(pick[byte](r, typeReaddir, typeFstat, typeClose), id, r.handle())
	case 7:
		return packet(pick[byte](r, typeRename, typeSymlink), id, r.path(), r.path())
	case 8:
		return packet(typeExtended, id,
			pick(r, extensions[0].name, extensions[1].name, extensions[2].name, extensions[3].name, "x"), r.path(), r.path())
	case 9:
		return packet(pick[byte](r, typeRemove, typeRmdir, typeOpendir), id, r.path())
	case 10:
		return packet(pick[byte](r, typeLstat, typeStat, typeReadlink, typeRealpath), id, r.path())
	default:
		return packet(byte(r.IntN(256)), id, r.path())
	}
}
