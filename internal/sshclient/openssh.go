package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"

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
	// Helper is the command that OpenSSH runs for the way: "keys BASTION" writes the current keys of the nodes, and
	// "proxy BASTION HOST PORT" connects to the bastion and keeps it alive.
	Helper []string
}

// KnownHosts is the file with the host keys in the folder of a bastion.
func KnownHosts(dir string) string { return filepath.Join(dir, fileKnownHosts) }

// KeptKey is the key for a bastion that was kept, an error that is fs.ErrNotExist if there is none.
func KeptKey(dir string) (KeyPair, error) { return ReadKeyPair("", filepath.Join(dir, fileBastionKey)) }

// MakeDir makes the folder of a bastion, and removes those of bastions that the garden does not have any more. Folders are
// read before bastions, so that the folder of a bastion that is created meanwhile stays.
func (c *Client) MakeDir(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for the bastion: %w", err)
	}
	folders, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("reading the folders of bastions: %w", err)
	}
	bastions := &operationsv1alpha1.BastionList{}
	if err := c.garden.List(ctx, bastions); err != nil {
		return fmt.Errorf("listing bastions, for their folders: %w", err)
	}
	kept := map[string]bool{filepath.Base(dir): true}
	for i := range bastions.Items {
		kept[bastions.Items[i].Name] = true
	}
	for _, folder := range folders {
		if kept[folder.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), folder.Name())); err != nil {
			return fmt.Errorf("removing the folder of a former bastion: %w", err)
		}
	}
	return nil
}

// Write writes keys and a configuration into the folder, which has to be there.
func (o *OpenSSH) Write() error {
	if o.Key.File == "" {
		o.Key.File = filepath.Join(o.Dir, fileBastionKey)
		if err := writeFile(o.Key.File, o.Key.PEM); err != nil {
			return err
		}
	}
	if err := WriteNodeKeys(o.Dir, o.NodeKeys); err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	return writeFile(o.ConfigFile(), []byte(config))
}

// WriteNodeKeys writes the keys of the nodes into the folder of a bastion. Without a rotation, the file of the key before it
// has the only key: OpenSSH complains about a file that is missing.
func WriteNodeKeys(dir string, keys [][]byte) error {
	return errors.Join(writeFile(filepath.Join(dir, fileNodeKey), keys[0]), writeFile(filepath.Join(dir, fileOldNodeKey), keys[len(keys)-1]))
}

func writeFile(name string, data []byte) error {
	if err := fsutil.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("writing what ssh needs: %w", err)
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

func (o *OpenSSH) bastionHop() []option {
	return append(o.hop(o.bastionAlias(), o.Key.File), option{"ProxyCommand", o.helper("proxy", "%h", "%p")})
}

func (o *OpenSSH) nodeHop(node Node) []option {
	return o.hop(o.nodeAlias(node), filepath.Join(o.Dir, fileNodeKey), filepath.Join(o.Dir, fileOldNodeKey))
}

// helper is a command line of the helper as options of ssh take it. Its arguments may have variables of ssh.
func (o *OpenSSH) helper(name string, args ...string) string {
	words := append(slices.Clone(o.Helper), name, o.Bastion.Namespace+"/"+o.Bastion.Name)
	for i, word := range words {
		words[i] = strings.ReplaceAll(Quote(word), "%", "%%")
	}
	return strings.Join(append(words, args...), " ")
}

// ProxyCommand is the command line that goes through the bastion with ssh itself as the command in between.
func (o *OpenSSH) ProxyCommand(more []string, command []string) []string {
	inner := "ssh -F " + strings.ReplaceAll(Quote(o.ConfigFile()), "%", "%%") + " -W [%h]:%p " + o.Bastion.Name
	args := append([]string{"ssh", "-F", o.ConfigFile(), "-o", "ProxyCommand=" + inner}, more...)
	return append(append(args, o.Node.Name), command...)
}

// ProxyJump is the command line that goes through the bastion with -J.
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

// config has an entry for the bastion and for each node. The node's current keys are written when ssh reads it.
func (o *OpenSSH) config() (string, error) {
	host, port, err := o.endpoint()
	if err != nil {
		return "", err
	}
	var nodes []string
	for _, node := range o.Nodes {
		nodes = append(nodes, node.Name)
	}
	var text strings.Builder
	entry := func(name string, options ...option) {
		fmt.Fprintf(&text, "Host %s\n", name)
		for _, option := range options {
			fmt.Fprintf(&text, "  %s %s\n", option.name, option.value)
		}
	}
	fmt.Fprintf(&text, "# The way to the nodes of %s, by the bastion %s.\n", o.Network, o.Bastion.Name)
	fmt.Fprintf(&text, "Match originalhost %s exec \"%s\"\n", strings.Join(nodes, ","), o.helper("keys"))
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
