package sshclient

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// The files of a bastion in its folder.
const (
	fileBastionKey = "bastion.key"
	fileNodeKey    = "node.key"
	fileOldNodeKey = "node.old.key"
	fileKnownHosts = "known_hosts"
	fileConfig     = "config"
)

// OpenSSH is a way for OpenSSH's client, by files in a folder.
type OpenSSH struct {
	Route
	// Dir is the folder, Nodes all nodes of the Shoot.
	Dir   string
	Nodes []Node
}

// Dir is the folder of a bastion below the landscape's.
func Dir(landscape, bastion string) string { return filepath.Join(landscape, "ssh", bastion) }

// KnownHosts is the file with the host keys in the folder of a bastion.
func KnownHosts(dir string) string { return filepath.Join(dir, fileKnownHosts) }

// KeptKey is the key for a bastion that was kept, an error that is fs.ErrNotExist if there is none.
func KeptKey(dir string) (KeyPair, error) { return ReadKeyPair("", filepath.Join(dir, fileBastionKey)) }

// MakeDir makes the folder of a bastion, and removes those of bastions that cannot live any more.
func MakeDir(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for the bastion: %w", err)
	}
	all, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("looking for folders of former bastions: %w", err)
	}
	for _, entry := range all {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || entry.Name() == filepath.Base(dir) || now.Sub(info.ModTime()) < MaxLifetime {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), entry.Name())); err != nil {
			return fmt.Errorf("removing the folder of a former bastion: %w", err)
		}
	}
	return nil
}

// Write writes keys and a configuration into the folder, which has to be there.
func (o *OpenSSH) Write() error {
	files := map[string][]byte{}
	if o.Key.File == "" {
		o.Key.File = filepath.Join(o.Dir, fileBastionKey)
		files[fileBastionKey] = o.Key.PEM
	}
	for i, key := range o.NodeKeys {
		files[[]string{fileNodeKey, fileOldNodeKey}[i]] = key
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	files[fileConfig] = []byte(config)
	for name, data := range files {
		if err := fsutil.WriteFile(filepath.Join(o.Dir, name), data, 0o600); err != nil {
			return fmt.Errorf("writing what ssh needs: %w", err)
		}
	}
	if len(o.NodeKeys) > 1 {
		return nil
	}
	if err := os.Remove(filepath.Join(o.Dir, fileOldNodeKey)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a key that was rotated: %w", err)
	}
	return nil
}

// ConfigFile is the configuration that Write writes.
func (o *OpenSSH) ConfigFile() string { return filepath.Join(o.Dir, fileConfig) }

// option is one of ssh's, as it is in a configuration.
type option struct{ name, value string }

// hop are the options for a host: with which keys, and how it is recognised.
func (o *OpenSSH) hop(alias string, keys ...string) []option {
	options := []option{{"User", User}}
	for _, key := range keys {
		options = append(options, option{"IdentityFile", quotePath(key)})
	}
	return append(options, option{"IdentitiesOnly", "yes"}, option{"UserKnownHostsFile", quotePath(KnownHosts(o.Dir))},
		option{"HostKeyAlias", alias}, option{"StrictHostKeyChecking", "accept-new"})
}

// quotePath writes a path as ssh's options take it: they have variables with %, and spaces between values.
func quotePath(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t") {
		return `"` + path + `"`
	}
	return path
}

func (o *OpenSSH) bastionHop() []option { return o.hop(o.bastionAlias(), o.Key.File) }

func (o *OpenSSH) nodeHop(node Node) []option {
	keys := []string{filepath.Join(o.Dir, fileNodeKey)}
	if len(o.NodeKeys) > 1 {
		keys = append(keys, filepath.Join(o.Dir, fileOldNodeKey))
	}
	return o.hop(o.nodeAlias(node), keys...)
}

func flags(options []option) (args []string) {
	for _, option := range options {
		args = append(args, "-o", option.name+"="+option.value)
	}
	return args
}

// ProxyCommand is the command line that goes through the bastion with ssh itself as the command in between. Nothing of the
// user's own configuration counts.
func (o *OpenSSH) ProxyCommand(more []string, command []string) ([]string, error) {
	host, port, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	inner := append([]string{"ssh", "-F", "none"}, flags(o.bastionHop())...)
	inner = append(inner, "-p", port, "-W", "[%h]:%p", host)
	for i, word := range inner {
		inner[i] = Quote(word)
	}
	args := append([]string{"ssh", "-F", "none"}, flags(o.nodeHop(o.Node))...)
	args = append(args, "-o", "ProxyCommand="+strings.Join(inner, " "))
	args = append(append(args, more...), o.Node.Address)
	return append(args, command...), nil
}

// ProxyJump is the command line that goes through the bastion with -J. What that needs to know of the bastion is in the
// configuration that Write writes.
func (o *OpenSSH) ProxyJump(more []string, command []string) []string {
	args := append([]string{"ssh", "-F", o.ConfigFile(), "-J", o.Bastion.Name}, more...)
	return append(append(args, o.Node.Name), command...)
}

func (o *OpenSSH) endpoint() (host, port string, err error) {
	endpoint, err := Endpoint(o.Bastion)
	if err != nil {
		return "", "", err
	}
	return net.SplitHostPort(endpoint)
}

// config has an entry for the bastion and for each node.
func (o *OpenSSH) config() (string, error) {
	host, port, err := o.endpoint()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	entry := func(name string, options ...option) {
		fmt.Fprintf(&text, "Host %s\n", name)
		for _, option := range options {
			fmt.Fprintf(&text, "  %s %s\n", option.name, option.value)
		}
	}
	fmt.Fprintf(&text, "# The way to the nodes of %s, by the bastion %s.\n", o.Network, o.Bastion.Name)
	entry(o.Bastion.Name, append([]option{{"HostName", host}, {"Port", port}}, o.bastionHop()...)...)
	for _, node := range o.Nodes {
		if node.Address != "" {
			entry(node.Name, append([]option{{"HostName", node.Address}, {"ProxyJump", o.Bastion.Name}}, o.nodeHop(node)...)...)
		}
	}
	return text.String(), nil
}

// Quote makes one word of a text for a POSIX shell.
func Quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,=", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
