package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/usage"
	"github.com/gardenlite/gardenlite/internal/usercontexts"
)

const (
	// defaultProject is the project of the default landscape.
	defaultProject = "dev"
	// defaultShootTimeout is how long commands wait for a Shoot.
	defaultShootTimeout = 10 * time.Minute
	// completionTimeout bounds how long a shell waits for names.
	completionTimeout = 2 * time.Second
	// readTimeout bounds how long a command waits for what it leaves out if it cannot be read, on a busy machine.
	readTimeout = 10 * time.Second
)

func newShoot(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shoot",
		Short: "Create, list, change and delete shoots, and have them fail",
	}
	cmd.AddCommand(newShootCreate(g), newShootList(g), newShootDescribe(g), newShootDelete(g), newShootFail(g), newShootDelay(g))
	for _, o := range shootOperations {
		cmd.AddCommand(newShootOperation(g, o))
	}
	return cmd
}

// gardenConfig returns the administrator's client configuration for the garden. The landscape has to run.
func (g *globals) gardenConfig(ctx context.Context) (*rest.Config, error) {
	config, _, err := g.garden(ctx)
	return config, err
}

// garden returns the administrator's client configuration for the garden, and the URL of the proxy to API servers of shoots.
func (g *globals) garden(ctx context.Context) (config *rest.Config, proxy string, err error) {
	running, _, err := g.connect()
	if err != nil {
		return nil, "", err
	}
	status, err := running.Status(ctx, false)
	if err != nil {
		return nil, "", err
	}
	if status.State == control.StateStarting {
		return nil, "", g.starting()
	}
	file, err := g.gardenKubeconfig()
	if err != nil {
		return nil, "", err
	}
	kubeconfig, err := readKubeconfig(file, "")
	if err != nil {
		return nil, "", err
	}
	config, err = clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{}).ClientConfig()
	return config, fmt.Sprintf("http://127.0.0.1:%d", status.ProxyPort), err
}

// shootClient returns a client for the landscape's Shoots, as the administrator.
func (g *globals) shootClient(ctx context.Context) (*shootclient.Client, error) {
	config, proxy, err := g.garden(ctx)
	if err != nil {
		return nil, err
	}
	client, err := shootclient.New(config)
	if err != nil {
		return nil, err
	}
	client.Proxy = proxy
	return client, nil
}

// shoots returns the landscape's Shoots.
func (g *globals) shoots(ctx context.Context) ([]shootclient.Summary, error) {
	client, err := g.shootClient(ctx)
	if err != nil {
		return nil, err
	}
	return client.List(ctx)
}

// shootKey parses the name of a Shoot that the user gave.
func shootKey(text, project string) (shootclient.Key, error) {
	key, err := shootclient.ParseKey(text, project)
	if err != nil {
		return key, &usage.Error{Err: err}
	}
	return key, nil
}

// shoot returns a client for the landscape's Shoots, and the key of the Shoot that the user named.
func (g *globals) shoot(ctx context.Context, text, project string) (*shootclient.Client, shootclient.Key, error) {
	key, err := shootKey(text, project)
	if err != nil {
		return nil, key, err
	}
	client, err := g.shootClient(ctx)
	return client, key, err
}

// shootNames returns the names of Shoots, for completion: of all projects as PROJECT/NAME, or those of one project.
func shootNames(ctx context.Context, g *globals, project string) (names []string) {
	all, _ := g.shoots(ctx) // after an error, nothing is completed
	for _, s := range all {
		switch project {
		case "":
			names = append(names, s.Project+"/"+s.Name)
		case s.Project:
			names = append(names, s.Name)
		}
	}
	return names
}

func completeShoots(g *globals, project string) cobra.CompletionFunc {
	return completeNames(func(ctx context.Context) []string { return shootNames(ctx, g, project) })
}

// completeProjectShoots completes one Shoot: of the project, or of any one if a / is typed.
func completeProjectShoots(g *globals, project *string) cobra.CompletionFunc {
	return completeArgs(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(typed, "/") {
			return completeShoots(g, "")(cmd, args, typed)
		}
		return completeShoots(g, *project)(cmd, args, typed)
	})
}

