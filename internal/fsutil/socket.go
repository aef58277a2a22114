package fsutil

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is what a unix socket's path may have on every system (macOS has the least: 104 with the final zero).
const maxSocketPath = 103

// SocketPath returns a path for a unix socket: in dir or, where that makes too long a path, in a new private folder
// under the system's temporary one. The function returned removes what was made.
func SocketPath(dir, name string) (path string, remove func(), err error) {
	if path = filepath.Join(dir, name); len(path) <= maxSocketPath {
		return path, func() { _ = os.Remove(path) }, nil
	}
	tmp, err := os.MkdirTemp("", "gardenlite-")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for a socket: %w", err)
	}
	return filepath.Join(tmp, name), func() { _ = os.RemoveAll(tmp) }, nil
}
