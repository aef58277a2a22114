package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/sshclient"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	// defaultSSHTimeout is how long the command waits for a bastion.
	defaultSSHTimeout = 2 * time.Minute
	// exitConnectionLost is the exit code of ssh if it does not know how the command ended.
	exitConnectionLost = 255
	// exitHangUp is what shells expect of a process whose terminal went away.
	exitHangUp = 129

	printCommand = "proxycommand"
	printJump    = "proxyjump"
)

type sshFlags struct {
	keep, tty, config, noInput       bool
	bastion, publicFile, privateFile string
	print                            string
	cidrs, forwards                  []string
	timeout                          time.Duration
	shoot, node                      string
	command                          []string
	dir                              string
	parsed                           []sshclient.Forward
}

func newSSH(g *globals) *cobra.Command {
	flags := &sshFlags{}
	cmd := &cobra.Command{
		Use:   "ssh [flags] PROJECT/SHOOT [NODE] [-- COMMAND...]",
		Short: "Log in to a node of a shoot, through a bastion",
		Long: `Make a key pair that is used once and a Bastion for it in the garden, wait for it, and go through it to a node of the
shoot: to the first one that is ready, or to NODE, which is a name, or its beginning or end. There is a shell, or COMMAND runs,
and its exit status is passed on (255 if the connection was lost). The bastion is kept alive meanwhile and deleted afterwards.

With --print or --config nothing runs: the bastion stays, and what OpenSSH needs is written into the landscape's folder, with
the private keys. The bastion expires unless it is kept alive.`,
		Example: `  gardenlite ssh dev/my-shoot
  gardenlite ssh dev/my-shoot -- systemctl status kubelet
  while read node; do gardenlite ssh -n dev/my-shoot "$node" -- uptime; done < nodes
  gardenlite ssh dev/my-shoot x7k2p -L 2222:10.0.0.3:22
  gardenlite ssh dev/my-shoot --keep-bastion
  gardenlite ssh dev/my-shoot --bastion cli-abcdefgh
  $(gardenlite ssh dev/my-shoot --print=proxyjump)
  eval "$(gardenlite ssh dev/my-shoot --print)"`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names = dash
			}
			if names < 1 || names > 2 {
				return errors.New("say which shoot, and maybe which node, before --: ssh PROJECT/SHOOT [NODE] [-- COMMAND...]")
			}
			return nil
		},
		ValidArgsFunction: completeArgs(completeShoots(g, ""),
			func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				return completeNames(func(ctx context.Context) []string { return nodeNames(ctx, g, args[0]) })(cmd, args, typed)
			}),
		RunE: func(cmd *cobra.Command, args []string) error {
			names := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, flags.command = args[:dash], args[dash:]
			}
			flags.shoot = names[0]
			if len(names) > 1 {
				flags.node = names[1]
			}
			if err := flags.check(cmd.Flags().Changed("cidr")); err != nil {
				return &usage.Error{Err: err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
			defer stop()
			err := flags.run(ctx, g)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				return &exitError{exitHangUp, errors.New("the terminal is gone")}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.keep, "keep-bastion", false, "leave the bastion and its key when the session ends; it expires by itself")
	f.StringVar(&flags.bastion, "bastion", "",
		"go through a bastion that there is, and leave it; needs --private-key-file unless it was kept by this command")
	f.StringArrayVar(&flags.cidrs, "cidr", []string{"127.0.0.0/8"}, "range of addresses that the bastion lets in; can be given several times")
	f.StringVar(&flags.publicFile, "public-key-file", "", "public key for the bastion instead of one that is made for it")
	f.StringVar(&flags.privateFile, "private-key-file", "", "private key for the bastion instead of one that is made for it")
	f.StringVar(&flags.print, "print", "", "print the ssh command line that does the same: proxycommand (default) or proxyjump")
	f.Lookup("print").NoOptDefVal = printCommand
	f.BoolVar(&flags.config, "config", false, "write entries for ~/.ssh/config, one for each node, and print the file's name")
	f.StringArrayVarP(&flags.forwards, "forward", "L", nil,
		"[ADDRESS:]PORT:HOST:HOSTPORT, forward a port as ssh -L does; can be given several times")
	f.BoolVarP(&flags.tty, "tty", "t", false, "give the command a terminal")
	f.BoolVarP(&flags.noInput, "no-input", "n", false, "give the command no standard input, as ssh -n does")
	f.DurationVar(&flags.timeout, "timeout", defaultSSHTimeout, "how long to wait for the bastion")
	cmd.MarkFlagsMutuallyExclusive("print", "config")
	_ = cmd.RegisterFlagCompletionFunc("print", cobra.FixedCompletions([]string{printCommand, printJump}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("bastion", cobra.NoFileCompletions)
	return cmd
}

// check validates the flags and parses the forwards. cidr tells whether --cidr was given.
func (s *sshFlags) check(cidr bool) error {
	if s.print != "" && s.print != printCommand && s.print != printJump {
		return fmt.Errorf("--print=%s: %s or %s", s.print, printCommand, printJump)
	}
	if s.bastion != "" && cidr {
		return errors.New("--cidr is for a new bastion: the creator of an existing one changes its spec.ingress with kubectl")
	}
	if s.bastion != "" && s.bastion != strings.Trim(s.bastion, "./\\ ") || strings.ContainsAny(s.bastion, "/\\") {
		return fmt.Errorf("--bastion %q is no name", s.bastion)
	}
	for _, text := range s.forwards {
		forward, err := sshclient.ParseForward(text)
		if err != nil {
			return err
		}
		s.parsed = append(s.parsed, forward)
	}
	return nil
}

// printsOnly reports whether the command only prints how OpenSSH connects.
func (s *sshFlags) printsOnly() bool { return s.print != "" || s.config }

// files reports whether the bastion has a folder for its keys.
func (s *sshFlags) files() bool { return s.printsOnly() || s.keep || s.bastion != "" }

// nodeNames returns the names of a shoot's nodes, for completion.
func nodeNames(ctx context.Context, g *globals, shoot string) (names []string) {
	key, err := shootKey(shoot, defaultProject)
	if err != nil {
		return nil
	}
	client, err := g.sshClient(ctx)
	if err != nil {
		return nil
	}
	nodes, _ := client.Nodes(ctx, key) // after an error, nothing is completed
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}

// sshClient returns a client for the landscape's Bastions, as the administrator.
func (g *globals) sshClient(ctx context.Context) (*sshclient.Client, error) {
	config, proxy, err := g.garden(ctx)
	if err != nil {
		return nil, err
	}
	return sshclient.New(config, proxy, clock.RealClock{})
}
