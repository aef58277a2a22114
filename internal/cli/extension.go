package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gardenlite/gardenlite/internal/garden/extensionclient"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const defaultExtensionTimeout = 2 * time.Minute

func newExtension(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Install extensions, and run their controllers as processes",
		Long: `An extension reconciles extension resources of some kinds and types in the seeds. It is installed from its Helm chart, as in
Gardener, and its controllers are simulated unless their images are mapped to programs of this machine.`,
	}
	cmd.AddCommand(newExtensionInstall(g), newExtensionList(g), newExtensionDescribe(g), newExtensionLogs(g), newExtensionUninstall(g))
	return cmd
}

// extensionClient returns a client for the extensions of the landscape, as the administrator.
func (g *globals) extensionClient(ctx context.Context) (*extensionclient.Client, error) {
	config, err := g.gardenConfig(ctx)
	if err != nil {
		return nil, err
	}
	return extensionclient.New(config, g.seedConfig)
}

// extension returns a client for the extensions of the landscape, and one of them.
func (g *globals) extension(ctx context.Context, name string) (*extensionclient.Client, *extensionclient.Extension, error) {
	client, err := g.extensionClient(ctx)
	if err != nil {
		return nil, nil, err
	}
	e, err := client.Find(ctx, name)
	return client, e, err
}

