package datastore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	_ "github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/logstructured"
	"github.com/k3s-io/kine/pkg/logstructured/sqllog"
	"github.com/k3s-io/kine/pkg/query"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
)

const (
	// sqliteParams are WAL, so that readers do not wait for the writer; NORMAL, which loses nothing when the process is
	// killed; and immediate transactions, so that one of two writers waits instead of failing. The driver without cgo
	// reads them as well, but for the cache of statements, which it does not have.
	sqliteParams = "_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=30000&_txlock=immediate&_stmt_cache_size=20"

	// closeTimeout is how long the requests that still use a file may take to end.
	closeTimeout = 10 * time.Second
	closePoll    = time.Millisecond
)

// sqliteSetup is kine's schema, with the start of its database: a write-ahead log of a process that was killed is
// merged.
var sqliteSetup = []string{
	`CREATE TABLE IF NOT EXISTS kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created INTEGER, deleted INTEGER,
		create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)`,
	`CREATE INDEX IF NOT EXISTS kine_name_index ON kine (name)`,
	`CREATE INDEX IF NOT EXISTS kine_name_id_index ON kine (name,id)`,
	`CREATE INDEX IF NOT EXISTS kine_id_deleted_index ON kine (id,deleted)`,
	`CREATE INDEX IF NOT EXISTS kine_prev_revision_index ON kine (prev_revision)`,
	`CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision)`,
	`CREATE INDEX IF NOT EXISTS kine_id_compact_rev_key_with_prev_revision_index ON kine(id, name, prev_revision)
		WHERE name != 'compact_rev_key' AND prev_revision != 0`,
	`PRAGMA wal_checkpoint(TRUNCATE)`,
}

func init() { drivers.Register(SQLite, openSQLite) }

// openSQLite does the same as kine's own driver, except that it closes the file: kine's loses a connection when it
// looks for a table of its first versions, so that the file and its write-ahead log stay open until the process ends.
// It does not VACUUM, which would take seconds with a large file.
//
// Upstream: Migrate in https://github.com/k3s-io/kine/blob/v0.16.4/pkg/drivers/generic/generic.go
func openSQLite(ctx context.Context, kine *sync.WaitGroup, cfg *drivers.Config) (bool, server.Backend, error) {
	dialect, err := sqliteDialect(ctx, kine, cfg)
	if err != nil {
		return false, nil, err
	}
	log := sqllog.New(dialect, cfg.CompactInterval, cfg.CompactIntervalJitter, cfg.CompactTimeout, cfg.CompactMinRetain,
		cfg.CompactBatchSize, cfg.PollBatchSize)
	return false, logstructured.New(log), nil
}

func sqliteDialect(ctx context.Context, kine *sync.WaitGroup, cfg *drivers.Config) (*generic.Generic, error) {
	connector, err := newConnector(cfg.DataSourceName)
	if err != nil {
		return nil, err
	}
	dialect, err := generic.OpenDB(ctx, kine, SQLite, connector, cfg.ConnectionPoolConfig, "?", false,
		cfg.MetricsRegisterer)
	if err != nil {
		return nil, err
	}
	kine.Go(func() { awaitClosed(ctx, dialect.DB, connector) })
	dialect.LastInsertID = true
	dialect.GetSizeSQL = query.New(`SELECT (page_count - freelist_count) * page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`, "?", false, "GetSize")
	dialect.CompactSQL = query.New(`DELETE FROM kine AS kv WHERE kv.id IN (
		SELECT kp.prev_revision AS id FROM kine AS kp
		WHERE kp.name != 'compact_rev_key' AND kp.prev_revision != 0 AND kp.id <= ?
		UNION
		SELECT kd.id AS id FROM kine AS kd WHERE kd.deleted != 0 AND kd.id <= ?)`, "?", false, "Compact")
	dialect.PostCompactSQL = query.New(`PRAGMA wal_checkpoint(PASSIVE)`, "?", false, "PostCompactSQL")
	dialect.TranslateErr = func(err error) error {
		if strings.Contains(err.Error(), "UNIQUE constraint failed") {
			return server.ErrKeyExists
		}
		return err
	}
	dialect.ErrCode = func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, statement := range sqliteSetup {
		if _, err := dialect.DB.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("setting up the database: %w", err)
		}
	}
	return dialect, nil
}

// awaitClosed waits until the context ends and all connections are closed. The last one merges the write-ahead log
// into the file, unless two are closed at the same moment: then neither is the last for sqlite, and it is merged here.
func awaitClosed(ctx context.Context, db *sql.DB, c *connector) {
	<-ctx.Done()
	for deadline := time.Now().Add(closeTimeout); db.Stats().OpenConnections > 0; time.Sleep(closePoll) {
		if time.Now().After(deadline) {
			logrus.Errorf("A datastore's file stays open: %d requests have not ended", db.Stats().OpenConnections)
			return
		}
	}
	file, _, _ := strings.Cut(c.dsn, "?")
	if _, err := os.Stat(file + "-wal"); err != nil {
		return
	}
	last := sql.OpenDB(c)
	_, err := last.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	if err := errors.Join(err, last.Close()); err != nil {
		logrus.Errorf("A datastore's write-ahead log is merged at the next start: %v", err)
	}
}

// connector connects to a file with the driver that kine was built with.
type connector struct {
	driver driver.Driver
	dsn    string
}

func newConnector(dsn string) (*connector, error) {
	name := "sqlite3" // with cgo
	if !slices.Contains(sql.Drivers(), name) {
		name = "sqlite"
	}
	db, err := sql.Open(name, dsn) // opens no file yet
	if err != nil {
		return nil, err
	}
	return &connector{db.Driver(), dsn}, db.Close()
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c *connector) Driver() driver.Driver                        { return c.driver }

// sqliteMagic starts every sqlite file (sqlite.org/fileformat.html, section 1.3).
var sqliteMagic = []byte("SQLite format 3\x00")

// ErrCorrupt is the error for a sqlite file that cannot be used.
var ErrCorrupt = errors.New("the datastore is corrupt")

// prepareFile ensures that the file can be written, that no other user can read it (sqlite would create it according to
// the umask), and that it is a sqlite file.
func prepareFile(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the datastore's file: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("keeping the datastore's file from others: %w", err)
	}
	head := make([]byte, len(sqliteMagic))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("reading the datastore's file: %w", err)
	}
	if n > 0 && !bytes.Equal(head[:n], sqliteMagic) {
		return fmt.Errorf("%w: %s: it does not start as a sqlite file does; put a copy back, or start anew with \"gardenlite reset\"",
			ErrCorrupt, file)
	}
	return nil
}

// explain adds to an error of the datastore what a user can do about it.
func explain(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "database or disk is full"):
		return fmt.Errorf("starting the datastore: the disk is full: make room and start again: %w", err)
	case strings.Contains(text, "malformed"), strings.Contains(text, "file is not a database"):
		return fmt.Errorf("%w: %v; put a copy back, or start anew with \"gardenlite reset\"", ErrCorrupt, err)
	case strings.Contains(text, "readonly database"):
		return fmt.Errorf("starting the datastore: its file cannot be written: %w", err)
	}
	return fmt.Errorf("starting the datastore: %w", err)
}
