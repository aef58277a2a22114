package vfs

import "io/fs"

// Errno is an error of the file system, worded as Linux words it.
type Errno string

// The errors of the file system. Those that io/fs knows too match its values with errors.Is.
const (
	ErrNotExist    Errno = "No such file or directory"
	ErrExist       Errno = "File exists"
	ErrPermission  Errno = "Permission denied"
	ErrNotPermit   Errno = "Operation not permitted"
	ErrNotDir      Errno = "Not a directory"
	ErrIsDir       Errno = "Is a directory"
	ErrNotEmpty    Errno = "Directory not empty"
	ErrInvalid     Errno = "Invalid argument"
	ErrNoSpace     Errno = "No space left on device"
	ErrTooLarge    Errno = "File too large"
	ErrLoop        Errno = "Too many levels of symbolic links"
	ErrNameTooLong Errno = "File name too long"
	ErrBusy        Errno = "Device or resource busy"
	ErrBadFile     Errno = "Bad file descriptor"
)

func (e Errno) Error() string { return string(e) }

// Is makes the errors match those of io/fs.
func (e Errno) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e == ErrNotExist
	case fs.ErrExist:
		return e == ErrExist || e == ErrNotEmpty
	case fs.ErrPermission:
		return e == ErrPermission || e == ErrNotPermit
	case fs.ErrInvalid:
		return e == ErrInvalid
	}
	return false
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
