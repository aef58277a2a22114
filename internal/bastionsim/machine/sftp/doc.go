// Package sftp serves version 3 of the SSH file transfer protocol (draft-ietf-secsh-filexfer-02, with what OpenSSH's PROTOCOL
// document says about it) for one session on a simulated machine. It may import internal/bastionsim/machine/vfs.
//
// It promises:
//
//   - A session sees and changes what the vfs.View that it was given may see and change, which is that of the user who
//     logged in, and nothing of the host.
//   - Paths are given to the view as they are ("link/.." means what it means to a kernel), relative ones below the home.
//   - A packet that cannot be read ends the session with an error. What a client says about lengths is believed when so many
//     bytes have come; limits.go has the limits.
//   - Requests are answered one after the other, in their order. Serve starts no goroutine and closes all files.
//
// protocol.go has the numbers, wire.go reads and writes fields of packets, requests.go is the table of requests. What they do
// is in handles.go (open files and directories), paths.go and attributes.go.
package sftp
