package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackclient"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	defaultStackNamespace = "default"
	defaultStackTimeout   = 2 * time.Minute
)

type stackFlags struct {
	namespace, name string
	run             []string
	confirm, wait   bool
	timeout         time.Duration
	output          string
}

// addTo adds the flags that all commands about one stack have.
func (f *stackFlags) addTo(g *globals, cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", defaultStackNamespace, "namespace of the stack")
	_ = cmd.RegisterFlagCompletionFunc("namespace", completeNames(func(ctx context.Context) []string {
		return g.stacksInstalled(ctx, func(i v1alpha1.Install) string { return i.GetNamespace() })
	}))
}

func (f *stackFlags) addWait(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the stack is "+what)
	cmd.Flags().DurationVar(&f.timeout, "timeout", defaultStackTimeout, "how long to wait")
}

func (f *stackFlags) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: f.namespace, Name: name}
}

// find returns a client for stacks, and the installed stack of that name.
func (f *stackFlags) find(ctx context.Context, g *globals, name string) (*stackclient.Client, v1alpha1.Install, error) {
	stacks, err := g.stackClient(ctx)
	if err != nil {
		return nil, nil, err
	}
	install, err := stacks.Find(ctx, f.key(name))
	return stacks, install, err
}

// completeStack completes the names of stacks in the namespace.
func (f *stackFlags) completeStack(g *globals) cobra.CompletionFunc {
	return completeArgs(completeNames(func(ctx context.Context) []string {
		return g.stacksInstalled(ctx, func(i v1alpha1.Install) string {
			if i.GetNamespace() != f.namespace {
				return ""
			}
			return i.GetName()
		})
	}))
}

// stacksInstalled returns what name returns for the installed stacks, sorted and without duplicates, for completion.
func (g *globals) stacksInstalled(ctx context.Context, name func(v1alpha1.Install) string) (names []string) {
	stacks, err := g.stackClient(ctx)
	if err != nil {
		return nil
	}
	all, _ := stacks.List(ctx, "") // after an error, nothing is completed
	for _, install := range all {
		if name := name(install); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stackClient returns a client for the stacks of the landscape, as the administrator.
func (g *globals) stackClient(ctx context.Context) (*stackclient.Client, error) {
	config, err := g.gardenConfig(ctx)
	if err != nil {
		return nil, err
	}
	return stackclient.New(config)
}

func newStackInstall(g *globals) *cobra.Command {
	flags := stackFlags{}
	cmd := &cobra.Command{
		Use:   "install PACKAGE",
		Short: "Install a stack, or another version of it",
		Long: `Install the package in a folder, an archive or a registry. It becomes a ClusterStackInstall or a StackInstall, as its
permissionScope says; the namespace is created if it does not exist. If the stack is installed already with another
package, that is replaced: the old controller ends before the new one begins, and instances stay.

The controller is simulated unless its image is mapped to a program of this machine, with --run or "gardenlite image run".`,
		Example: `  gardenlite stack install manifests/stacks/mysql --namespace infra --run ./bin/mysql
  gardenlite stack install mysql.tar --namespace infra
  gardenlite stack install registry.example.org/stacks/wordpress:0.2 --namespace dev --as blog`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.install(cmd.Context(), g, args[0]) },
	}
	flags.addTo(g, cmd)
	cmd.Flags().StringVar(&flags.name, "as", "", "name of the stack (default: its title in lower case)")
	cmd.Flags().StringArrayVar(&flags.run, "run", nil,
		"program that the controller runs: PROGRAM, or IMAGE=PROGRAM if the controller has several images; can be given several times")
	flags.addWait(cmd, "ready")
	addOutputFlag(cmd, &flags.output, "text", "name", "json", "yaml")
	return cmd
}

func (f *stackFlags) install(ctx context.Context, g *globals, name string) error {
	stacks, err := g.stackClient(ctx)
	if err != nil {
		return err
	}
	dir, err := g.dir()
	if err != nil {
		return err
	}
	p, err := stackclient.Find(ctx, name, statedir.StackFolder(dir))
	if err != nil {
		return err
	}
	if f.name = cmp.Or(f.name, p.DefaultName()); f.name == "" {
		return usage.Errorf("the title %q makes no name for the stack: give one with --as", p.App.Title)
	}
	if _, err := mapPrograms(ctx, g, f.run, p.Images()); err != nil {
		return err
	}
	install, change, err := stacks.Install(ctx, p, f.key(f.name))
	if err != nil {
		return err
	}
	message := fmt.Sprintf("The stack %s/%s is %s.", f.namespace, f.name, change)
	if f.wait {
		title := "Installing the stack " + f.namespace + "/" + f.name
		if err := waitFor(ctx, g, f.timeout, title, func(ctx context.Context, report func(string)) error {
			return stacks.Wait(ctx, install, report)
		}); err != nil {
			return err
		}
		if installed := install.State().Digest; p.Digest != "" && installed != p.Digest {
			return fmt.Errorf("the stack %s/%s is ready with another package, which the tag of %s named when it was installed (%s): "+
				"to change it, install NAME@%s", f.namespace, f.name, p.Reference, installed, p.Digest)
		}
		message = fmt.Sprintf("The stack %s/%s is ready: %s %s.", f.namespace, f.name, p.App.Title, p.App.Version)
	}
	return printAs(g.out, f.output, withKind(install), func() {
		if f.output == "name" {
			printLine(g.out, f.namespace+"/"+f.name)
			return
		}
		for _, warning := range p.Warnings {
			printLine(g.err, "Warning:", warning)
		}
		printLine(g.out, message)
	})
}

// withKind sets the kind of an install, which answers of the API do not have.
func withKind(install v1alpha1.Install) v1alpha1.Install {
	install.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(install.Kind()))
	return install
}

