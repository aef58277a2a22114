// Package fsutil writes files so that a reader, or a start after a kill, sees the old content or the new, never half.
// It imports nothing of the project.
package fsutil

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces a file's content in one step. The file has the mode given, whatever the umask.
func WriteFile(name string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(data)
	if chmodErr := tmp.Chmod(mode); err == nil {
		err = chmodErr
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
