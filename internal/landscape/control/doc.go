// Package control is what a process says of itself while it runs: its status, its log, and the control socket in the state
// directory, with the client that other commands use. It may import statedir, the images that are mapped to programs, and
// the hook for klog.Fatal of internal/controlplane/quirks.
package control
