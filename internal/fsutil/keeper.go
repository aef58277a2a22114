package fsutil

import "os"

// Keeper keeps files in a second place. It is told of each file that was written, and of each file or folder that was removed.
type Keeper interface {
	Save(file string) error
	Remove(path string) error
}

// WriteKept is WriteFile for a file that a Keeper keeps.
func WriteKept(keeper Keeper, name string, data []byte, mode os.FileMode) error {
	if err := WriteFile(name, data, mode); err != nil {
		return err
	}
	return keeper.Save(name)
}

// Nowhere is the Keeper that keeps nothing.
type Nowhere struct{}

// Save does nothing.
func (Nowhere) Save(string) error { return nil }

// Remove does nothing.
func (Nowhere) Remove(string) error { return nil }
