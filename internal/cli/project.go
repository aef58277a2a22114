package cli

import (
	"context"
	"errors"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newProject(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "Create projects",
	}
	cmd.AddCommand(newProjectCreate(g))
	return cmd
}

func newProjectCreate(g *globals) *cobra.Command {
	var members []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a project with its members",
		Long: `Create a project in the namespace garden-NAME, and wait until it is ready. Roles are admin, viewer, uam,
serviceaccountmanager and extension:NAME; a user with several roles is given several times.`,
		Example: `  gardenlite project create team
  gardenlite project create team --member alice@example.com:admin --member bob@example.com:viewer
  gardenlite project create team --member system:serviceaccount:garden-dev:robot:admin`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return createProject(cmd.Context(), g, args[0], members, timeout)
		},
	}
	cmd.Flags().StringArrayVar(&members, "member", nil, "USER:ROLE, a member; can be given several times")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait until it is ready")
	return cmd
}

func createProject(ctx context.Context, g *globals, name string, texts []string, timeout time.Duration) error {
	var members []corev1beta1.ProjectMember
	var errs []error
	for _, text := range texts {
		member, err := shootclient.ParseMember(text)
		members, errs = append(members, member), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return usage.Errorf("--member %w", err)
	}
	client, err := g.shootClient(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	created, err := client.CreateProject(ctx, name, members)
	if err != nil {
		return err
	}
	if !created {
		printf(g.out, "Project %s exists already.\n", name)
		return nil
	}
	printf(g.out, "Project %s is ready.\n", name)
	printf(g.err, "Type next: gardenlite%s shoot create NAME --project %s\n", g.nameFlag(), name)
	return nil
}
