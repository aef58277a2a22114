// Package snapshot saves a landscape, which may be running, to one file, and makes a landscape from it.
//
// A file begins with a frame that readers of zstd skip: its format, and the checksum of all that follows. That is a tar, compressed
// with zstd: the manifest, and then the files and folders that it lists, as they stand in the state directory.
package snapshot
