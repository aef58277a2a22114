package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sftp"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// sftpSubsystem is the one subsystem of the machine's SSH server.
const sftpSubsystem = "sftp"

// runSFTP lets a user transfer files until the client ends the channel. The user may do to files what a shell lets them do.
func (m *Machine) runSFTP(ctx context.Context, user account, s *sshd.Session) sshd.Exit {
	view := m.fs.As(vfs.Cred{UID: user.uid, GID: user.gid, Groups: user.groups})
	cfg := sftp.Config{View: view, Home: "/", Owner: ownerNames(m.fs), Clock: m.cfg.Clock}
	if info, err := view.Stat(user.home); err == nil && info.IsDir() && path.IsAbs(user.home) {
		cfg.Home = path.Clean(user.home)
	}
	status, err := m.contain("the file transfer", func() (int, error) {
		return 0, sftp.Serve(ctx, cfg, s.Stdin, s.Stdout)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		_, _ = fmt.Fprintf(s.Stderr, "sftp: %v\n", err) // nowhere else to tell
		status = max(status, 1)
	}
	return sshd.Exit{Status: status}
}

// maxOwners is how many users and how many groups have their names in listings; others have numbers.
const maxOwners = 1024

// ownerNames looks up names of users and groups as they are when the first one is asked for.
func ownerNames(files *vfs.FS) func(uid, gid uint32) (user, group string) {
	read := func(file string, width int) func() map[string]string {
		return sync.OnceValue(func() map[string]string {
			names := map[string]string{}
			eachLine(files, file, width, func(fields []string) bool {
				if _, known := names[fields[2]]; !known {
					names[fields[2]] = fields[0]
				}
				return len(names) < maxOwners
			})
			return names
		})
	}
	users, groups := read("/etc/passwd", 7), read("/etc/group", 4)
	name := func(names map[string]string, id uint32) string {
		number := strconv.FormatUint(uint64(id), 10)
		return cmp.Or(names[number], number)
	}
	return func(uid, gid uint32) (string, string) { return name(users(), uid), name(groups(), gid) }
}
