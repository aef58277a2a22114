package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sftp"
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
	// sftpSubsystem is the one subsystem of the machine's SSH server.
	sftpSubsystem = "sftp"
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
	return sshd.FileInfo{UID: info.Sys().(*vfs.Stat).UID, Mode: info.Mode()}, nil
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
	session := shell.New(options)
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
	status := r.statusOf(h.m.contain("the session", func() (int, error) { return r.run(ctx, session, input) }))
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

// shadowOf is the line of a user in /etc/shadow, or nil.
func shadowOf(files *vfs.FS, name string) []string {
	data, _ := files.ReadFile("/etc/shadow") // without the file, there is no line
	for line := range strings.SplitSeq(string(data), "\n") {
		if fields := strings.Split(line, ":"); len(fields) >= 9 && fields[0] == name {
			return fields
		}
	}
	return nil
}

// locked reports whether a line of /etc/shadow locks the account. An account that never had a password ("!" or "*") is
// open for keys, as with PAM. An account whose password is locked ("!" before it, by usermod -L) or that has expired is
// not.
func locked(shadow []string, now time.Time) bool {
	if shadow == nil {
		return false
	}
	password, marked := strings.CutPrefix(shadow[1], "!")
	if marked && password != "" && password != "*" {
		return true
	}
	days, err := strconv.ParseInt(shadow[7], 10, 64)
	return err == nil && days >= 0 && now.Unix()/(24*60*60) >= days
}

// runSFTP transfers files for a user until the client ends the channel. The user has the same rights to files as in a
// shell.
func (m *Machine) runSFTP(ctx context.Context, user shell.User, s *sshd.Session) sshd.Exit {
	view := m.fs.As(user.Cred())
	cfg := sftp.Config{View: view, Home: "/", Owner: ownerNames(m.fs), Clock: m.cfg.Clock, Hold: m.memory.Take}
	if info, err := view.Stat(user.Home); err == nil && info.IsDir() && path.IsAbs(user.Home) {
		cfg.Home = path.Clean(user.Home)
	}
	status, err := m.contain("the file transfer", func() (int, error) {
		return 0, sftp.Serve(ctx, cfg, s.Stdin, s.Stdout)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		_, _ = fmt.Fprintf(s.Stderr, "sftp: %v\n", err) // the error has no other place
		status = max(status, 1)
	}
	return sshd.Exit{Status: status}
}

// ownerNames returns a function that looks up names of users and groups. It reads their files at the first lookup only.
func ownerNames(files *vfs.FS) func(uid, gid uint32) (user, group string) {
	names := sync.OnceValue(func() shell.Names { return shell.LoadNames(files) })
	return func(uid, gid uint32) (string, string) { return names().User(uid), names().Group(gid) }
}

type sshRun struct {
	*sshd.Session
	// feed receives the client's input; the session reads the other end.
	feed *io.PipeWriter
	// kill ends the session as a signal does.
	kill func(signal string)
}

// run runs what the client asked for, and returns its status. An error means that it did not end by itself.
func (r *sshRun) run(ctx context.Context, session *shell.Session, input *io.PipeReader) (int, error) {
	switch {
	case r.Terminal != nil && r.Command == "":
		r.Go(r.pass)
		return session.Interactive(ctx, &terminal{Reader: input, Writer: r.Stdout, t: r.Terminal, size: r.Terminal.Window})
	case r.Terminal != nil:
		out := shell.NewlineWriter{Terminal: r.Stdout}
		r.Go(func() { r.passLines(out) })
		return session.Run(ctx, r.Command, input, out, out)
	case r.Command != "":
		r.Go(r.pass)
		return session.Run(ctx, r.Command, input, r.Stdout, r.Stderr)
	default:
		r.Go(r.pass)
		script, err := io.ReadAll(io.LimitReader(input, maxScript+1))
		if err != nil {
			return 1, err
		}
		if len(script) > maxScript {
			return 1, fmt.Errorf("the script is longer than %d bytes", maxScript)
		}
		return session.Run(ctx, string(script), nil, r.Stdout, r.Stderr)
	}
}

func (r *sshRun) pass() {
	_, err := io.Copy(r.feed, r.Stdin)
	_ = r.feed.CloseWithError(err)
}

// passLines copies what is typed in a terminal to the command, line by line, until the client or the command ends.
func (r *sshRun) passLines(echo io.Writer) {
	var line shell.LineDiscipline
	keys := bufio.NewReader(r.Stdin)
	// A command that reads nothing must not block the keys: lines that do not fit are lost.
	lines := make(chan []byte, 64)
	r.Go(func() {
		for input := range lines {
			_, _ = r.feed.Write(input) // fails when the command has ended
		}
		_ = r.feed.Close()
	})
	for ended := false; !ended; {
		key, err := keys.ReadByte()
		if err != nil {
			break
		}
		var shown string
		var input []byte
		shown, input, ended = line.Key(key)
		_, err = io.WriteString(echo, shown)
		if key == shell.CtrlC {
			_, _ = io.WriteString(echo, "\n")
			r.kill("INT")
			ended = true
		}
		if ended = ended || err != nil; len(input) > 0 {
			select {
			case lines <- input:
			default:
			}
		}
	}
	close(lines)
	_, _ = io.Copy(io.Discard, keys)
}

// statusOf returns the status of a session, and writes its error to the client. The shell has already written that of a
// limit.
func (r *sshRun) statusOf(status int, err error) int {
	var limit *shell.LimitError
	if err == nil || errors.As(err, &limit) || errors.Is(err, context.Canceled) {
		return status
	}
	end := "\n"
	if r.Terminal != nil {
		end = "\r\n"
	}
	_, _ = io.WriteString(r.Stderr, "session ended: "+err.Error()+end)
	return max(status, 1)
}

// followSignals handles the client's signals: INT interrupts an interactive shell as Ctrl-C does, other signals end the
// session. The returned function waits until the handler has ended, which it does with ctx.
func (r *sshRun) followSignals(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case signal := <-r.Signals:
				switch {
				case signal == "INT" && r.Terminal != nil && r.Command == "":
					_, _ = r.feed.Write([]byte{shell.CtrlC}) // returns at the latest when the session has ended
				case signal == "USR1", signal == "USR2", signal == "PIPE", signal == "ALRM":
				default:
					r.kill(signal)
				}
			}
		}
	})
	return group.Wait
}

// terminal is the terminal of an interactive shell.
type terminal struct {
	io.Reader
	io.Writer
	t *sshd.Terminal

	mu   sync.Mutex
	size sshd.Window
}

// Size returns the size that the client reported last.
func (t *terminal) Size() (columns, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.size = <-t.t.Resized:
	default:
	}
	return t.size.Columns, t.size.Rows
}
