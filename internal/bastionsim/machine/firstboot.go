package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/cloudinit"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const (
	// UserDataTimeout is how long user data may run by the machine's clock.
	UserDataTimeout = 5 * time.Minute
	// maxUserDataOutput is how many bytes user data may write to its log.
	maxUserDataOutput = 1 << 20

	cloudInitLog    = "/var/log/cloud-init-output.log"
	cloudInitResult = "/var/lib/cloud/data/result.json"
	cloudInitUnit   = "cloud-init.service"
	hostKeyPublic   = "/etc/ssh/ssh_host_ed25519_key.pub"
)

// CloudInitStatus is the result of the user data.
type CloudInitStatus struct {
	// Done means that the user data has run to its end, successfully or not.
	Done bool `json:"done"`
	// Error says what went wrong; empty if nothing did.
	Error string `json:"error,omitempty"`
	// Finished is when it ended.
	Finished time.Time `json:"finished,omitzero"`
}

// CloudInit returns the result of the user data.
func (m *Machine) CloudInit() CloudInitStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cloudInit
}

// firstBoot prepares a new disk and runs the user data. The result file is written last, so that a machine that was
// killed before begins again.
func (m *Machine) firstBoot(ctx context.Context) error {
	var status CloudInitStatus
	data, err := m.fs.ReadFile(cloudInitResult)
	switch {
	case err == nil && json.Unmarshal(data, &status) == nil && status.Done:
	case err == nil, errors.Is(err, fs.ErrNotExist):
		if status, err = m.runUserData(ctx); err != nil {
			return fmt.Errorf("booting machine %s for the first time: %w", m.cfg.Hostname, err)
		}
	default:
		return fmt.Errorf("booting machine %s: %w", m.cfg.Hostname, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cloudInit = status
	m.cfg.UserData = nil // it is not needed any more
	return nil
}

func (m *Machine) runUserData(ctx context.Context) (status CloudInitStatus, err error) {
	if err := m.prepare(ctx); err != nil {
		return status, err
	}
	out, err := m.fs.As(vfs.Root).OpenFile(cloudInitLog, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return status, err
	}
	defer out.Close()
	code, err := m.contain("the user data", func() (int, error) { return m.applyUserData(ctx, out) })
	if err == nil && code != 0 {
		err = fmt.Errorf("the user data ended with status %d", code)
	}
	if ctx.Err() != nil {
		return status, ctx.Err() // shut down in the middle: not done
	}
	status = CloudInitStatus{Done: true, Finished: m.cfg.Clock.Now().UTC()}
	if err != nil {
		status.Error = err.Error()
		_, _ = fmt.Fprintln(out, "cloud-init:", err)
		m.units.log(cloudInitUnit, "cloud-init", 0, "user data failed: "+status.Error)
	}
	data, err := json.Marshal(status)
	if err != nil {
		return status, err
	}
	return status, m.writeTo(cloudInitResult, os.O_TRUNC, string(data)+"\n")
}

// prepare writes the files that are specific to this machine.
func (m *Machine) prepare(ctx context.Context) error {
	if err := m.writeTo(hostKeyPublic, os.O_TRUNC, string(ssh.MarshalAuthorizedKey(m.key.PublicKey()))); err != nil {
		return err
	}
	if err := m.fs.MkdirAll(path.Dir(cloudInitLog), 0o755); err != nil {
		return err
	}
	return m.units.Enable(ctx, sshUnit)
}

// withTimeout returns a context that ends after a time by the machine's clock, with a cause that says what took longer.
func (m *Machine) withTimeout(ctx context.Context, limit time.Duration, what string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := m.cfg.Clock.NewTimer(limit)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(fmt.Errorf("%s took longer than %s", what, limit))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// applyUserData applies the user data. If an entry of cloud-config fails, the other entries are applied, but no scripts
// run.
func (m *Machine) applyUserData(ctx context.Context, out *vfs.File) (int, error) {
	data, err := cloudinit.Parse(m.cfg.UserData)
	if err != nil {
		return 0, err
	}
	limits := shell.Limits{Time: -1, Output: maxUserDataOutput}
	session := shell.New(m.shellOptions(shell.User{Name: "root", Home: "/root"}, limits))
	ctx, cancel := m.withTimeout(ctx, UserDataTimeout, "the user data") // for all commands together
	defer cancel()
	exec := func(args ...string) (int, error) { return session.Exec(ctx, args, out, out) }
	for _, key := range data.Unsupported {
		_, _ = fmt.Fprintf(out, "cloud-init: %s is not supported and left out\n", key)
	}
	status := 0
	run := func(commands [][]string) error {
		for _, args := range commands {
			code, err := exec(args...)
			if err != nil {
				return err
			}
			status = code
		}
		return nil
	}
	problems := run(data.BootCmd)
	for _, f := range data.Files {
		if err := m.writeUserFile(f, exec); err != nil {
			problems = errors.Join(problems, fmt.Errorf("writing %s of write_files: %w", f.Path, err))
		}
	}
	for _, u := range data.Users {
		if err := m.addUser(u, exec); err != nil {
			problems = errors.Join(problems, fmt.Errorf("adding user %q of users: %w", u.Name, err))
		}
	}
	problems = errors.Join(problems, run(data.RunCmd))
	for _, script := range data.Scripts {
		if problems == nil {
			status, problems = session.Run(ctx, script, nil, out, out)
		}
	}
	if ctx.Err() != nil {
		problems = context.Cause(ctx)
	}
	return status, problems
}

func (m *Machine) shellOptions(user shell.User, limits shell.Limits) shell.Options {
	return shell.Options{
		FS: m.fs, Clock: m.cfg.Clock, System: system{m}, Limits: limits, Budget: m.memory, User: user,
	}
}

const sudoersOfUsers = "/etc/sudoers.d/90-cloud-init-users"

// writeUserFile writes an entry of write_files. exec runs programs of the machine.
func (m *Machine) writeUserFile(f cloudinit.File, exec func(...string) (int, error)) error {
	mode := uint64(0o644)
	if f.Permissions != "" {
		var err error
		if mode, err = strconv.ParseUint(f.Permissions, 8, 12); err != nil {
			return fmt.Errorf("permissions %q are not an octal mode", f.Permissions)
		}
	}
	flag := os.O_TRUNC
	if f.Append {
		flag = os.O_APPEND
	}
	if err := m.writeTo(f.Path, flag, f.Content); err != nil {
		return err
	}
	if err := m.fs.As(vfs.Root).Chmod(f.Path, vfs.FileMode(uint32(mode))); err != nil || f.Owner == "" {
		return err
	}
	return succeed(exec, "chown", f.Owner, f.Path)
}

// writeTo writes a text to a file, and creates the file's parent folders.
func (m *Machine) writeTo(name string, flag int, text string) error {
	if err := m.fs.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := m.fs.As(vfs.Root).OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(text))
	return errors.Join(err, file.Close())
}

// addUser creates an entry of users, unless the user exists, and adds its SSH keys and sudo rules.
func (m *Machine) addUser(u cloudinit.User, exec func(...string) (int, error)) error {
	a, ok := shell.LookupUser(m.fs, u.Name)
	if !ok {
		args := []string{"useradd", "-m"}
		for _, option := range [][2]string{{"-s", u.Shell}, {"-c", u.Gecos}, {"-G", strings.Join(u.Groups, ",")}} {
			if option[1] != "" {
				args = append(args, option[:]...)
			}
		}
		if err := succeed(exec, append(args, "--", u.Name)...); err != nil {
			return err
		}
		if a, ok = shell.LookupUser(m.fs, u.Name); !ok {
			return errors.New("the user was not made")
		}
	}
	if len(u.SSHAuthorizedKeys) > 0 {
		dir := path.Join(a.Home, ".ssh")
		keys := path.Join(dir, "authorized_keys")
		root := m.fs.As(vfs.Root)
		if err := m.writeTo(keys, os.O_APPEND, strings.Join(u.SSHAuthorizedKeys, "\n")+"\n"); err != nil {
			return err
		}
		if err := errors.Join(root.Chmod(dir, 0o700), root.Chmod(keys, 0o600),
			root.Chown(dir, int(a.UID), int(a.GID)), root.Chown(keys, int(a.UID), int(a.GID))); err != nil {
			return err
		}
	}
	for _, rule := range u.Sudo {
		if err := m.writeTo(sudoersOfUsers, os.O_APPEND, u.Name+" "+rule+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// succeed runs a program, and returns an error if its exit status is not 0.
func succeed(exec func(...string) (int, error), args ...string) error {
	status, err := exec(args...)
	if err == nil && status != 0 {
		err = fmt.Errorf("%s ended with status %d", args[0], status)
	}
	return err
}
