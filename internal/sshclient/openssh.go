package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// The names of the files in the folder of a bastion.
const (
	fileBastionKey = "bastion.key"
	fileNodeKey    = "node.key"
	fileOldNodeKey = "node.old.key"
	fileKnownHosts = "known_hosts"
	fileConfig     = "config"
)

// OpenSSH is a Route for OpenSSH's client, which files in a folder configure.
type OpenSSH struct {
	Route
	// Dir is the folder. Nodes are all nodes of the Shoot.
	Dir   string
	Nodes []Node
	// Helper is the command that OpenSSH runs for a connection: "keys BASTION" writes the current keys of the nodes,
	// and "proxy BASTION HOST PORT" connects to the bastion and keeps it alive.
	Helper []string
}

// KnownHosts returns the path of the file with the host keys in the folder of a bastion.
func KnownHosts(dir string) string { return filepath.Join(dir, fileKnownHosts) }

// ReadStoredKey returns the stored key of a bastion. The error wraps fs.ErrNotExist if there is none.
func ReadStoredKey(dir string) (KeyPair, error) {
	return ReadKeyPair("", filepath.Join(dir, fileBastionKey))
}

// MakeDir creates the folder of a bastion, and removes the folders of bastions that the garden does not have any more.
// It reads the folders before the bastions, so that the folder of a bastion that is created meanwhile stays.
func (c *Client) MakeDir(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for the bastion: %w", err)
	}
	folders, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("reading the folders of bastions: %w", err)
	}
	bastions := &operationsv1alpha1.BastionList{}
	if err := c.garden.List(ctx, bastions); apierrors.IsForbidden(err) {
		return nil // a member of one project does not see which folders are of former bastions
	} else if err != nil {
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

// Write writes the keys and the configuration into the folder, which must exist.
func (o *OpenSSH) Write() error {
	if err := o.validate(); err != nil {
		return err
	}
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

// validate refuses values that are not names, addresses and paths. They come from clusters, and OpenSSH would read a line
// break as the end of an option, and run the command of the next one.
func (o *OpenSSH) validate() error {
	if _, err := Endpoint(o.Bastion); err != nil {
		return err
	}
	names := []string{o.Network, o.Bastion.Namespace, o.Bastion.Name, string(o.Bastion.UID)}
	for _, node := range append(slices.Clone(o.Nodes), o.Node) {
		names = append(names, node.Name)
		if node.Address != "" && !isAddress(node.Address) {
			return fmt.Errorf("node %q has %q as its address", node.Name, node.Address)
		}
	}
	for _, name := range names {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q cannot be a name in a configuration of ssh", name)
		}
	}
	for _, path := range append(slices.Clone(o.Helper), o.Dir, o.Key.File) {
		if strings.ContainsFunc(path, func(r rune) bool { return r == '"' || !unicode.IsPrint(r) }) {
			return fmt.Errorf("the path %q cannot be in a configuration of ssh", path)
		}
	}
	return nil
}

// isAddress reports whether the text is an IP address or a host name. The zone of an IPv6 address can be any text.
func isAddress(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Zone() == "" || err != nil && len(validation.IsDNS1123Subdomain(text)) == 0
}

// WriteNodeKeys writes the keys of the nodes into the folder of a bastion. Without a rotation, both files have the same
// key, because OpenSSH complains about a missing file.
func WriteNodeKeys(dir string, keys [][]byte) error {
	return errors.Join(writeFile(filepath.Join(dir, fileNodeKey), keys[0]), writeFile(filepath.Join(dir, fileOldNodeKey), keys[len(keys)-1]))
}

func writeFile(name string, data []byte) error {
	if err := fsutil.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("writing what ssh needs: %w", err)
	}
	return nil
}

// ConfigFile returns the path of the configuration that Write writes.
func (o *OpenSSH) ConfigFile() string { return filepath.Join(o.Dir, fileConfig) }

// option is an option in a configuration of ssh.
type option struct{ name, value string }

