// Package sharedfiles keeps files of a landscape in the datastore that several processes share, so that another process can go on
// with them. The folder of each process is a cache of them: it is filled by the process that begins to work on the seeds, which
// from then on writes each change to the datastore, too.
//
// Below the prefix, files/PATH has the content of a file, or says in which parts it is; parts/GENERATION/NUMBER are the parts of a
// longer one. What is appended to a longer file becomes a further part of its generation, everything else a new generation, so that
// a process that ends in the middle leaves the old content or the new one.
package sharedfiles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// inline is the maximum length of a file that is in one key, partSize that of a part: etcd's limit for a request is 1.5 MiB.
	inline   = 32 << 10
	partSize = 512 << 10
	// maxParts is how many parts a file may have before it is written anew in fewer ones, unless it is too long for that.
	maxParts = 64
	// requestTimeout is the timeout of a request. The cloud waits for those that write small files.
	requestTimeout = 5 * time.Second
	// page is how many keys are read at a time.
	page = 200
	// format is the version of what is below the prefix.
	format = "1"
)

// ErrChanged says that another process has written a file since this one has read or written it.
var ErrChanged = errors.New("another process has changed it")

// Config configures Files. All fields are required.
type Config struct {
	Datastore datastore.Config
	// Prefix is the prefix of the keys.
	Prefix string
	// Dir is the folder with the files. Paths are the files and folders in it that are kept, as patterns of path.Match.
	Dir   string
	Paths []string
}

// Files keeps files in a datastore. Its methods may be called at the same time, but Load only alone.
type Files struct {
	cfg    Config
	store  *datastore.Datastore
	client *clientv3.Client

	mu    sync.Mutex
	files map[string]*file // by path
}

// file is what is known of a file in the datastore.
type file struct {
	mu       sync.Mutex
	revision int64 // of its key; 0 if there is none
	head     head
	// written is the local file when it was written to the datastore by this process, nil before.
	written os.FileInfo
}

// head is the value of a file's key.
type head struct {
	Data       []byte `json:"data,omitempty"`
	Generation string `json:"generation,omitempty"`
	Parts      int    `json:"parts,omitempty"`
	Size       int64  `json:"size"`
}

// Open connects to the datastore. The caller must close the Files.
func Open(ctx context.Context, cfg Config) (*Files, error) {
	store, err := datastore.Start(ctx, cfg.Datastore)
	if err != nil {
		return nil, err
	}
	client, err := store.NewClient(context.Background(), requestTimeout)
	if err != nil {
		store.Stop()
		return nil, fmt.Errorf("connecting to the datastore for the landscape's files: %w", err)
	}
	return &Files{cfg: cfg, store: store, client: client, files: map[string]*file{}}, nil
}

// Close ends the connection.
func (f *Files) Close() error {
	err := f.client.Close()
	f.store.Stop()
	return err
}

// Load replaces the files in the folder by those in the datastore. The first process of a landscape to do so puts its own ones there:
// an earlier version had them in the folder only. Load returns how many these are.
func (f *Files) Load(ctx context.Context) (moved int, err error) {
	marker, err := f.get(ctx, f.key("format"))
	if err != nil {
		return 0, fmt.Errorf("reading the landscape's files in the datastore: %w", err)
	}
	if len(marker.Kvs) > 0 && string(marker.Kvs[0].Value) != format {
		return 0, fmt.Errorf("the landscape's files in the datastore have the format %q, this version knows %q: use a newer one",
			marker.Kvs[0].Value, format)
	}
	if err := f.readHeads(ctx); err != nil {
		return 0, fmt.Errorf("reading the landscape's files in the datastore: %w", err)
	}
	if len(marker.Kvs) == 0 {
		if moved, err = f.saveAll(); err == nil {
			_, err = f.put(ctx, f.key("format"), []byte(format), 0)
		}
		return moved, err
	}
	return 0, errors.Join(f.replace(ctx), f.deleteUnused(ctx))
}

func (f *Files) key(elements ...string) string {
	return f.cfg.Prefix + "/" + strings.Join(elements, "/")
}