func newStackUninstall(g *globals) *cobra.Command {
	flags := stackFlags{}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Uninstall a stack",
		Long: `Remove a stack: its controller and permissions, and the CRDs that no other stack owns. While there are instances of its CRDs,
or stacks that depend on them, the stack stays as it is until they are gone, or the uninstallation is confirmed: then the
instances of CRDs that no other stack owns are deleted with it.`,
		Example: `  gardenlite stack uninstall wordpress --namespace dev
  gardenlite stack uninstall mysql --namespace infra --confirm`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: flags.completeStack(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			stacks, install, err := flags.find(ctx, g, args[0])
			if err != nil {
				return err
			}
			if err := stacks.Uninstall(ctx, install, flags.confirm); err != nil {
				return err
			}
			title := fmt.Sprintf("Uninstalling the stack %s/%s", flags.namespace, args[0])
			if !flags.wait {
				printLine(g.out, title+".")
				return nil
			}
			if err := waitFor(ctx, g, flags.timeout, title, func(ctx context.Context, report func(string)) error {
				return stacks.WaitUninstalled(ctx, install, report)
			}); err != nil {
				return err
			}
			printf(g.out, "The stack %s/%s is uninstalled.\n", flags.namespace, args[0])
			return nil
		},
	}
	flags.addTo(g, cmd)
	cmd.Flags().BoolVar(&flags.confirm, "confirm", false,
		"uninstall it although there are instances, which are lost, or stacks that depend on it")
	flags.addWait(cmd, "uninstalled")
	return cmd
}