// projectNames returns the projects that have Shoots, and the default one, for completion.
func projectNames(ctx context.Context, g *globals) []string {
	names := []string{defaultProject}
	for _, name := range shootNames(ctx, g, "") {
		project, _, _ := strings.Cut(name, "/")
		names = append(names, project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func addProjectFlag(g *globals, cmd *cobra.Command, project *string) {
	cmd.Flags().StringVar(project, "project", defaultProject, "project of the shoot")
	_ = cmd.RegisterFlagCompletionFunc("project", completeNames(func(ctx context.Context) []string { return projectNames(ctx, g) }))
}

func newShootList(g *globals) *cobra.Command {
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the shoots of all projects",
		Example: `  gardenlite shoot list
  gardenlite shoot list -o wide --watch
  gardenlite shoot list -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				if output != "table" && output != "wide" {
					return usage.Errorf("--watch prints a table: -o table or -o wide, not %s", output)
				}
				return watchShoots(cmd.Context(), g, output == "wide")
			}
			all, err := g.shoots(cmd.Context())
			if err != nil {
				return err
			}
			return printAs(g.out, output, all, func() {
				if len(all) == 0 {
					printLine(g.err, "There are no shoots. \"gardenlite shoot create NAME\" creates one.")
					return
				}
				printShoots(g, all, output == "wide")
			})
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on with the shoots that change until Ctrl-C")
	addOutputFlag(cmd, &output, "table", "wide", "json", "yaml")
	return cmd
}

// watchShoots prints the shoots, and those that change or are gone until the context ends.
func watchShoots(ctx context.Context, g *globals, wide bool) error {
	client, err := g.shootClient(ctx)
	if err != nil {
		return err
	}
	shoots := newTable(g.out, shootHeader(wide))
	err = client.Watch(ctx, func(changed []shootclient.Summary) { shoots.print(shootRows(changed, wide)) })
	if ctx.Err() != nil {
		return &exitError{code: exitInterrupted}
	}
	return err
}

func printShoots(g *globals, all []shootclient.Summary, wide bool) {
	table(g.out, shootHeader(wide), shootRows(all, wide))
}

func shootHeader(wide bool) string {
	header := "SHOOT | SEED | KUBERNETES | NODES | STATE"
	if wide {
		header += " | AGE | ADDRESS | TECHNICAL ID | MESSAGE"
	}
	return header
}

func shootRows(all []shootclient.Summary, wide bool) (rows [][]string) {
	for _, s := range all {
		row := []string{s.Project + "/" + s.Name, s.Seed, s.KubernetesVersion, s.Nodes(), s.State}
		if wide {
			row = append(row, age(s.CreatedAt), s.Address, s.ID, firstLine(s.Message))
		}
		rows = append(rows, row)
	}
	return rows
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

type shootDeleteFlags struct {
	project   string
	yes, wait bool
	timeout   time.Duration
}

func newShootDelete(g *globals) *cobra.Command {
	flags := shootDeleteFlags{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a shoot",
		Long:  "Confirm the deletion of a shoot with its annotation, and delete it. It takes a while until it is gone; --wait waits for that.",
		Example: `  gardenlite shoot delete my-shoot
  gardenlite shoot delete dev/my-shoot --yes --wait`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeProjectShoots(g, &flags.project),
		RunE:              func(cmd *cobra.Command, args []string) error { return flags.run(cmd.Context(), g, args[0]) },
	}
	addProjectFlag(g, cmd, &flags.project)
	f := cmd.Flags()
	f.BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&flags.wait, "wait", false, "wait until the shoot is gone")
	f.DurationVar(&flags.timeout, "timeout", defaultShootTimeout, "how long to wait")
	return cmd
}

func (d *shootDeleteFlags) run(ctx context.Context, g *globals, name string) error {
	client, key, err := g.shoot(ctx, name, d.project)
	if err != nil {
		return err
	}
	if _, err := client.Shoot(ctx, key); err != nil {
		return explainShoot(g, err)
	}
	if !d.yes {
		if err := confirm(g, "shoot delete", fmt.Sprintf("Delete the shoot %s with everything in it?", key)); err != nil {
			return err
		}
	}
	if err := client.Delete(ctx, key); err != nil {
		return explainShoot(g, err)
	}
	dir, err := g.dir()
	if err != nil {
		return err
	}
	forgetContexts(g, usercontexts.Owner{Dir: dir, Cluster: "shoot " + key.String()})
	if !d.wait {
		printf(g.out, "Shoot %s is being deleted.\n", key)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	progress := newShootProgress(g, "Deleting shoot "+key.String())
	defer progress.close()
	if err := client.WaitGone(ctx, key, progress.report); err != nil {
		return err
	}
	progress.close()
	printf(g.out, "Shoot %s is gone.\n", key)
	return nil
}

// explainShoot adds a hint to the error for a Shoot that does not exist.
func explainShoot(g *globals, err error) error {
	if errors.Is(err, shootclient.ErrNotFound) {
		return fmt.Errorf("%w: \"gardenlite shoot list%s\" shows those that there are", err, g.nameFlag())
	}
	return err
}