// readHeads reads what there is in the datastore.
func (f *Files) readHeads(ctx context.Context) error {
	files := map[string]*file{}
	prefix := f.key("files") + "/"
	err := f.each(ctx, prefix, func(key string, value []byte, revision int64) error {
		name := strings.TrimPrefix(key, prefix)
		if !f.isKept(name) {
			return fmt.Errorf("%q is no file of a landscape", name)
		}
		known := &file{revision: revision}
		files[name] = known
		return json.Unmarshal(value, &known.head)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = files
	return err
}

// isKept reports whether a path is one of those that are kept, or below one.
func (f *Files) isKept(name string) bool {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return false
	}
	for _, pattern := range f.cfg.Paths {
		elements := strings.Split(name, "/")
		length := min(len(elements), strings.Count(pattern, "/")+1)
		if ok, _ := path.Match(pattern, path.Join(elements[:length]...)); ok {
			return true
		}
	}
	return false
}

// each calls do for each key below a prefix.
func (f *Files) each(ctx context.Context, prefix string, do func(key string, value []byte, revision int64) error) error {
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	for from := prefix; ; {
		some, err := f.get(ctx, from, end, clientv3.WithLimit(page))
		if err != nil {
			return err
		}
		for _, kv := range some.Kvs {
			if err := do(string(kv.Key), kv.Value, kv.ModRevision); err != nil {
				return err
			}
			from = string(kv.Key) + "\x00"
		}
		if !some.More || len(some.Kvs) == 0 {
			return nil
		}
	}
}

// local returns the local files and folders that are kept.
func (f *Files) local() (names []string) {
	for _, pattern := range f.cfg.Paths {
		found, _ := filepath.Glob(filepath.Join(f.cfg.Dir, pattern)) // the patterns are well-formed
		names = append(names, found...)
	}
	return names
}

// saveAll writes all local files to the datastore.
func (f *Files) saveAll() (count int, err error) {
	for _, name := range f.local() {
		err = errors.Join(err, filepath.WalkDir(name, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			count++
			return f.Save(name)
		}))
	}
	return count, err
}