// hop returns the options for a host: the user, the keys, and how to verify the host key.
func (o *OpenSSH) hop(alias string, keys ...string) []option {
	options := []option{{"User", User}}
	for _, key := range keys {
		options = append(options, option{"IdentityFile", quotePath(key)})
	}
	return append(options, option{"IdentitiesOnly", "yes"}, option{"UserKnownHostsFile", quotePath(KnownHosts(o.Dir))},
		option{"HostKeyAlias", alias}, option{"StrictHostKeyChecking", "accept-new"})
}

// quotePath quotes a path for an option of ssh, where % begins a variable and spaces separate values.
func quotePath(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t") {
		return `"` + path + `"`
	}
	return path
}

// helper returns a command line of the helper for an option of ssh. The arguments may contain variables of ssh.
func (o *OpenSSH) helper(name string, args ...string) string {
	words := append(slices.Clone(o.Helper), name, o.Bastion.Namespace+"/"+o.Bastion.Name)
	for i, word := range words {
		words[i] = strings.ReplaceAll(Quote(word), "%", "%%")
	}
	return strings.Join(append(words, args...), " ")
}

// ProxyCommand returns the command line that connects through the bastion with a second ssh as the ProxyCommand.
func (o *OpenSSH) ProxyCommand(more []string, command []string) []string {
	inner := "ssh -F " + strings.ReplaceAll(Quote(o.ConfigFile()), "%", "%%") + " -W [%h]:%p " + o.Bastion.Name
	args := append([]string{"ssh", "-F", o.ConfigFile(), "-o", "ProxyCommand=" + inner}, more...)
	return append(append(args, o.Node.Name), command...)
}

// ProxyJump returns the command line that connects through the bastion with -J.
func (o *OpenSSH) ProxyJump(more []string, command []string) []string {
	args := append([]string{"ssh", "-F", o.ConfigFile(), "-J", o.Bastion.Name}, more...)
	return append(append(args, o.Node.Name), command...)
}

// config returns the configuration of the bastion and each node. ssh runs the helper that writes the nodes' current
// keys first.
func (o *OpenSSH) config() (string, error) {
	endpoint, err := Endpoint(o.Bastion)
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(endpoint)
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
	hop := append(o.hop(o.bastionAlias(), o.Key.File), option{"ProxyCommand", o.helper("proxy", "%h", "%p")})
	entry(o.Bastion.Name, append([]option{{"HostName", host}, {"Port", port}}, hop...)...)
	for _, node := range o.Nodes {
		if node.Address != "" {
			hop := o.hop(o.nodeAlias(node), filepath.Join(o.Dir, fileNodeKey), filepath.Join(o.Dir, fileOldNodeKey))
			entry(node.Name, append([]option{{"HostName", node.Address}, {"ProxyJump", o.Bastion.Name}}, hop...)...)
		}
	}
	return text.String(), nil
}

var plainWord = regexp.MustCompile(`^[\w/.+:@%,=-]+$`)

// Quote quotes a text as one word for a POSIX shell.
func Quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Proxy connects in and out to the address of a Bastion, and keeps the Bastion alive until the connection ends. It
// serves as OpenSSH's ProxyCommand.
func (c *Client) Proxy(ctx context.Context, key client.ObjectKey, address string, in io.Reader, out io.Writer, report func(error)) error {
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to the bastion %s: %w", key.Name, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	defer func() { cancel(); <-kept }()
	go func() {
		defer close(kept)
		bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		c.KeepAlive(ctx, bastion, report)
	}()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() { // ends with in, or when the connection is closed and something more is read
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("reading from the bastion %s: %w", key.Name, err)
	}
	return nil
}

// CurrentNodeKeys returns the private keys for the nodes of the Shoot that a Bastion leads to.
func (c *Client) CurrentNodeKeys(ctx context.Context, key client.ObjectKey) ([][]byte, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := c.garden.Get(ctx, key, bastion); err != nil {
		return nil, fmt.Errorf("reading the bastion %s: %w", key, err)
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: bastion.Spec.ShootRef.Name}}
	return c.NodeKeys(ctx, shoot)
}
