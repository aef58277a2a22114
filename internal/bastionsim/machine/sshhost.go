package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"sync/atomic"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Limits of what SSH sessions run.
const (
	// MaxCommandTime is how long a command may run by the machine's clock.
	MaxCommandTime = time.Hour
	// maxScript is how many bytes are read of a script that comes in through a shell without a terminal.
	maxScript = 1 << 20
)

// sshHost is the machine as its SSH server sees it.
type sshHost struct{ m *Machine }

var _ sshd.Host = sshHost{}

func (h sshHost) User(name string) (sshd.User, bool) {
	u, known := shell.LookupUser(h.m.fs, name)
	closed := locked(shadowOf(h.m.fs, name), h.m.cfg.Clock.Now())
	return sshd.User{Name: u.Name, Home: u.Home, Shell: u.Shell, UID: u.UID, GID: u.GID, Locked: closed}, known
}

func (h sshHost) Stat(name string) (sshd.FileInfo, error) {
	info, err := h.m.fs.As(vfs.Root).Stat(name)
	if err != nil {
		return sshd.FileInfo{}, err
	}
	stat, ok := info.Sys().(*vfs.Stat)
	if !ok {
		return sshd.FileInfo{}, fmt.Errorf("the owner of %s is unknown", name)
	}
	return sshd.FileInfo{UID: stat.UID, Mode: info.Mode()}, nil
}

func (h sshHost) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := h.m.fs.As(vfs.Root).Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has more than %d bytes", limit)}
	}
	return data, err
}

func (h sshHost) Journal(line string) { h.m.units.log(sshUnit, "sshd", 0, line) }

// Run runs a session: a command, a script from the client's input, an interactive shell, or the transfer of files. It
// refuses all of them to a user without a login shell.
func (h sshHost) Run(ctx context.Context, s *sshd.Session) sshd.Exit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	user, known := shell.LookupUser(h.m.fs, s.User.Name)
	if !known || noLogin(user.Shell) {
		_, _ = io.WriteString(s.Stderr, "This account is currently not available.\n")
		return sshd.Exit{Status: 1}
	}
	if s.Subsystem == sftpSubsystem {
		return h.m.runSFTP(ctx, user, s)
	}
	options := h.m.shellOptions(user, shell.Limits{Time: MaxCommandTime})
	options.Env = append(s.Env, connectionEnv(s)...)
	session, err := shell.New(options)
	if err != nil {
		h.m.cfg.Log.Error(err, "starting an SSH session failed", "machine", h.m.cfg.Hostname)
		return sshd.Exit{Status: 255}
	}
	// The reader of the client's input must not outlast the session, although the channel is open a little longer.
	input, feed := io.Pipe()
	defer input.Close()
	stop := context.AfterFunc(ctx, func() { _ = input.Close() })
	defer stop()
	var killed atomic.Pointer[string]
	r := &sshRun{Session: s, feed: feed, kill: func(signal string) {
		killed.CompareAndSwap(nil, &signal)
		cancel()
	}}
	waitSignals := r.followSignals(ctx)
	status := r.told(h.m.contain("the session", func() (int, error) { return r.run(ctx, session, input) }))
	cancel()
	waitSignals()
	if signal := killed.Load(); signal != nil {
		return sshd.Exit{Signal: *signal}
	}
	return sshd.Exit{Status: status}
}

func noLogin(shell string) bool { return path.Base(shell) == "nologin" || path.Base(shell) == "false" }

func connectionEnv(s *sshd.Session) (env []string) {
	remoteHost, remotePort, err := net.SplitHostPort(s.Remote.String())
	localHost, localPort, localErr := net.SplitHostPort(s.Local.String())
	if errors.Join(err, localErr) == nil {
		env = append(env, "SSH_CLIENT="+remoteHost+" "+remotePort+" "+localPort,
			"SSH_CONNECTION="+remoteHost+" "+remotePort+" "+localHost+" "+localPort)
	}
	if s.Terminal != nil {
		env = append(env, "SSH_TTY=/dev/pts/0", "TERM="+s.Terminal.Name)
	}
	return env
}