// replace replaces the local files by those of the datastore.
func (f *Files) replace(ctx context.Context) error {
	for _, name := range f.local() {
		if err := fsutil.RemoveAll(name); err != nil {
			return err
		}
	}
	for name, known := range f.files {
		data, err := f.content(ctx, known.head)
		if err != nil {
			return fmt.Errorf("reading %s in the datastore: %w", name, err)
		}
		local := filepath.Join(f.cfg.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(local), 0o700); err != nil {
			return err
		}
		if err := fsutil.WriteFile(local, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) content(ctx context.Context, h head) ([]byte, error) {
	if h.Parts == 0 {
		return h.Data, nil
	}
	var b bytes.Buffer
	for i := range h.Parts {
		part, err := f.get(ctx, f.partKey(h.Generation, i))
		if err != nil {
			return nil, err
		}
		if len(part.Kvs) == 0 {
			return nil, fmt.Errorf("part %d of %d is missing", i+1, h.Parts)
		}
		b.Write(part.Kvs[0].Value)
	}
	if int64(b.Len()) != h.Size {
		return nil, fmt.Errorf("it has %d bytes instead of %d", b.Len(), h.Size)
	}
	return b.Bytes(), nil
}

func (f *Files) partKey(generation string, number int) string {
	return f.key("parts", generation, fmt.Sprintf("%06d", number))
}

// deleteUnused deletes the parts that a process left that ended while it wrote them.
func (f *Files) deleteUnused(ctx context.Context) error {
	used := map[string]int{}
	for _, known := range f.files {
		used[known.head.Generation] = known.head.Parts
	}
	prefix := f.key("parts") + "/"
	return f.each(ctx, prefix, func(key string, _ []byte, revision int64) error {
		generation, number, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if number < fmt.Sprintf("%06d", used[generation]) {
			return nil
		}
		_, err := f.delete(ctx, key, revision)
		return err
	})
}

// Save writes a local file to the datastore, after it was written.
func (f *Files) Save(local string) error {
	known, name, err := f.known(local, true)
	if err != nil {
		return err
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if err := f.save(name, local, known); err != nil {
		return fmt.Errorf("writing %s to the datastore: %w", name, err)
	}
	return nil
}

// known returns what is known of a file.
func (f *Files) known(local string, create bool) (*file, string, error) {
	name, err := filepath.Rel(f.cfg.Dir, local)
	if err == nil && !f.isKept(filepath.ToSlash(name)) {
		err = fmt.Errorf("%s is no file that processes share", local)
	}
	if err != nil {
		return nil, "", err
	}
	name = filepath.ToSlash(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.files[name]
	if known == nil && create {
		known = &file{}
		f.files[name] = known
	}
	return known, name, nil
}

func (f *Files) save(name, local string, known *file) error {
	ctx := context.Background() // each request has its own timeout
	opened, err := os.Open(local)
	if err != nil {
		return err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	before, after := known.head, head{Size: info.Size()}
	from := int64(0)
	switch {
	case info.Size() <= inline:
		after.Data, err = io.ReadAll(io.NewSectionReader(opened, 0, info.Size()))
	case known.isLonger(info):
		after.Generation, after.Parts, from = before.Generation, before.Parts, before.Size
	default:
		after.Generation = uuid.NewString()
	}
	for ; err == nil && after.Generation != "" && from < info.Size(); from += partSize {
		var data []byte
		if data, err = io.ReadAll(io.NewSectionReader(opened, from, min(partSize, info.Size()-from))); err == nil {
			_, err = f.put(ctx, f.partKey(after.Generation, after.Parts), data, 0)
		}
		after.Parts++
	}
	var value []byte
	if err == nil {
		value, err = json.Marshal(after)
	}
	if err == nil {
		known.revision, err = f.put(ctx, f.key("files", name), value, known.revision)
	}
	if err != nil {
		known.written = nil // the next time, all of it is written
		return err
	}
	known.head, known.written = after, info
	if before.Generation != after.Generation {
		f.deleteParts(before)
	}
	return nil
}

// isLonger reports whether the local file is the written one with something appended, and is worth a further part.
func (k *file) isLonger(info os.FileInfo) bool {
	return k.written != nil && k.head.Generation != "" && os.SameFile(k.written, info) && info.Size() >= k.head.Size &&
		(k.head.Parts < maxParts || k.head.Size/int64(k.head.Parts) > partSize/2)
}

// Remove removes a local file, or a folder with all that is in it, from the datastore.
func (f *Files) Remove(local string) error {
	_, name, err := f.known(local, false)
	if err != nil {
		return err
	}
	f.mu.Lock()
	gone := map[string]*file{}
	for other, known := range f.files {
		if other == name || strings.HasPrefix(other, name+"/") {
			gone[other] = known
		}
	}
	f.mu.Unlock()
	for name, known := range gone {
		if err := f.remove(name, known); err != nil {
			return fmt.Errorf("removing %s from the datastore: %w", name, err)
		}
	}
	return nil
}

func (f *Files) remove(name string, known *file) error {
	known.mu.Lock()
	defer known.mu.Unlock()
	var err error
	if known.revision, err = f.delete(context.Background(), f.key("files", name), known.revision); err != nil {
		return err
	}
	f.deleteParts(known.head)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[name] == known {
		delete(f.files, name)
	}
	return nil
}

// deleteParts deletes the parts of a file, if it has some. If that fails, the next Load does.
func (f *Files) deleteParts(h head) {
	if h.Generation != "" {
		_ = f.each(context.Background(), f.key("parts", h.Generation)+"/", func(key string, _ []byte, revision int64) error {
			_, err := f.delete(context.Background(), key, revision)
			return err
		})
	}
}

func (f *Files) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return f.client.Get(ctx, key, options...)
}

// put writes a key that has a revision, 0 if there is none, and returns the new one.
func (f *Files) put(ctx context.Context, key string, value []byte, revision int64) (int64, error) {
	written, err := f.change(ctx, key, revision, clientv3.OpPut(key, string(value)))
	if err != nil || !written.Succeeded {
		return revisionOf(written, revision), cmp.Or(err, ErrChanged)
	}
	return written.Responses[0].GetResponsePut().Header.Revision, nil
}

// delete deletes a key that has a revision, and returns the one that it has then.
func (f *Files) delete(ctx context.Context, key string, revision int64) (int64, error) {
	written, err := f.change(ctx, key, revision, clientv3.OpDelete(key))
	if err != nil || !written.Succeeded {
		if revision = revisionOf(written, revision); revision == 0 {
			return 0, err
		}
		return revision, cmp.Or(err, ErrChanged)
	}
	return 0, nil
}

// change changes a key if it has a revision. kine knows no other changes.
func (f *Files) change(ctx context.Context, key string, revision int64, change clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return f.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(change).Else(clientv3.OpGet(key)).Commit()
}

// revisionOf returns the revision that a key has after a change that did not succeed; the known one if there is no answer.
func revisionOf(answer *clientv3.TxnResponse, known int64) int64 {
	switch {
	case answer == nil:
		return known
	case len(answer.Responses[0].GetResponseRange().Kvs) == 0:
		return 0
	}
	return answer.Responses[0].GetResponseRange().Kvs[0].ModRevision
}
