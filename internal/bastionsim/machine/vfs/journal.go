package vfs

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A journal is one file on the host: a header, and then records. A record is its length, the checksum of its content,
// and the content: the new state of every inode that has changed since the previous record, and the inodes that are
// gone. So each record completes a state of the whole file system, and a record that was cut off by a kill is ignored
// when the journal is read again. When most of the file is outdated, it is written anew to a second file, which then
// replaces it.
const (
	journalName   = "disk"
	journalHeader = "gardenlite disk 1\n"
	// compactAbove is how many bytes the journal may be longer than twice its content.
	compactAbove = 4 << 20
	// chunk is the approximate length of a record in a compacted journal.
	chunk = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type record struct {
	Put  []savedNode
	Gone []uint64
	Next uint64
}

type savedNode struct {
	Ino                 uint64
	Mode                uint32
	UID, GID            uint32
	Nlink               int
	Atime, Mtime, Ctime int64
	Data                []byte
	Target              string
	Children            map[string]uint64
	Dev                 byte
}

type journal struct {
	fs   *FS
	path string
	save func(file string) error // may be nil

	changed chan struct{} // has an element if something is dirty
	done    chan struct{}
	group   sync.WaitGroup

	mu   sync.Mutex // held while writing
	file *os.File
	size int64
	// saved says that there was no write since the last save.
	saved bool
}

// load reads the journal in a folder, or creates it.
func (f *FS) load(dir string, save func(file string) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of a machine's disk: %w", err)
	}
	j := &journal{fs: f, path: filepath.Join(dir, journalName), save: save, saved: true,
		changed: make(chan struct{}, 1), done: make(chan struct{})}
	_ = os.Remove(j.path + ".new") // of a compaction that was interrupted
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening a machine's disk: %w", err)
	}
	j.file = file
	if err := j.read(); err != nil {
		return errors.Join(fmt.Errorf("reading the machine's disk %s: %w; remove the file to begin with a new one", j.path, err), file.Close())
	}
	f.journal = j
	return nil
}

// read applies all complete records, and cuts off the rest of the file.
func (j *journal) read() error {
	header := make([]byte, len(journalHeader))
	n, err := io.ReadFull(j.file, header)
	if n == 0 || errors.Is(err, io.ErrUnexpectedEOF) && bytes.HasPrefix([]byte(journalHeader), header[:n]) {
		j.size = int64(len(journalHeader))
		if _, err := j.file.WriteAt([]byte(journalHeader), 0); err != nil {
			return err
		}
		_, err := j.file.Seek(j.size, io.SeekStart)
		return err
	}
	if string(header) != journalHeader {
		return errors.New("it is not a disk, or one of another version")
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	j.size = int64(len(journalHeader))
	for {
		length, ok := j.readRecord(info.Size() - j.size)
		if !ok {
			break
		}
		j.size += length
	}
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	j.fs.tidy()
	_, err = j.file.Seek(j.size, io.SeekStart)
	return err
}

func (j *journal) readRecord(left int64) (int64, bool) {
	var head [8]byte
	if _, err := io.ReadFull(j.file, head[:]); err != nil {
		return 0, false
	}
	length := int64(binary.LittleEndian.Uint32(head[:4]))
	if length > left-8 {
		return 0, false
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(j.file, body); err != nil || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, false
	}
	var r record
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&r); err != nil {
		return 0, false
	}
	j.fs.apply(r)
	return length + 8, true
}

func (f *FS) apply(r record) {
	f.next = max(f.next, r.Next)
	for _, s := range r.Put {
		n := &node{
			ino: s.Ino, mode: fs.FileMode(s.Mode), uid: s.UID, gid: s.GID, nlink: s.Nlink,
			atime: time.Unix(0, s.Atime), mtime: time.Unix(0, s.Mtime), ctime: time.Unix(0, s.Ctime),
			data: s.Data, target: s.Target, children: s.Children, dev: device(s.Dev),
		}
		if n.mode.IsDir() && n.children == nil {
			n.children = map[string]uint64{}
		}
		f.nodes[s.Ino] = n
	}
	for _, ino := range r.Gone {
		delete(f.nodes, ino)
	}
}

// tidy removes files without a name, and names of nodes that only an older image had. It computes the space in use.
func (f *FS) tidy() {
	for ino, n := range f.nodes {
		if n.nlink <= 0 {
			delete(f.nodes, ino)
		}
	}
	for _, n := range f.nodes {
		f.used += inodeCost + int64(len(n.data)+len(n.target))
		for name, ino := range n.children {
			if f.get(ino) == nil {
				delete(n.children, name)
			} else if f.nodes[ino] != nil {
				f.used += nameSize(name)
			}
		}
	}
}

