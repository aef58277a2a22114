// Package machine is a simulated machine: a hostname, addresses, users, a file system in memory, units, cloud-init and
// a shell. Nodes of shoots and bastions are such machines.
//
// Below it: vfs (the file system), shell (the interpreter), commands (what /usr/bin can do), users (/etc/passwd and
// /etc/group). None of them imports anything of the host, and a test holds them to that. A machine has no process, port or
// file of the host; its whole state is what Snapshot gives and Restore takes.
package machine