func newStackList(g *globals) *cobra.Command {
	flags := stackFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the stacks of all namespaces",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			stacks, err := g.stackClient(ctx)
			if err != nil {
				return err
			}
			all, err := stacks.List(ctx, flags.namespace)
			if err != nil {
				return err
			}
			slices.SortFunc(all, func(a, b v1alpha1.Install) int {
				return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
			})
			listed := make([]v1alpha1.Install, 0, len(all))
			var rows [][]string
			for _, install := range all {
				listed = append(listed, withKind(install))
				stack, err := stacks.Stack(ctx, install)
				if err != nil {
					return err
				}
				version := ""
				if stack != nil {
					version = stack.Spec.Version
				}
				rows = append(rows, []string{install.GetNamespace(), install.GetName(), string(install.Scope()), readyOf(install), version,
					age(install.GetCreationTimestamp().Time), messageOf(install)})
			}
			return printAs(g.out, flags.output, listed, func() {
				table(g.out, "NAMESPACE | NAME | SCOPE | READY | VERSION | AGE | MESSAGE", rows)
			})
		},
	}
	flags.addTo(g, cmd)
	cmd.Flags().Lookup("namespace").DefValue, flags.namespace = "", ""
	cmd.Flags().Lookup("namespace").Usage = "stacks of this namespace only"
	addOutputFlag(cmd, &flags.output, "table", "wide", "json", "yaml")
	return cmd
}

func readyOf(install v1alpha1.Install) string {
	return string(install.State().Condition(v1alpha1.Ready).Status)
}

// messageOf returns why a stack is not synced or not ready.
func messageOf(install v1alpha1.Install) string {
	if synced := install.State().Condition(v1alpha1.Synced); synced.Message != "" {
		return synced.Message
	}
	return install.State().Condition(v1alpha1.Ready).Message
}

func newStackDescribe(g *globals) *cobra.Command {
	flags := stackFlags{}
	cmd := &cobra.Command{
		Use:               "describe NAME",
		Short:             "Show what a stack is, and what it may do",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: flags.completeStack(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			stacks, install, err := flags.find(ctx, g, args[0])
			if err != nil {
				return err
			}
			stack, err := stacks.Stack(ctx, install)
			if err != nil {
				return err
			}
			described := struct {
				Install v1alpha1.Install `json:"install"`
				Stack   *v1alpha1.Stack  `json:"stack,omitempty"`
			}{withKind(install), stack}
			return printAs(g.out, flags.output, described, func() {
				table(g.out, "STACK | "+flags.namespace+"/"+args[0], describeStack(install, stack))
			})
		},
	}
	flags.addTo(g, cmd)
	addOutputFlag(cmd, &flags.output, "text", "json", "yaml")
	return cmd
}

func describeStack(install v1alpha1.Install, stack *v1alpha1.Stack) [][]string {
	rows := [][]string{{"INSTALL", install.Kind()}, {"PACKAGE", install.Request().Reference()}, {"READY", readyOf(install)}}
	if message := messageOf(install); message != "" {
		rows = append(rows, []string{"MESSAGE", message})
	}
	if stack == nil {
		return rows
	}
	spec := &stack.Spec
	rows = append(rows, [][]string{{"DIGEST", install.State().Digest}, {"TITLE", spec.Title}, {"VERSION", spec.Version},
		{"OVERVIEW", spec.OverviewShort}}...)
	switch {
	case spec.Controller.Deployment != nil:
		rows = append(rows, []string{"CONTROLLER", "Deployment/" + spec.Controller.Deployment.Name})
	case spec.Controller.Job != nil:
		rows = append(rows, []string{"CONTROLLER", "Job/" + spec.Controller.Job.Name})
	}
	rows = append(rows, []string{"IDENTITY", "system:serviceaccount:" + stack.Namespace + ":" + stack.Name})
	for _, crd := range spec.CustomResourceDefinitions {
		rows = append(rows, []string{"OWNS", crd.Name})
	}
	where := "in all namespaces"
	if install.Kind() == v1alpha1.StackInstallKind {
		where = "in namespace " + stack.Namespace
	}
	for _, rule := range spec.Permissions.Rules {
		rows = append(rows, []string{"MAY", fmt.Sprintf("%s %s (%s) %s", strings.Join(rule.Verbs, ","), strings.Join(rule.Resources, ", "),
			cmp.Or(strings.Join(rule.APIGroups, ", "), "core"), where)})
	}
	return rows
}
