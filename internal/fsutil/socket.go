package fsutil

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// maxSocketPath is the maximum length of a unix socket's path on every system (macOS has the lowest: 104 with the
// final zero).
const maxSocketPath = 103

// ListenSocket listens on a unix socket that only this user may use: in dir or, if that path is too long, in a new
// private folder below the system's temporary one. An old socket of that name is replaced. The listener can be
// closed more than once. Closing it removes the socket, unless another process has put another one in its place.
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

// listenPrivate also returns the file info of the new socket. Closing the listener does not remove the socket.
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

// removeMade removes a file if it is still the one that was made. It compares modification times too, because a file
// system can use the inode number of a removed file again.
func removeMade(path string, made os.FileInfo) error {
	if now, err := os.Lstat(path); err != nil || !os.SameFile(made, now) || !made.ModTime().Equal(now.ModTime()) {
		return nil
	}
	return os.Remove(path)
}
