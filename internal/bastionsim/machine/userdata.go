package machine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/cloudinit"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

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
