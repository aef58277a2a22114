// Package shell interprets shell scripts and command lines on a simulated machine.
//
// Only the parser of mvdan.cc/sh is used, not its interpreter: that one asks the host in places that no handler reaches
// (access(2) in cd and test, the process ID, other users' homes, named pipes of process substitution, the terminal in
// "read -s"), makes a pipe of the host for every "|", and panics in goroutines of its own on redirections it does not
// know, which would end the whole landscape. Here nothing of the host can be reached by construction: the package imports
// nothing that could (a test holds it to that), files are those of a vfs.FS, programs are functions in a table, pipes and
// here-documents are memory, the environment is what the caller gives.
//
// Everything a script can make grow is counted against Limits: time, steps, output, memory, processes, depth. What goes
// over a limit ends the script with an error that names the limit. No goroutine outlives Run.
package shell