func save(n *node) savedNode {
	return savedNode{
		Ino: n.ino, Mode: uint32(n.mode), UID: n.uid, GID: n.gid, Nlink: n.nlink,
		Atime: n.atime.UnixNano(), Mtime: n.mtime.UnixNano(), Ctime: n.ctime.UnixNano(),
		Data: n.data, Target: n.target, Children: n.children, Dev: byte(n.dev),
	}
}

// start starts to write changes to the journal, flushDelay after they were made.
func (j *journal) start() {
	j.group.Go(func() {
		for {
			select {
			case <-j.changed:
			case <-j.done:
				return
			}
			select {
			case <-j.fs.clock.After(flushDelay):
			case <-j.done:
				return
			}
			if j.flush() != nil { // a failed write is tried again
				j.wake()
			}
		}
	})
}

func (j *journal) wake() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

func (j *journal) close() error {
	close(j.done)
	j.group.Wait()
	return errors.Join(j.flush(), j.file.Close())
}

// flush writes one record with everything that is dirty. When it returns, the earlier changes of its caller are
// written.
func (j *journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.write(); err != nil || j.saved || j.save == nil {
		return err
	}
	if err := j.save(j.path); err != nil {
		return err
	}
	j.saved = true
	return nil
}

// write writes what is dirty.
func (j *journal) write() error {
	body, inos, live, err := j.collect()
	if err != nil || len(inos) == 0 {
		return err
	}
	if err := j.append(body); err != nil {
		j.fs.mu.Lock()
		defer j.fs.mu.Unlock()
		maps.Copy(j.fs.dirty, inos)
		return fmt.Errorf("writing the machine's disk %s: %w", j.path, err)
	}
	j.saved = false
	if j.size > 2*live+compactAbove {
		return j.compact()
	}
	return nil
}

// collect encodes the dirty nodes, and returns the size of all nodes as live.
func (j *journal) collect() (body []byte, inos map[uint64]struct{}, live int64, err error) {
	f := j.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.dirty) == 0 {
		return nil, nil, 0, nil
	}
	inos = f.dirty
	r := record{Next: f.next}
	for ino := range inos {
		if n := f.nodes[ino]; n != nil {
			r.Put = append(r.Put, save(n))
		} else {
			r.Gone = append(r.Gone, ino)
		}
	}
	body, err = encode(r)
	if err == nil {
		f.dirty = map[uint64]struct{}{}
	}
	return body, inos, f.used, err
}

func encode(r record) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	if err := gob.NewEncoder(&b).Encode(r); err != nil {
		return nil, fmt.Errorf("encoding a record of a machine's disk: %w", err)
	}
	out := b.Bytes()
	binary.LittleEndian.PutUint32(out, uint32(len(out)-8))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(out[8:], castagnoli))
	return out, nil
}

func (j *journal) append(data []byte) error {
	if _, err := j.file.WriteAt(data, j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.size += int64(len(data))
	return nil
}

// compact writes the current state to a new journal, which replaces the old one.
func (j *journal) compact() error {
	file, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("compacting the machine's disk %s: %w", j.path, err)
	}
	size, inos, err := j.writeAll(file)
	if err == nil {
		err = os.Rename(file.Name(), j.path)
	}
	if err != nil {
		j.fs.mu.Lock()
		defer j.fs.mu.Unlock()
		maps.Copy(j.fs.dirty, inos)
		return errors.Join(fmt.Errorf("compacting the machine's disk %s: %w", j.path, err), file.Close())
	}
	old := j.file
	j.file, j.size = file, size
	return old.Close()
}

// writeAll writes all nodes in one consistent state, and returns the inodes that were dirty until then.
func (j *journal) writeAll(file *os.File) (size int64, inos map[uint64]struct{}, err error) {
	j.fs.mu.Lock()
	defer j.fs.mu.Unlock()
	inos, j.fs.dirty = j.fs.dirty, map[uint64]struct{}{}
	n, err := file.WriteString(journalHeader)
	size = int64(n)
	r, held := record{Next: j.fs.next}, 0
	put := func() {
		var body []byte
		if err == nil {
			body, err = encode(r)
		}
		if err == nil {
			_, err = file.Write(body)
		}
		size += int64(len(body))
		r.Put, held = nil, 0
	}
	for _, n := range j.fs.nodes {
		r.Put = append(r.Put, save(n))
		if held += len(n.data) + inodeCost; held > chunk {
			put()
		}
	}
	put()
	if err == nil {
		err = file.Sync()
	}
	return size, inos, err
}
