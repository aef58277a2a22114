package machine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sftp"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// sftpSubsystem is the one subsystem of the machine's SSH server.
const sftpSubsystem = "sftp"

// runSFTP transfers files for a user until the client ends the channel. The user has the same rights to files as in a
// shell.
func (m *Machine) runSFTP(ctx context.Context, user shell.User, s *sshd.Session) sshd.Exit {
	view := m.fs.As(user.Cred())
	cfg := sftp.Config{View: view, Home: "/", Owner: ownerNames(m.fs), Clock: m.cfg.Clock}
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
