package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/sshclient"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// The flag of commands that run an admission controller.
const (
	readsFlag  = "seed-authorizer-reads"
	readsUsage = "what gardenlets and extensions may read of Bastions, ControllerInstallations, Gardenlets, " +
		"ManagedSeeds, Seeds and Shoots: seed (those of their seed, as in Gardener) or all"
	resourceAdmissionFlag  = "resource-admission-configuration"
	resourceAdmissionUsage = "file with limits of the sizes and numbers of resources, as resourceAdmissionConfiguration of Gardener's " +
		"admission controller"
)

// The flag of commands that run a Stack Manager.
const (
	loopbackRegistryFlag  = "allow-loopback-registry"
	loopbackRegistryUsage = "read packages of stacks from registries on loopback addresses too; users who may install " +
		"stacks then reach what listens there"
)

type upFlags struct {
	config     landscape.Config
	detach     bool
	file       string
	progressFD int
	images     []string
	context    bool
	// given has the names of the flags that were set.
	given map[string]bool
}

// optionFlags are the flags whose values are kept while the landscape runs, for differences. --datastore is not
// among them: its value can contain a password.
var optionFlags = []string{
	"bind-address", "seeds", "apply", "run-image", "controllers", "audit-log", "shoot-admin-kubeconfig-max-expiration",
	"shoot-viewer-kubeconfig-max-expiration", "shoot-kubeconfig-key-algorithm", "bastion-time-to-live", "bastion-max-lifetime",
	resourceAdmissionFlag, readsFlag, loopbackRegistryFlag, bareFlag, enableAdmissionFlag, disableAdmissionFlag, featureGatesFlag,
}

// readOptions records which flags were set, and the values of optionFlags.
func (u *upFlags) readOptions(cmd *cobra.Command) {
	u.given, u.config.Options = map[string]bool{}, map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { u.given[f.Name] = true })
	for _, name := range optionFlags {
		u.config.Options[name] = cmd.Flags().Lookup(name).Value.String()
	}
}

// keepPort sets the port to 0 if the last start chose a free port for --port 0 and --port is not set now. The
// landscape then takes the same port again.
func (u *upFlags) keepPort() {
	if previous, err := statedir.ReadRun(u.config.Dir); err == nil && previous.PortChosen && !u.given["port"] {
		u.config.Port = 0
	}
}

// differences returns the flags that were set to other values than those of the running landscape.
func (u *upFlags) differences(running statedir.Run) (all []string) {
	for _, name := range optionFlags {
		is, known := running.Options[name]
		if wanted := u.config.Options[name]; known && u.given[name] && wanted != is {
			all = append(all, fmt.Sprintf("--%s is %s, not %s", name, is, wanted))
		}
	}
	if u.given["port"] && u.config.Port != 0 && u.config.Port != running.Port {
		all = append(all, fmt.Sprintf("--port is %d, not %d", running.Port, u.config.Port))
	}
	if wanted := landscape.DatastoreKind(u.config.Datastore); u.given["datastore"] && wanted != running.Datastore {
		all = append(all, fmt.Sprintf("--datastore is %s, not %s", running.Datastore, wanted))
	}
	return all
}

func addReadsFlag(cmd *cobra.Command, reads *server.Reads) {
	cmd.Flags().StringVar((*string)(reads), readsFlag, string(server.DefaultReads), readsUsage)
	_ = cmd.RegisterFlagCompletionFunc(readsFlag, cobra.FixedCompletions([]string{"seed", "all"},
		cobra.ShellCompDirectiveNoFileComp))
}

