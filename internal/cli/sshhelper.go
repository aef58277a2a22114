package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/sshclient"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// newSSHHelper returns the command that OpenSSH runs with a configuration of "ssh --config" or "ssh --print".
func newSSHHelper(g *globals) *cobra.Command {
	helper := &cobra.Command{Use: "ssh-helper", Short: "What OpenSSH runs on the way through a bastion", Hidden: true}
	helper.AddCommand(&cobra.Command{
		Use:  "keys NAMESPACE/BASTION",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, key, err := g.bastionClient(cmd, args[0])
			if err != nil {
				return err
			}
			keys, err := client.CurrentNodeKeys(cmd.Context(), key)
			if err != nil {
				return err
			}
			dir, err := g.dir()
			if err != nil {
				return err
			}
			return sshclient.WriteNodeKeys(statedir.BastionDir(dir, key.Name), keys)
		},
	}, &cobra.Command{
		Use:  "proxy NAMESPACE/BASTION HOST PORT",
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, key, err := g.bastionClient(cmd, args[0])
			if err != nil {
				return err
			}
			report := func(err error) { printf(g.err, "gardenlite: %s\r\n", err) }
			return client.Proxy(cmd.Context(), key, net.JoinHostPort(args[1], args[2]), g.in, g.out, report)
		},
	})
	return helper
}

// bastionClient returns a client for the garden, and the key of the Bastion that the argument names.
func (g *globals) bastionClient(cmd *cobra.Command, text string) (*sshclient.Client, types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if !ok || name == "" || strings.ContainsAny(name, `/\.`) {
		return nil, key, usage.Errorf("%q is not NAMESPACE/BASTION", text)
	}
	client, err := g.sshClient(cmd.Context())
	return client, key, err
}

// sshHelper returns the command line of the helper for this landscape.
func (g *globals) sshHelper(dir string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, which OpenSSH runs: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("finding the landscape's folder: %w", err)
	}
	return []string{program, "ssh-helper", "--name", g.name, "--data-dir", dir}, nil
}
