package fsutil

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the maximum length of a unix socket's path on every system (macOS has the lowest: 104 with the
// final zero).
const maxSocketPath = 103

// ListenSocket listens on a unix socket that only this user may use: in dir or, if that path is too long, in a private
// folder below the system's temporary one, the same each time. An old socket of that name is replaced. The listener can
// be closed more than once. Closing it removes the socket, unless another process has put another one in its place.
func ListenSocket(dir, name string) (net.Listener, error) {
	path, clean := filepath.Join(dir, name), func() error { return nil }
	if len(path) > maxSocketPath {
		folder := socketFolder(dir)
		if err := makePrivate(folder); err != nil { // another user may have made it
			if folder, err = os.MkdirTemp("", "gardenlite-"); err != nil {
				return nil, fmt.Errorf("making a folder for a socket: %w", err)
			}
		}
		path, clean = filepath.Join(folder, name), func() error {
			_ = os.Remove(folder) // fails if there is another socket in it
			return nil
		}
	}
	listener, made, err := listenPrivate(path)
	if err != nil {
		return nil, errors.Join(err, clean())
	}
	return &socket{listener, sync.OnceValue(func() error {
		return errors.Join(listener.Close(), removeMade(path, made), clean())
	})}, nil
}

func socketFolder(dir string) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%d %s", os.Getuid(), dir))
	return filepath.Join(os.TempDir(), "gardenlite-"+hex.EncodeToString(hash[:8]))
}

// makePrivate creates a folder that only this user may use. It takes an existing one if it is so.
func makePrivate(folder string) error {
	err := os.Mkdir(folder, 0o700)
	if errors.Is(err, fs.ErrExist) && isPrivate(folder) {
		return nil
	}
	return err
}

func isPrivate(folder string) bool {
	var stat unix.Stat_t
	err := unix.Lstat(folder, &stat)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR && stat.Mode&0o777 == 0o700 && int(stat.Uid) == os.Getuid()
}

// RemoveSockets removes the sockets outside of a folder that a process has left which was killed: those that
// ListenSocket has opened for the folder, and for the folders in it.
func RemoveSockets(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if folder := socketFolder(path); err == nil && entry.IsDir() && isPrivate(folder) {
			return os.RemoveAll(folder)
		}
		return nil
	})
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