func newUp(g *globals) *cobra.Command {
	flags := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the landscape",
		Long: `Start the landscape and stay in the foreground until Ctrl-C. With --detach it goes on in the background.
On a landscape that is running already, up says so and ends with 0, or with 1 if it was started with other flags.
It waits a minute at most for a process that held the landscape before and has not ended yet.`,
		Example: `  # Start, and use it from another terminal
  gardenlite up
  # Start in the background on a free port
  gardenlite up -d --port 0
  # As kind does: with a context in your own kubeconfig, which is the current one until "gardenlite reset"
  gardenlite up -d --kubeconfig-context
  # A second landscape beside the first, with manifests applied once it is ready
  gardenlite up --name test --port 7443 --apply ./manifests
  # A landscape that begins as one that was saved
  gardenlite up --name demo --port 0 --from landscape.tar.zst
  # The same from a file, which holds flags by their names: {name: test, port: 7443, apply: [./manifests]}
  gardenlite up -f landscape.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.file != "" {
				if err := applyFile(cmd, flags.file); err != nil {
					return &exitError{exitUsage, err}
				}
			}
			completeBare(cmd, &flags.config)
			if err := completeFrom(cmd, &flags.config); err != nil {
				return err
			}
			flags.readOptions(cmd)
			return flags.run(cmd.Context(), g)
		},
	}
	c := &flags.config
	f := cmd.Flags()
	f.BoolVarP(&flags.detach, "detach", "d", false, "go on in the background; returns when the landscape is ready")
	f.StringVarP(&flags.file, "filename", "f", "",
		"YAML file with values for these flags by their names; what the command line says counts more")
	f.IntVar(&c.Port, "port", landscape.DefaultPort, "port of the garden's API server; 0 takes a free one")
	f.StringVar(&c.BindAddress, "bind-address", landscape.DefaultBindAddress,
		"IP address to listen on; beyond loopback others can reach the landscape")
	f.IntVar(&c.Seeds, "seeds", landscape.DefaultSeeds, "how many seeds to start (0: the garden alone)")
	f.StringVar(&c.Datastore, "datastore", "sqlite",
		"where the data is: sqlite, memory, or a URL (postgres://, mysql://, and http:// or https:// for etcd)")
	f.StringArrayVar(&c.Apply, "apply", nil,
		"directory or file with manifests to apply once the landscape is ready; can be given several times")
	f.StringArrayVar(&flags.images, "run-image", nil, "run containers of an image as a process: REFERENCE=PROGRAM [ARGUMENT…]; "+
		"users who may create Pods with it can run the program with arguments of their choice, as you; can be given several times")
	f.StringSliceVar(&c.Controllers, "controllers", []string{"*"},
		"controllers to run: '*' for all, NAME for one, -NAME for all but one, '' for none")
	_ = cmd.RegisterFlagCompletionFunc("controllers", completeControllers)
	f.DurationVar(&c.ReadyTimeout, "ready-timeout", landscape.DefaultReadyTimeout, "how long the start may take")
	f.StringVar(&c.AuditLog, "audit-log", "",
		"file for the audit log of the garden's API server: who asked for what, nothing of what was in it; those of seeds go to FILE.seed-NAME")
	_ = f.MarkHidden("audit-log")
	_ = cmd.MarkFlagFilename("audit-log")
	f.StringVar(&c.ResourceAdmission, resourceAdmissionFlag, "", resourceAdmissionUsage)
	_ = cmd.MarkFlagFilename(resourceAdmissionFlag)
	addReadsFlag(cmd, &c.Reads)
	addGardenFlags(cmd, c)
	addFromFlag(cmd, c)
	f.BoolVar(&c.LoopbackRegistry, loopbackRegistryFlag, false, loopbackRegistryUsage)
	f.DurationVar(&c.Kubeconfigs.MaxAdmin, "shoot-admin-kubeconfig-max-expiration", landscape.DefaultMaxKubeconfigExpiration,
		"how long kubeconfigs for administrators of shoots are valid at most (1h to 2^32 seconds)")
	f.DurationVar(&c.Kubeconfigs.MaxViewer, "shoot-viewer-kubeconfig-max-expiration", landscape.DefaultMaxKubeconfigExpiration,
		"how long kubeconfigs for viewers of shoots are valid at most (1h to 2^32 seconds)")
	f.StringVar((*string)(&c.Kubeconfigs.Algorithm), "shoot-kubeconfig-key-algorithm", "rsa", "algorithm of the private "+
		"keys in kubeconfigs for shoots: rsa, as Gardener, or ecdsa, which is faster but which gardenlogin does not read")
	_ = cmd.RegisterFlagCompletionFunc("shoot-kubeconfig-key-algorithm",
		cobra.FixedCompletions([]string{"rsa", "ecdsa"}, cobra.ShellCompDirectiveNoFileComp))
	f.DurationVar(&c.SeedMonitorPeriod, "seed-monitor-period", landscape.DefaultSeedMonitorPeriod,
		"how long a gardenlet may be without a heartbeat before it counts as lost")
	_ = f.MarkHidden("seed-monitor-period")
	f.DurationVar(&c.BastionTimeToLive, "bastion-time-to-live", landscape.DefaultBastionTimeToLive,
		"how long a Bastion lives after it was created or kept alive (10s to 24h)")
	f.DurationVar(&c.BastionMaxLifetime, "bastion-max-lifetime", landscape.DefaultBastionMaxLifetime,
		"how long a Bastion lives at most, however often it is kept alive (10s to 720h)")
	addContextFlag(cmd, &flags.context)
	f.IntVar(&flags.progressFD, "progress-fd", 0, "")
	_ = f.MarkHidden("progress-fd")
	_ = cmd.MarkFlagDirname("apply")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.RegisterFlagCompletionFunc("datastore", cobra.FixedCompletions([]string{"sqlite", "memory", "postgres://",
		"mysql://", "https://"}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// completeControllers completes the last controller of a list, with and without "-".
func completeControllers(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	for _, name := range append([]string{"*"}, landscape.ControllerNames()...) {
		all = append(all, before+name, before+"-"+name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// parseImages parses the values of --run-image.
func parseImages(texts []string) (images []process.Image, err error) {
	for _, text := range texts {
		image, err := process.ParseImage(text)
		if err != nil {
			return nil, usage.Errorf("--run-image: %w", err)
		}
		images = append(images, image)
	}
	return images, nil
}

func (u *upFlags) run(ctx context.Context, g *globals) error {
	c := &u.config
	c.Name, c.Dir, c.LogFormat, c.Verbose = g.name, g.dataDir, g.logFormat, g.verbose
	var err error
	if c.Images, err = parseImages(u.images); err != nil {
		return err
	}
	if err := c.Complete(); err != nil {
		return err
	}
	u.keepPort()
	if ip := net.ParseIP(c.BindAddress); !ip.IsLoopback() && u.progressFD == 0 {
		printf(g.err, "WARNING: the landscape listens on %s: its API server can be reached from other machines.\n",
			c.BindAddress)
	}
	if err := statedir.Prepare(c.Dir); err != nil {
		return err
	}
	for {
		free, err := control.AwaitFormer(ctx, c.Dir, func() {
			printf(g.err, "Waiting for the former process of landscape %q to end …\n", c.Name)
		})
		if err != nil {
			return err
		}
		if free {
			break
		}
		if err := u.alreadyRunning(ctx, g); !errors.Is(err, statedir.ErrNotRunning) { // else it was stopped meanwhile
			return err
		}
	}
	if u.detach {
		return u.runDetached(ctx, g)
	}
	progress := newProgress(g, u.progressFD)
	defer progress.close()
	c.OnEvent = progress.event
	begin := time.Now()
	progress.begin("Starting landscape " + c.Name)
	l, err := landscape.Start(ctx, *c)
	if errors.Is(err, statedir.ErrLocked) {
		progress.close()
		return u.alreadyRunning(ctx, g)
	}
	if err != nil {
		progress.fail(err)
		return err
	}
	progress.ready(time.Since(begin))
	if u.progressFD == 0 {
		u.printReady(g, l.Status())
		printLine(g.err, "Ctrl-C stops it; its data stays.")
	}
	select {
	case <-ctx.Done():
		if u.progressFD == 0 {
			printf(g.err, "\nStopping …\n")
		}
	case <-l.Done():
	}
	return l.Stop()
}

// runDetached starts gardenlite again in the background and follows its start through a pipe.
func (u *upFlags) runDetached(ctx context.Context, g *globals) error {
	// The process in the background reads the file again.
	if info, err := os.Stat(u.file); err == nil && !info.Mode().IsRegular() {
		return usage.Errorf("--filename %s: --detach needs a regular file, not a pipe or a device", u.file)
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program to start it in the background: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe to the background: %w", err)
	}
	defer reader.Close()
	// The last value of a flag counts.
	args := append(slices.Clone(os.Args[1:]), "--detach=false", "--progress-fd=3", "--data-dir="+u.config.Dir)
	child := exec.Command(executable, args...)
	child.ExtraFiles = []*os.File{writer}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	_ = writer.Close()
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}

	progress := newProgress(g, 0)
	defer progress.close()
	progress.begin("Starting landscape " + u.config.Name)
	interrupted := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	messages := json.NewDecoder(reader) // a message can be long: the error of --apply has a line for each manifest
	for {
		var message progressMessage
		if err := messages.Decode(&message); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return fmt.Errorf("following the start in the background: %w", err)
		}
		switch {
		case message.Ready != 0:
			progress.ready(message.Ready)
			return u.printDetached(ctx, g)
		case message.Error != "":
			_ = child.Wait()
			progress.close()
			return errors.New(message.Error)
		case message.Event != nil:
			progress.event(*message.Event)
		}
	}
	err = child.Wait()
	progress.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil { // another process was faster, and the child found the landscape running
		return u.alreadyRunning(ctx, g)
	}
	return fmt.Errorf("the process in the background ended before the landscape was ready: %w; the log may say why: %s/gardenlite.log",
		err, u.config.Dir)
}

func (u *upFlags) printDetached(ctx context.Context, g *globals) error {
	client, err := control.Connect(u.config.Dir)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx, false)
	if err != nil {
		return err
	}
	u.printReady(g, *status)
	printf(g.err, "It runs in the background (process %d); \"gardenlite down%s\" stops it.\n", status.PID, g.nameFlag())
	return nil
}

// alreadyRunning waits until the landscape of another process is ready, and prints its address. It returns an error
// if that landscape was started with other flags.
func (u *upFlags) alreadyRunning(ctx context.Context, g *globals) error {
	waitCtx, cancel := context.WithTimeout(ctx, u.config.ReadyTimeout)
	defer cancel()
	status, err := control.WaitReady(waitCtx, u.config.Dir)
	if err != nil {
		return fmt.Errorf("another process holds landscape %q: %w", u.config.Name, err)
	}
	printf(g.out, "Landscape %q is running already (process %d).\n", status.Name, status.PID)
	if all := u.differences(status.Run); len(all) > 0 {
		return fmt.Errorf("landscape %q was started with other flags: %s. \"gardenlite down%s\" stops it, then up starts it with these",
			status.Name, strings.Join(all, "; "), g.nameFlag())
	}
	u.printReady(g, *status)
	return nil
}

func (u *upFlags) printReady(g *globals, status control.Status) {
	isCurrent := u.context && setContext(g, status.Kubeconfig)
	printf(g.out, `
Garden      %s
Kubeconfig  %s
`, status.URL, status.Kubeconfig)
	if status.Log != "" {
		printf(g.out, "Log         %s\n", status.Log)
	}
	printf(g.out, "\nType next:\n")
	if !isCurrent {
		printf(g.out, "  export KUBECONFIG=%s\n", sshclient.Quote(status.Kubeconfig))
	}
	printLine(g.out, "  kubectl get cloudprofiles,projects")
	if slices.ContainsFunc(status.Clusters, func(c control.Cluster) bool { return c.Kind == "seed" }) {
		printf(g.out, "  gardenlite%s shoot create my-shoot --wait\n", g.nameFlag())
	}
}
