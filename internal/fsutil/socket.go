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

// ListenSocket listens on a unix socket that only this user may use: in dir or, where that makes too long a path, in a
// new private folder under the system's temporary one. An old socket of that name is replaced. Closing the listener,
// which may be done more than once, removes what was made, but not what another process has put in its place since.
func ListenSocket(dir, name string) (net.Listener, error) {
	path, clean := filepath.Join(dir, name), func() error { return nil }
	if len(path) > maxSocketPath {
		folder, err := os.MkdirTemp("", "gardenlite-")
		if err != nil {
			return nil, fmt.Errorf("making a folder for a socket: %w", err)
		}
		path, clean = filepath.Join(folder, name), func() error { return os.RemoveAll(folder) }
	}
	listener, made, err := listenPrivate(path)
	if err != nil {
		return nil, errors.Join(err, clean())
	}
	return &socket{listener, sync.OnceValue(func() error {
		return errors.Join(listener.Close(), removeMade(path, made), clean())
	})}, nil
}

type socket struct {
	*net.UnixListener
	close func() error
}

func (s *socket) Close() error { return s.close() }

// listenPrivate says what it has made as well, and leaves it to others to remove that.
func listenPrivate(path string) (*net.UnixListener, os.FileInfo, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, fmt.Errorf("opening a socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("keeping a socket from others: %w", err), listener.Close())
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("looking at a new socket: %w", err), listener.Close())
	}
	listener.SetUnlinkOnClose(false)
	return listener, made, nil
}

// removeMade removes a file if it is still the one that was made. The number of a file that is gone can be given to another one.
func removeMade(path string, made os.FileInfo) error {
	if now, err := os.Lstat(path); err != nil || !os.SameFile(made, now) || !made.ModTime().Equal(now.ModTime()) {
		return nil
	}
	return os.Remove(path)
}
