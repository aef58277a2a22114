package fsutil

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// maxSocketPath is what a unix socket's path may have on every system (macOS has the least: 104 with the final zero).
const maxSocketPath = 103

// ListenSocket listens on a unix socket that only this user may use: in dir or, where that makes too long a path, in a new
// private folder under the system's temporary one. An old socket of that name is replaced. Closing the listener, which may be
// done more than once, removes what was made, but not what somebody else has put in its place since.
func ListenSocket(dir, name string) (net.Listener, error) {
	path, folder := filepath.Join(dir, name), ""
	if len(path) > maxSocketPath {
		var err error
		if folder, err = os.MkdirTemp("", "gardenlite-"); err != nil {
			return nil, fmt.Errorf("making a folder for a socket: %w", err)
		}
		path = filepath.Join(folder, name)
	}
	listener, err := listenPrivate(path)
	if err != nil {
		if folder != "" {
			err = errors.Join(err, os.Remove(folder))
		}
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("looking at a new socket: %w", err), listener.Close())
	}
	listener.SetUnlinkOnClose(false)
	return &socket{listener, sync.OnceValue(func() error {
		err := listener.Close()
		// The number of a file that is gone can be given to another one.
		if now, gone := os.Lstat(path); gone == nil && os.SameFile(made, now) && made.ModTime().Equal(now.ModTime()) {
			err = errors.Join(err, os.Remove(path))
		}
		if folder != "" {
			err = errors.Join(err, os.RemoveAll(folder))
		}
		return err
	})}, nil
}

type socket struct {
	*net.UnixListener
	close func() error
}

func (s *socket) Close() error { return s.close() }

func listenPrivate(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keeping a socket from others: %w", err), listener.Close())
	}
	return listener, nil
}
