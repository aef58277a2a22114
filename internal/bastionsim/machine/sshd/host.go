package sshd

import (
	"context"
	"io"
	"io/fs"
	"net"
)

// Host is the machine that a server lets users into. Its methods may be called concurrently.
type Host interface {
	// User returns an account of the machine.
	User(name string) (User, bool)
	// Stat describes a file of the machine; symbolic links are followed.
	Stat(path string) (FileInfo, error)
	// ReadFile reads a file of the machine. It returns an error if the file has more than limit bytes.
	ReadFile(path string, limit int64) ([]byte, error)
	// Run runs a session until it ends by itself or ctx ends.
	Run(ctx context.Context, s *Session) Exit
	// Journal adds a line to the journal that the machine keeps of its SSH server.
	Journal(line string)
}

// User is an account of the machine.
type User struct {
	Name, Home, Shell string
	UID, GID          uint32
	Locked            bool // refuses every login
}

// FileInfo has the attributes that decide whether an authorized_keys file can be trusted.
type FileInfo struct {
	UID  uint32
	Mode fs.FileMode
}

// Session is what a client wants to run.
type Session struct {
	User      User
	Command   string    // for the user's shell; empty for a login shell
	Subsystem string    // the one of Config.Subsystems that runs instead of a command or a shell; empty if none does
	Env       []string  // what the client set, as NAME=VALUE
	Terminal  *Terminal // nil for a session without one; subsystems have none
	Stdin     io.Reader
	// Stdout and Stderr may be written to concurrently. They are the same if there is a terminal.
	Stdout, Stderr io.Writer
	Signals        <-chan string // what the client sends, by names without "SIG"
	Remote, Local  net.Addr      // the two ends of the connection
	// Go runs a function that may take longer than Run. A function that reads Stdin ends when the channel is closed,
	// after Run.
	Go func(f func())
}

// Terminal is the terminal that a client has asked for. Keys arrive as they are typed, without echo or line editing,
// which are up to the Host.
type Terminal struct {
	Name    string        // its type, for example "xterm-256color"
	Window  Window        // its size at the start
	Resized <-chan Window // receives later sizes; only the latest one is buffered
}

// Window is the size of a terminal in characters.
type Window struct{ Columns, Rows int }

// Exit is how a session ended: by a signal, or with a status.
type Exit struct {
	Status int
	Signal string // its name without "SIG"
}
