package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newImage(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Map images of containers to programs of this machine",
		Long: `Containers are simulated unless their image is mapped to a program of this machine: then they run as a process of it,
with the arguments, variables, volumes and identity of their Pod. A user who may create Pods with a mapped image, in any
cluster of the landscape, can run the program with arguments of their choice, as you.`,
	}
	cmd.AddCommand(newImageList(g), newImageRun(g), newImageForget(g))
	return cmd
}

func newImageList(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the images that are mapped",
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := g.images(cmd.Context())
			if err != nil {
				return err
			}
			return printAs(g.out, output, images, func() {
				var rows [][]string
				for _, image := range images {
					rows = append(rows, []string{image.Reference, strings.Join(append([]string{image.Program}, image.Args...), " ")})
				}
				table(g.out, "IMAGE | PROGRAM", rows)
			})
		},
	}
	addOutputFlag(cmd, &output, "table", "wide", "json", "yaml")
	return cmd
}

func newImageRun(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "run IMAGE PROGRAM [-- ARGUMENT…]",
		Short: "Run containers of an image as a process",
		Long: `Map an image to a program. Pods that are created from now on run it; simulated Pods of Deployments and other controllers are
replaced, others stay as they are until they are deleted. The mapping stays until it is forgotten, also when the landscape is
started again.`,
		Example: `  # Every tag of the image
  gardenlite image run registry.example.com/controller ./bin/controller
  # One tag, with arguments before those of the container
  gardenlite image run registry.example.com/controller:v1 ./bin/controller -- --verbose`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			image := process.Image{Reference: args[0], Program: args[1], Args: args[2:]}
			if err := image.Complete(); err != nil {
				return &exitError{exitUsage, err}
			}
			client, _, err := g.connect()
			if err != nil {
				return err
			}
			if err := client.MapImage(cmd.Context(), image); err != nil {
				return err
			}
			printf(g.out, "Containers of %s run %s from now on.\n", image.Reference, image.Program)
			return nil
		},
	}
}

func newImageForget(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "forget IMAGE",
		Short: "Simulate containers of an image again",
		Long:  `Remove the mapping of an image. Pods that run already stay as they are, until they are deleted.`,
		Args:  cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(completeNames(func(ctx context.Context) (references []string) {
			images, _ := g.images(ctx) // after an error, nothing is completed
			for _, image := range images {
				references = append(references, image.Reference)
			}
			return references
		})),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, _, err := g.connect()
			if err != nil {
				return err
			}
			return client.ForgetImage(cmd.Context(), args[0])
		},
	}
}

// images returns the mapped images.
func (g *globals) images(ctx context.Context) ([]process.Image, error) {
	client, _, err := g.connect()
	if err != nil {
		return nil, err
	}
	return client.Images(ctx)
}

// mapPrograms maps images of a controller to the programs of --run, PROGRAM or IMAGE=PROGRAM, and returns those images.
func mapPrograms(ctx context.Context, g *globals, run, images []string) (mapped []string, err error) {
	if len(run) == 0 {
		return nil, nil
	}
	running, _, err := g.connect()
	if err != nil {
		return nil, err
	}
	for _, text := range run {
		if !strings.Contains(text, "=") {
			if len(images) != 1 {
				return nil, usage.Errorf("--run %s: the controller has %d images: say which with IMAGE=PROGRAM", text, len(images))
			}
			text = images[0] + "=" + text
		}
		image, err := process.ParseImage(text)
		if err != nil {
			return nil, usage.Errorf("--run: %w", err)
		}
		if !slices.Contains(images, image.Reference) {
			return nil, usage.Errorf("--run: the controller has no image %s, but %s", image.Reference, strings.Join(images, ", "))
		}
		if err := running.MapImage(ctx, image); err != nil {
			return nil, err
		}
		mapped = append(mapped, image.Reference)
	}
	return mapped, nil
}
