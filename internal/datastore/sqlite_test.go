package datastore

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestSQLiteIsClosed checks that nothing of a datastore is open after its end, and that all of it is in one file.
func TestSQLiteIsClosed(t *testing.T) {
	dir := t.TempDir()
	allEnded := testutil.Goroutines(t)
	for start := range 2 {
		store, err := Start(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}, Context: t.Context(), Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		// An event shows that the subscription to kine has begun: one that ends before it begins leaves a goroutine of kine.
		events := client.Watch(t.Context(), "/registry/", clientv3.WithPrefix())
		if _, err := client.Put(t.Context(), "/registry/key", fmt.Sprint(start)); err != nil {
			t.Fatal(err)
		}
		select {
		case event := <-events:
			if len(event.Events) == 0 {
				t.Fatalf("the watch has no event: %v", event.Err())
			}
		case <-time.After(testutil.Timeout):
			t.Fatal("no event arrives")
		}
		_ = client.Close()
		store.Stop()
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
			t.Errorf("%v is left (%v)", left, err)
		}
		if open := testutil.OpenFiles(t, dir); len(open) > 0 {
			t.Errorf("%v is still open", open)
		}
	}
	allEnded(testutil.Timeout)
}

// TestSQLiteIsKines checks that a database is the same as with kine's own driver, and that kine's still loses a connection.
func TestSQLiteIsKines(t *testing.T) {
	logrus.SetOutput(io.Discard)
	t.Cleanup(func() { logrus.SetOutput(os.Stderr) })
	ctx, cancel := context.WithCancel(t.Context())
	var kine sync.WaitGroup
	defer kine.Wait()
	defer cancel()
	config := func(name string) *drivers.Config {
		config := driverConfig
		config.DataSourceName = filepath.Join(t.TempDir(), name) + "?" + sqliteParams + "&_kine_disable_startup_vacuum=true"
		return &config
	}
	_, theirs, err := sqlite.NewVariant(ctx, &kine, "sqlite3", config("theirs"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := sqliteDialect(ctx, &kine, config("ours"))
	if err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string]func(*generic.Generic) string{
		"schema":     schemaOf(t),
		"compaction": func(g *generic.Generic) string { return squeeze(g.CompactSQL.Query) },
		"size":       func(g *generic.Generic) string { return squeeze(g.GetSizeSQL.Query) },
	} {
		if got, want := of(ours), of(theirs); got != want {
			t.Errorf("%s: %s\nkine has %s", what, got, want)
		}
	}
	if inUse := theirs.DB.Stats().InUse; inUse == 0 {
		t.Error("kine loses no connection any more: openSQLite is not needed")
	}
	if inUse := ours.DB.Stats().InUse; inUse > 0 {
		t.Errorf("%d connections are lost", inUse)
	}
}

// TestSQLiteSettings checks that the driver, which cgo decides on, applies sqliteParams to each connection.
func TestSQLiteSettings(t *testing.T) {
	connector, err := newConnector(filepath.Join(t.TempDir(), FileName) + "?" + sqliteParams)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "30000"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	// A transaction that only has begun keeps other writers out.
	transaction, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = transaction.Rollback() }()
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.ExecContext(t.Context(), "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), "CREATE TABLE other (id INTEGER)"); err == nil {
		t.Error("another connection writes during a transaction")
	}
}

// TestSQLiteLogIsMerged checks that a write-ahead log which the last connections have left is merged into the file.
func TestSQLiteLogIsMerged(t *testing.T) {
	used, left := t.TempDir(), t.TempDir()
	connect := func(dir string) *connector {
		c, err := newConnector(filepath.Join(dir, FileName) + "?" + sqliteParams)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	db := sql.OpenDB(connect(used))
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE kept (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(left, os.DirFS(used)); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	closed := sql.OpenDB(connect(left))
	awaitClosed(ended, closed, connect(left))
	if files, err := filepath.Glob(filepath.Join(left, "*")); err != nil || len(files) != 1 {
		t.Errorf("%v is left (%v)", files, err)
	}
	defer func() { _ = closed.Close() }()
	if _, err := closed.ExecContext(t.Context(), "INSERT INTO kept VALUES (1)"); err != nil {
		t.Error(err)
	}
}

func schemaOf(t *testing.T) func(*generic.Generic) string {
	return func(g *generic.Generic) string {
		rows, err := g.DB.QueryContext(t.Context(), "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var all []string
		for rows.Next() {
			var statement string
			if err := rows.Scan(&statement); err != nil {
				t.Fatal(err)
			}
			all = append(all, squeeze(statement))
		}
		return strings.Join(all, "\n")
	}
}

// squeeze removes white space, which means nothing in these statements.
func squeeze(statement string) string { return strings.Join(strings.Fields(statement), "") }