// seedConfig returns the administrator's client configuration for a seed.
func (g *globals) seedConfig(ctx context.Context, seed string) (*rest.Config, error) {
	dir, err := g.dir()
	if err != nil {
		return nil, err
	}
	read := seedKubeconfig
	if slices.Contains(statedir.LocalSeeds(dir), seed) {
		read = func(_ context.Context, _ *globals, dir, seed string) (*clientcmdapi.Config, error) {
			return readKubeconfig(statedir.SeedKubeconfigPath(dir, seed), seed)
		}
	}
	config, err := read(ctx, g, dir, seed)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// completeExtension completes the names of extensions.
func completeExtension(g *globals) cobra.CompletionFunc {
	return completeArgs(completeNames(func(ctx context.Context) (names []string) {
		client, err := g.extensionClient(ctx)
		if err != nil {
			return nil
		}
		all, _ := client.List(ctx) // after an error, nothing is completed
		for _, e := range all {
			names = append(names, e.Name)
		}
		return names
	}))
}

// extensionFlags are the flags of "gardenlite extension install" and uninstall.
type extensionFlags struct {
	name, output             string
	types, run               []string
	onDemand, garden, noWait bool
	timeout                  time.Duration
}

func newExtensionInstall(g *globals) *cobra.Command {
	flags := extensionFlags{}
	cmd := &cobra.Command{
		Use:   "install CHART --type KIND/TYPE",
		Short: "Install an extension, or change it",
		Long: `Install an extension from its chart: a folder, an archive that helm package makes, or a reference to a registry. It becomes a
ControllerDeployment and a ControllerRegistration of the chart's name, which the gardenlets of all seeds install.

With --run, its controller is a program of this machine, which is started again each time. Without, it is simulated: nothing
reconciles its resources.`,
		Example: `  # From nothing to a controller that runs, with its chart in a folder
  gardenlite extension install charts/my-extension --type Extension/my-extension --run ./bin/my-extension
  # Two kinds, and a chart with two images
  gardenlite extension install charts/os --type OperatingSystemConfig/my-os --type Extension/my-os \
    --run registry.example.com/os=./bin/os --run registry.example.com/os-webhook=./bin/webhook`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.install(cmd.Context(), g, args[0]) },
	}
	cmd.Flags().StringVar(&flags.name, "as", "", "name of the extension (default: that of its chart)")
	cmd.Flags().StringArrayVar(&flags.types, "type", nil,
		"KIND/TYPE of the extension resources that it reconciles; can be given several times")
	_ = cmd.MarkFlagRequired("type")
	_ = cmd.RegisterFlagCompletionFunc("type", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		kinds := extensionclient.Kinds()
		for i := range kinds {
			kinds[i] += "/"
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	cmd.Flags().StringArrayVar(&flags.run, "run", nil,
		"program that the controller runs: PROGRAM, or IMAGE=PROGRAM if the chart has several images; can be given several times")
	cmd.Flags().BoolVar(&flags.onDemand, "on-demand", false, "install it only in seeds with extension resources of its types")
	cmd.Flags().BoolVar(&flags.garden, "garden-access", false, "give its workloads a kubeconfig for the garden")
	cmd.Flags().BoolVar(&flags.noWait, "no-wait", false, "do not wait until it is ready")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", defaultExtensionTimeout, "how long to wait")
	addOutputFlag(cmd, &flags.output, "text", "name", "json", "yaml")
	return cmd
}

func (f *extensionFlags) install(ctx context.Context, g *globals, chart string) error {
	spec := extensionclient.Spec{OnDemand: f.onDemand, InjectGardenKubeconfig: f.garden}
	for _, text := range f.types {
		t, err := extensionclient.ParseType(text)
		if err != nil {
			return usage.Errorf("--type %w", err)
		}
		spec.Types = append(spec.Types, t)
	}
	images, err := f.images()
	if err != nil {
		return err
	}
	var name string
	if spec.Helm, name, err = extensionclient.ReadChart(chart); err != nil {
		return &usage.Error{Err: err}
	}
	spec.Name = cmp.Or(f.name, name)
	client, err := g.extensionClient(ctx)
	if err != nil {
		return err
	}
	if f.noWait {
		if _, err := mapPrograms(ctx, g, f.run, images); err != nil {
			return err
		}
	}
	if err := client.Install(ctx, spec); err != nil {
		return err
	}
	if f.noWait {
		return f.print(g, &extensionclient.Extension{Name: spec.Name}, "is being installed")
	}
	var e *extensionclient.Extension
	err = waitFor(ctx, g, f.timeout, "Installing the extension "+spec.Name, func(ctx context.Context, report func(string)) error {
		if e, err = client.Wait(ctx, spec.Name, report); err != nil || len(f.run) == 0 {
			return err
		}
		found, err := client.Images(ctx, e)
		if err != nil {
			return err
		}
		run, err := mapPrograms(ctx, g, f.run, found)
		if err != nil {
			return err
		}
		if err := client.Restart(ctx, e, run); err != nil {
			return err
		}
		return client.WaitPrograms(ctx, e, run, report)
	})
	if err != nil {
		return err
	}
	return f.print(g, e, "is ready")
}

// images checks the values of --run before anything is installed, and returns the images that they name.
func (f *extensionFlags) images() (images []string, err error) {
	for _, text := range f.run {
		isNamed := strings.Contains(text, "=")
		if !isNamed {
			text = "any=" + text
		}
		image, err := process.ParseImage(text)
		if err != nil {
			return nil, usage.Errorf("--run: %w", err)
		}
		if isNamed {
			images = append(images, image.Reference)
		}
	}
	if len(images) < len(f.run) && len(f.run) > 1 {
		return nil, usage.Errorf("--run: say which image each program is for, with IMAGE=PROGRAM")
	}
	if f.noWait && len(images) < len(f.run) {
		return nil, usage.Errorf("--no-wait needs --run IMAGE=PROGRAM: the images of the chart are known when it is installed")
	}
	return images, nil
}

func (f *extensionFlags) print(g *globals, e *extensionclient.Extension, state string) error {
	return printAs(g.out, f.output, e, func() {
		if f.output == "name" {
			printLine(g.out, e.Name)
			return
		}
		seeds := make([]string, 0, len(e.Installations))
		for _, i := range e.Installations {
			seeds = append(seeds, i.Seed)
		}
		if len(seeds) > 0 {
			state += " in the seeds " + strings.Join(seeds, ", ")
		}
		printf(g.out, "The extension %s %s.\n", e.Name, state)
	})
}

func newExtensionList(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the extensions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := g.extensionClient(cmd.Context())
			if err != nil {
				return err
			}
			all, err := client.List(cmd.Context())
			if err != nil {
				return err
			}
			return printAs(g.out, output, all, func() {
				var rows [][]string
				for _, e := range all {
					ready := 0
					for _, i := range e.Installations {
						if i.Ready {
							ready++
						}
					}
					rows = append(rows, []string{e.Name, strings.Join(e.Types, ","), fmt.Sprintf("%d/%d", ready, len(e.Installations))})
				}
				table(g.out, "NAME | TYPES | READY", rows)
			})
		},
	}
	addOutputFlag(cmd, &output, "table", "json", "yaml")
	return cmd
}

