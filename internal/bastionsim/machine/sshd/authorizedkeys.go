package sshd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
)

// login is a user with what the key allows.
type login struct {
	user                User
	noPTY, noForwarding bool
}

// errNotAuthorized is the error for every refused login, whatever the reason is.
var errNotAuthorized = errors.New("not authorized")

// loginKey is the key of the login in the Permissions of a connection.
type loginKey struct{}

func (s *Server) authorize(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	allowed, err := authorize(s.cfg.Host, meta.User(), key)
	if err != nil {
		return nil, err
	}
	return &ssh.Permissions{ExtraData: map[any]any{loginKey{}: allowed}}, nil
}

// accepted records a login in the machine's journal.
func (s *Server) accepted(meta ssh.ConnMetadata, key ssh.PublicKey, permissions *ssh.Permissions, _ string) (*ssh.Permissions, error) {
	s.cfg.Host.Journal(fmt.Sprintf("Accepted publickey for %s from %s: %s %s",
		meta.User(), meta.RemoteAddr(), key.Type(), ssh.FingerprintSHA256(key)))
	return permissions, nil
}

// authorize returns what a key allows, according to the user's authorized_keys file.
func authorize(host Host, name string, key ssh.PublicKey) (login, error) {
	user, known := host.User(name)
	if !known || user.Locked || !path.IsAbs(user.Home) {
		return login{}, errNotAuthorized
	}
	if bastionspec.IsWeakKey(key) {
		host.Journal(fmt.Sprintf("Refused a key of less than %d bits for %s", bastionspec.MinRSABits, user.Name))
		return login{}, errNotAuthorized
	}
	file := path.Join(user.Home, ".ssh", "authorized_keys")
	if err := checkModes(host, user, file); errors.Is(err, fs.ErrNotExist) {
		return login{}, errNotAuthorized
	} else if err != nil {
		host.Journal("Authentication refused: " + err.Error())
		return login{}, errNotAuthorized
	}
	data, err := host.ReadFile(file, MaxAuthorizedKeys)
	if err != nil {
		host.Journal("Authentication refused: " + err.Error())
		return login{}, errNotAuthorized
	}
	return findKey(host, user, file, data, key.Marshal())
}

// checkModes checks a file, and the folders above it up to the home: only the user and root may own or write them.
func checkModes(host Host, user User, file string) error {
	for name := file; ; name = path.Dir(name) {
		info, err := host.Stat(name)
		switch {
		case err != nil:
			return err
		case name == file && !info.Mode.IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		case info.UID != 0 && info.UID != user.UID, info.Mode.Perm()&0o022 != 0:
			return fmt.Errorf("bad ownership or modes for %s", name)
		case name == path.Clean(user.Home) || name == "/":
			return nil
		}
	}
}

func findKey(host Host, user User, file string, data, wanted []byte) (login, error) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || !bytes.Equal(key.Marshal(), wanted) {
			continue
		}
		allowed, err := applyOptions(login{user: user}, options)
		if err != nil {
			host.Journal(fmt.Sprintf("Ignored line %d of %s: %v", number, file, err))
			continue
		}
		return allowed, nil
	}
	return login{}, errNotAuthorized
}

// applyOptions applies the options of a line to a login, in their order.
func applyOptions(l login, options []string) (login, error) {
	for _, option := range options {
		switch name, _, hasValue := strings.Cut(strings.ToLower(option), "="); {
		case hasValue:
			return login{}, fmt.Errorf("option %s is not supported", strings.TrimFunc(name, notPrintable))
		case name == "restrict":
			l.noPTY, l.noForwarding = true, true
		case name == "no-pty", name == "pty":
			l.noPTY = name == "no-pty"
		case name == "no-port-forwarding", name == "port-forwarding":
			l.noForwarding = name == "no-port-forwarding"
		case name == "no-agent-forwarding", name == "no-x11-forwarding", name == "no-user-rc":
			// This server does not have what these options forbid.
		default:
			return login{}, fmt.Errorf("option %q is not supported", name)
		}
	}
	return l, nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }
