// Package control has the status and the log of a running process, and the control socket in the state directory
// with the client that other commands use. It may import statedir, the images that are mapped to programs, and the
// hook for klog.Fatal of internal/controlplane/quirks.
package control
