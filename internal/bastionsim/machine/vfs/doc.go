// Package vfs is the file system of a simulated machine: directories, files, symbolic links, a few devices and /proc,
// with users and permissions, all in memory. A machine begins with an image that all machines share and copies a node of
// it when it first changes it, so that a fresh machine costs a few kilobytes.
//
// Paths are names in this file system and nothing else. They are never given to the host: what a machine keeps on the
// host's disk is one journal with a fixed name in a folder of its own, and only journal.go imports package os.
//
// Everything has a limit (Limits); what goes beyond one fails with the error that a kernel gives: ENOSPC, EFBIG,
// ENAMETOOLONG, ELOOP. All errors are *fs.PathError around a syscall.Errno, so that errors.Is(err, fs.ErrNotExist) works.
//
// The package imports nothing of the project.
package vfs
