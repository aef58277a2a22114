package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newAdmissionController(g *globals) *cobra.Command {
	c := server.StandaloneConfig{}
	cmd := &cobra.Command{
		Use:   "admission-controller --kubeconfig FILE",
		Short: "Run the admission controller alone, for a garden elsewhere",
		Long: `Run SeedAuthorizer and SeedRestriction alone, for a garden elsewhere, until Ctrl-C. (A landscape started with
"gardenlite up" has its own.)

The garden's kube-apiserver has to ask it: --write-config writes the files that it is started with, --install writes the
ValidatingWebhookConfiguration. Do the first, restart the kube-apiserver, then the second: until the kube-apiserver has the
client certificate from these files, the webhook refuses it, and so all gardenlets' changes are refused.

Without --tls-cert-file it makes an authority of its own, a serving certificate and a client certificate for the
kube-apiserver, in --data-dir (default $XDG_STATE_HOME/gardenlite/admission-controller-NAME).`,
		Example: `  # First the files, and the kube-apiserver with the flags that are printed
  gardenlite admission-controller --kubeconfig garden.kubeconfig --write-config ./webhooks
  # Then the admission webhook as well
  gardenlite admission-controller --kubeconfig garden.kubeconfig --write-config ./webhooks --install
  # On another machine than the kube-apiserver
  gardenlite admission-controller --kubeconfig garden.kubeconfig --bind-address 192.0.2.7 --port 9443 --write-config ./webhooks`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAdmissionController(cmd.Context(), g, c) },
	}
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig for the garden (required)")
	f.StringVar(&c.BindAddress, "bind-address", landscape.DefaultBindAddress, "IP address to listen on; beyond loopback others can reach it")
	f.StringVar(&c.AdvertiseAddress, "advertise-address", "",
		"name or IP address under which the garden's kube-apiserver reaches it (default --bind-address)")
	f.IntVar(&c.Port, "port", 0, "port to listen on; 0 takes a free one, and the same one again at the next start")
	f.StringVar(&c.CertFile, "tls-cert-file", "", "serving certificate (default: one of its own)")
	f.StringVar(&c.KeyFile, "tls-private-key-file", "", "key of the serving certificate")
	f.StringVar(&c.CAFile, "tls-ca-file", "", "authority that signed the serving certificate (default: the certificate itself)")
	f.StringVar(&c.ClientCAFile, "client-ca-file", "", "authorities of those who may ask; with certificates of its own, its own authority")
	f.BoolVar(&c.Debug, "debug", false, "serve the page with the graph of dependencies")
	f.StringVar(&c.WriteConfig, "write-config", "", "folder to write the files to that the garden's kube-apiserver needs")
	f.BoolVar(&c.Install, "install", false, "write the configurations of the webhooks into the garden, as the user of --kubeconfig")
	f.StringVar(&c.ResourceAdmission, resourceAdmissionFlag, "", resourceAdmissionUsage)
	_ = cmd.MarkFlagFilename(resourceAdmissionFlag)
	addReadsFlag(cmd, &c.Reads)
	for _, name := range []string{"kubeconfig", "tls-cert-file", "tls-private-key-file", "tls-ca-file", "client-ca-file"} {
		_ = cmd.MarkFlagFilename(name)
	}
	_ = cmd.MarkFlagDirname("write-config")
	return cmd
}

func runAdmissionController(ctx context.Context, g *globals, c server.StandaloneConfig) (err error) {
	c.Dir = g.dataDir
	if c.Dir == "" {
		if c.Dir, err = statedir.DefaultDir("admission-controller-" + g.name); err != nil {
			return err
		}
	}
	if ip := net.ParseIP(c.BindAddress); ip != nil && !ip.IsLoopback() {
		printf(g.err, "WARNING: the admission controller listens on %s: all who reach this machine reach it.\n",
			c.BindAddress)
	}
	c.OnWait = func(missing string) { printLine(g.err, "Still waiting for", missing) }
	c.OnReady = func(s server.StandaloneStatus) { printAdmission(g, s) }
	if err := serveAdmission(ctx, g, c); err != nil {
		return err
	}
	printLine(g.err,
		"Stopped. Until it runs again, gardenlets are allowed what RBAC allows them, and nothing that the webhook has to look at.")
	return nil
}

// serveAdmission runs the admission controller until the context ends. It locks the state directory, and writes the log there.
func serveAdmission(ctx context.Context, g *globals, c server.StandaloneConfig) (err error) {
	alone, err := server.NewStandalone(ctx, c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Dir, statedir.RunFile)); err == nil {
		return usage.Errorf("--data-dir %s is a landscape's, which has an admission controller of its own: choose another", c.Dir)
	}
	if err := statedir.Prepare(c.Dir); err != nil {
		return err
	}
	held, err := statedir.Lock(c.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w: choose another --name or --data-dir", c.Dir, err)
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	logs, err := control.StartLogging(control.LogConfig{Dir: c.Dir, Format: g.logFormat, Verbose: g.verbose})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	return alone.Run(ctx)
}

func printAdmission(g *globals, s server.StandaloneStatus) {
	printf(g.out, "Garden    %s\nServes    %s\nGraph     %d objects, %d edges\nData      %s\n", s.Garden, s.URL,
		s.Vertices, s.Edges, s.Dir)
	if s.Page != "" {
		printf(g.out, "Page      %s\n", s.Page)
	}
	if s.Open {
		printLine(g.err, "WARNING: without --client-ca-file every user of this machine may ask what gardenlets may do.")
	}
	if len(s.Args) > 0 {
		printf(g.out, "\nStart the garden's kube-apiserver with these flags, the first instead of --authorization-mode:\n")
		for _, arg := range s.Args {
			printf(g.out, "  %s\n", arg)
		}
	}
	for _, file := range s.MissingClient {
		printLine(g.out, "Put there a client certificate that --client-ca-file has signed:", file)
	}
	if s.Installed {
		printf(g.out, "\nThe configurations of the webhooks are installed.\n")
	} else {
		printf(g.out,
			"\nThe configurations of the webhooks are not installed: do it with --install, once the kube-apiserver "+
				"has these flags.\n")
	}
	printLine(g.err, "Ctrl-C stops it.")
}
