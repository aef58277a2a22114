package sshd

import (
	"context"
	"io"
	"io/fs"
	"net"
)

// Host is the machine that a server lets users into. Its methods may be called at the same time.
type Host interface {
	// User returns an account of the machine.
	User(name string) (User, bool)
	// Stat describes a file of the machine; symbolic links are followed.
	Stat(path string) (FileInfo, error)
	// ReadFile reads a file of the machine that has at most limit bytes.
	ReadFile(path string, limit int64) ([]byte, error)
	// Run runs a session until it ends by itself or ctx ends.
	Run(ctx context.Context, s *Session) Exit
	// Journal takes a line for the log that the machine itself keeps of its SSH server.
	Journal(line string)
}

// User is an account of the machine.
type User struct {
	Name, Home, Shell string
	UID, GID          uint32
	// Locked is an account that refuses every login.
	Locked bool
}

// FileInfo is what decides whether an authorized_keys file can be trusted.
type FileInfo struct {
	UID  uint32
	Mode fs.FileMode
}

// Session is what a client wants to be run.
type Session struct {
	User User
	// Command is what is to be run by the user's shell; empty for a login shell.
	Command string
	// Subsystem is the one of Config.Subsystems that is to be run instead of a command or a shell; empty if none is.
	Subsystem string
	// Env is what the client set, as NAME=VALUE.
	Env []string
	// Terminal is nil for a session without one, as those of subsystems are.
	Terminal *Terminal
	Stdin    io.Reader
	// Stdout and Stderr may be written to by several at a time.
	Stdout io.Writer
	// Stderr is Stdout where there is a terminal.
	Stderr io.Writer
	// Signals are those that the client sends, by their names without "SIG".
	Signals <-chan string
	// Remote and Local are the two ends of the connection.
	Remote, Local net.Addr
	// Go runs a function that may take longer than Run: one that reads Stdin ends when the channel is closed, after Run.
	Go func(f func())
}

// Terminal is the terminal that a client has asked for. What a client types arrives as it is typed, without echo or
// editing: that is up to the Host.
type Terminal struct {
	// Name is its type, for example "xterm-256color".
	Name string
	// Window is its size at the start.
	Window Window
	// Resized tells about later sizes; only the latest one waits.
	Resized <-chan Window
}

// Window is the size of a terminal in characters.
type Window struct{ Columns, Rows int }

// Exit is how a session ended: by a signal, or with a status.
type Exit struct {
	Status int
	// Signal is the name of the signal, without "SIG".
	Signal string
}