func newExtensionDescribe(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:               "describe NAME",
		Short:             "Show an extension in each seed, and what runs its containers",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeExtension(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, e, err := g.extension(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			containers, err := client.Containers(cmd.Context(), e)
			if err != nil {
				return err
			}
			described := struct {
				*extensionclient.Extension
				Containers []extensionclient.Container `json:"containers"`
			}{e, containers}
			return printAs(g.out, output, described, func() { printExtension(g, e, containers) })
		},
	}
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func printExtension(g *globals, e *extensionclient.Extension, containers []extensionclient.Container) {
	printf(g.out, "Name:   %s\nTypes:  %s\n", e.Name, strings.Join(e.Types, ", "))
	var rows [][]string
	for _, i := range e.Installations {
		for _, c := range i.Conditions {
			rows = append(rows, []string{i.Seed, i.Name, string(c.Type), string(c.Status), c.Message})
		}
	}
	printLine(g.out)
	table(g.out, "SEED | INSTALLATION | CONDITION | STATUS | MESSAGE", rows)
	rows = nil
	for _, c := range containers {
		program := c.Program
		if c.Simulated {
			program = "(simulated)"
		}
		rows = append(rows, []string{c.Seed, c.Pod, c.Name, c.Image, program, c.State})
	}
	printLine(g.out)
	table(g.out, "SEED | POD | CONTAINER | IMAGE | PROGRAM | STATE", rows)
}

func newExtensionLogs(g *globals) *cobra.Command {
	options := corev1.PodLogOptions{}
	var since time.Duration
	cmd := &cobra.Command{
		Use:               "logs NAME",
		Short:             "Print the logs of an extension's controllers",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeExtension(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, e, err := g.extension(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if since > 0 {
				seconds := int64(since.Round(time.Second) / time.Second)
				options.SinceSeconds = &seconds
			}
			return client.Logs(cmd.Context(), e, options, g.out)
		},
	}
	cmd.Flags().BoolVarP(&options.Follow, "follow", "f", false, "go on as the logs grow")
	cmd.Flags().BoolVarP(&options.Previous, "previous", "p", false, "those of the previous processes, which have ended")
	cmd.Flags().DurationVar(&since, "since", 0, "only what is newer than this")
	return cmd
}

func newExtensionUninstall(g *globals) *cobra.Command {
	flags := extensionFlags{}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Uninstall an extension",
		Long: `Delete an extension that "gardenlite extension install" has made. It stays while seeds have extension resources of its types.
Its images stay mapped: see "gardenlite image forget".`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeExtension(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, _, err := g.extension(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := waitFor(cmd.Context(), g, flags.timeout, "Uninstalling the extension "+args[0],
				func(ctx context.Context, report func(string)) error {
					return client.Uninstall(ctx, args[0], report)
				}); err != nil {
				return err
			}
			printf(g.out, "The extension %s is uninstalled.\n", args[0])
			return nil
		},
	}
	cmd.Flags().DurationVar(&flags.timeout, "timeout", defaultExtensionTimeout, "how long to wait")
	return cmd
}
