package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

func newStack(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "Install stacks, and build their packages",
		Long: `A stack extends the garden: custom resource definitions, and a controller with exactly the permissions of its scope. Its
package is a folder .registry, or an image that has one.`,
	}
	cmd.AddCommand(newStackBuild(g), newStackInstall(g), newStackList(g), newStackDescribe(g), newStackUninstall(g))
	return cmd
}

// builtStack is the output of "gardenlite stack build".
type builtStack struct {
	File            string             `json:"file"`
	Digest          string             `json:"digest"`
	Title           string             `json:"title"`
	Version         string             `json:"version"`
	PermissionScope stackpackage.Scope `json:"permissionScope"`
	Controller      string             `json:"controller"`
	CRDs            []string           `json:"crds"`
	DependsOn       []string           `json:"dependsOn"`
	Warnings        []string           `json:"warnings"`
}

func newStackBuild(g *globals) *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Check a package and write it as an OCI image",
		Long: `Check the package in the folder .registry of a folder, and write it as the archive of an OCI image. A package that asks for
more than a stack is given is refused with the reason, and nothing is written. The same package is always the same bytes.`,
		Example: `  gardenlite stack build manifests/stacks/mysql
  gardenlite stack build . --file wordpress.tar -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)),
		RunE: func(_ *cobra.Command, args []string) error {
			built, err := buildStack(args[0], file)
			if err != nil {
				return err
			}
			return printAs(g.out, output, built, func() { printBuiltStack(g, built) })
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default: the name of DIR with .tar, in the current folder)")
	_ = cmd.MarkFlagFilename("file", "tar")
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func buildStack(dir, file string) (*builtStack, error) {
	if file == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		file = filepath.Base(absolute) + ".tar"
	}
	var image bytes.Buffer
	p, err := stackpackage.Build(dir, &image)
	if err != nil {
		return nil, fmt.Errorf("the package in %s is refused: %w", dir, err)
	}
	if err := fsutil.WriteFile(file, image.Bytes(), 0o600); err != nil {
		return nil, err
	}
	built := &builtStack{File: file, Digest: p.Digest, Title: p.App.Title, Version: p.App.Version, PermissionScope: p.App.PermissionScope,
		CRDs: []string{}, DependsOn: append([]string{}, p.DependsOn...), Warnings: append([]string{}, p.Warnings...)}
	for _, crd := range p.CRDs {
		built.CRDs = append(built.CRDs, crd.Name)
	}
	switch {
	case p.Deployment != nil:
		built.Controller = "Deployment/" + p.Deployment.Name
	case p.Job != nil:
		built.Controller = "Job/" + p.Job.Name
	}
	return built, nil
}

func printBuiltStack(g *globals, built *builtStack) {
	for _, warning := range built.Warnings {
		printLine(g.err, "Warning:", warning)
	}
	rows := [][]string{{"DIGEST", built.Digest}, {"SCOPE", string(built.PermissionScope)}, {"CONTROLLER", built.Controller},
		{"CRDS", strings.Join(built.CRDs, ", ")}, {"DEPENDS ON", strings.Join(built.DependsOn, ", ")}}
	table(g.out, "FILE | "+built.File, rows)
}
