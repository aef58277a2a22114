// Package vfs is the file system of a simulated machine: directories, files, symbolic links, a few devices and /proc,
// with users and permissions, all in memory. A machine begins with an image that all machines share, and copies a node
// of the image when it first changes the node, so that a fresh machine costs a few kilobytes.
//
// Paths are names in this file system and nothing else. They are never given to the host: a machine stores one journal
// with a fixed name in a folder of its own on the host's disk, and only journal.go imports package os.
//
// Everything has a limit (Limits). An operation that exceeds a limit fails with the error of a kernel: ENOSPC, EFBIG,
// ENAMETOOLONG, ELOOP. All errors are *fs.PathError around a syscall.Errno, so that errors.Is(err, fs.ErrNotExist)
// works.
//
// The package imports nothing of the project.
package vfs
