package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// lockTimeout is how long CopyFiles waits for a write that goes on.
const lockTimeout = 5 * time.Second

// source is a sqlite file that is copied.
type source struct {
	db             *sql.DB
	writer, reader *sql.Conn // the writer holds back the writes of others, the reader sees the file as of the moment
	to             string
}

// CopyFiles copies sqlite files, which may be in use, as of one moment: writes to all of them wait for it, and for at, which is called
// while they wait. find returns the files, and where to copy each; it is called again, as long as it finds new ones, when those of before
// cannot change any more. A file that is gone by then, or has no table yet, is left out. Indexes are not copied: the next start makes
// them. CopyFiles returns how long writes have waited.
func CopyFiles(ctx context.Context, find func() (map[string]string, error), at func() error) (waited time.Duration, err error) {
	sources := map[string]*source{}
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.close())
		}
	}()
	var begin time.Time
	for {
		found, err := find()
		if err != nil {
			return 0, err
		}
		var added []*source
		for file, to := range found {
			if sources[file] != nil {
				continue
			}
			s, err := openSource(ctx, file, to)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			sources[file] = s
			added = append(added, s)
		}
		if len(added) == 0 {
			break
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		// Always in the same order: two copies at the same time do not wait for each other.
		slices.SortFunc(added, func(a, b *source) int { return strings.Compare(a.to, b.to) })
		for _, s := range added {
			if _, err := s.writer.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
				return 0, fmt.Errorf("holding back writes to the datastore: %w", err)
			}
		}
	}
	if err := at(); err != nil {
		return 0, err
	}
	for file, s := range sources {
		hasTable, err := s.release(ctx)
		if err != nil {
			return 0, fmt.Errorf("reading the datastore: %w", err)
		}
		if !hasTable {
			delete(sources, file)
			if err := errors.Join(s.close(), os.Remove(s.to)); err != nil {
				return 0, err
			}
		}
	}
	waited = time.Since(begin)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range sources {
		group.Go(func() error { return s.copy(ctx) })
	}
	return waited, group.Wait()
}

// openSource opens a file for copying. It does not create the file, which may be deleted at any time.
func openSource(ctx context.Context, file, to string) (_ *source, err error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	uri := url.URL{Scheme: "file", Path: file, RawQuery: fmt.Sprintf("mode=rw&_busy_timeout=%d", lockTimeout.Milliseconds())}
	connector, err := newConnector(uri.String())
	if err != nil {
		return nil, err
	}
	s := &source{db: sql.OpenDB(connector), to: to}
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening the datastore for a copy: %w", errors.Join(err, s.close()))
		}
	}()
	if s.writer, err = s.db.Conn(ctx); err != nil {
		return nil, err
	}
	if s.reader, err = s.db.Conn(ctx); err != nil {
		return nil, err
	}
	copied, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := copied.Close(); err != nil {
		return nil, err
	}
	if _, err := s.reader.ExecContext(ctx, "ATTACH DATABASE ? AS copy", to); err != nil {
		return nil, err
	}
	for _, statement := range []string{"PRAGMA copy.journal_mode=OFF", "PRAGMA copy.synchronous=OFF"} {
		if _, err := s.reader.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// release keeps the file as the reader sees it, and lets writes go on. It reports whether kine's table is there.
func (s *source) release(ctx context.Context) (hasTable bool, err error) {
	if _, err := s.reader.ExecContext(ctx, "BEGIN"); err != nil {
		return false, err
	}
	// The first read is what keeps it.
	row := s.reader.QueryRowContext(ctx, "SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = 'kine'")
	if err := row.Scan(&hasTable); err != nil {
		return false, err
	}
	_, err = s.writer.ExecContext(ctx, "ROLLBACK")
	return hasTable, err
}

// copy copies what the reader sees.
func (s *source) copy(ctx context.Context) error {
	table := strings.Replace(sqliteSetup[0], "IF NOT EXISTS kine", "copy.kine", 1)
	for _, statement := range []string{
		table, "INSERT INTO copy.kine SELECT * FROM main.kine", "DELETE FROM copy.sqlite_sequence",
		"INSERT INTO copy.sqlite_sequence SELECT * FROM main.sqlite_sequence", "COMMIT",
	} {
		if _, err := s.reader.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("copying the datastore: %w", err)
		}
	}
	return nil
}

func (s *source) close() error {
	var errs []error
	for _, conn := range []*sql.Conn{s.writer, s.reader} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(append(errs, s.db.Close())...)
}
