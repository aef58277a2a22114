// Package sftp serves version 3 of the SSH file transfer protocol (draft-ietf-secsh-filexfer-02, with extensions from
// OpenSSH's PROTOCOL document) for one session on a simulated machine. It may import internal/bastionsim/machine/vfs.
//
// It promises:
//
//   - A session reads and changes only what its vfs.View allows, which is the view of the user who logged in.
//   - Paths are passed to the view without cleaning, so "link/.." has its meaning in a kernel. Relative paths begin at
//     the home.
//   - A malformed packet ends the session with an error, and no part of the request is executed. Memory for a packet is
//     allocated as its bytes arrive. The limits are in server.go.
//   - Requests are executed and answered one after the other, in their order. Serve starts no goroutine and closes all
//     files.
package sftp
