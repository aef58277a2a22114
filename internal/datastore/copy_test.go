package datastore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// openTest opens a sqlite file with kine's table.
func openTest(t *testing.T, file string) *sql.DB {
	t.Helper()
	connector, err := newConnector(file + "?" + sqliteParams)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range sqliteSetup {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func highest(t *testing.T, db *sql.DB) (id int) {
	t.Helper()
	if err := db.QueryRow("SELECT coalesce(max(id), 0) FROM kine").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// A program writes the same number to one file and then to the other, all the time: at any moment, the first is at most one ahead.
func TestCopyFiles(t *testing.T) {
	dir := t.TempDir()
	one, two := openTest(t, filepath.Join(dir, "one.db")), openTest(t, filepath.Join(dir, "two.db"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var written atomic.Int64
	go func() {
		for i := int64(0); ctx.Err() == nil; i++ {
			for _, db := range []*sql.DB{one, two} {
				if _, err := db.Exec("INSERT INTO kine (name, prev_revision, value) VALUES (?, 0, ?)", fmt.Sprint(i), make([]byte, 1000)); err != nil {
					ended <- err
					return
				}
			}
			written.Add(1)
		}
		ended <- nil
	}()
	for n := range 20 {
		for before := written.Load(); written.Load() < before+5 && len(ended) == 0; {
		}
		copies := []string{filepath.Join(dir, fmt.Sprintf("one-%d.db", n)), filepath.Join(dir, fmt.Sprintf("two-%d.db", n))}
		var first, last int64
		if _, err := CopyFiles(t.Context(), func() (map[string]string, error) {
			return map[string]string{
				filepath.Join(dir, "one.db"): copies[0], filepath.Join(dir, "two.db"): copies[1],
				filepath.Join(dir, "gone.db"): filepath.Join(dir, fmt.Sprintf("gone-%d.db", n)),
			}, nil
		}, func() error {
			first = written.Load()
			last = int64(highest(t, two))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ids := []int{highest(t, openTest(t, copies[0])), highest(t, openTest(t, copies[1]))}
		if ids[0] < ids[1] || ids[0] > ids[1]+1 || int64(ids[1]) != last || last < first {
			t.Fatalf("the copies end at %v, the second file at %d, after %d writes to both", ids, last, first)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// Revisions go on behind those that have been deleted.
func TestCopyKeepsRevisions(t *testing.T) {
	dir := t.TempDir()
	db := openTest(t, filepath.Join(dir, "one.db"))
	for _, statement := range []string{
		"INSERT INTO kine (name, prev_revision) VALUES ('a', 0), ('b', 0), ('c', 0)", "DELETE FROM kine WHERE name = 'c'",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(dir, "copy.db")
	find := func() (map[string]string, error) { return map[string]string{filepath.Join(dir, "one.db"): to}, nil }
	if _, err := CopyFiles(t.Context(), find, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	copied := openTest(t, to)
	if _, err := copied.Exec("INSERT INTO kine (name, prev_revision) VALUES ('d', 0)"); err != nil {
		t.Fatal(err)
	}
	if id := highest(t, copied); id != 4 {
		t.Errorf("the next revision is %d", id)
	}
}
