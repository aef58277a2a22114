package datastore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

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
