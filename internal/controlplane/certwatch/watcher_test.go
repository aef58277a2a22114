package certwatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// start watches files, and returns a channel with a value for each call, and what ends the watch.
func start(t *testing.T, files ...string) (called chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	called, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		Until(ctx, func() { called <- struct{}{} }, files...)
	}()
	<-called // at the beginning
	return called, func() {
		cancel()
		<-ended
	}
}

func receive(t *testing.T, what string, called chan struct{}) {
	t.Helper()
	select {
	case <-called:
	case <-time.After(testutil.Timeout):
		t.Fatalf("%s is not noticed", what)
	}
}

// TestUntil checks that a watch is called for changes of its own files, with one watcher for all, which ends with the last.
func TestUntil(t *testing.T) {
	allEnded := testutil.Goroutines(t)
	folder := t.TempDir()
	one, other := filepath.Join(folder, "one"), filepath.Join(folder, "other")
	write := func(file string) {
		t.Helper()
		if err := fsutil.WriteFile(file, []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(one)
	ones, stopOne := start(t, one)
	both, stopBoth := start(t, one, other)
	watcher := shared.events

	write(other)
	receive(t, "a new file", both)
	write(other)
	receive(t, "a replaced file", both)
	if err := os.WriteFile(other, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	receive(t, "a changed file", both)
	if len(ones) != 0 {
		t.Error("a watch is called for a file that is not its own")
	}
	write(one)
	receive(t, "the own file", ones)
	if shared.events != watcher {
		t.Error("there is another watcher")
	}

	stopBoth()
	write(one)
	receive(t, "the own file after another watch has ended", ones)
	stopOne()
	if shared.events != nil {
		t.Error("the watcher stays without a watch")
	}
	allEnded(testutil.Timeout)
}

// TestUntilInNewFolder checks that a file is watched in a folder that is another of the same name.
func TestUntilInNewFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	file := filepath.Join(folder, "file")
	for range 2 {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		called, stop := start(t, file)
		defer stop()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		receive(t, "a new file", called)
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}
