package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/sshclient"
)

func newShootDescribe(g *globals) *cobra.Command {
	var project, output string
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show what a shoot is doing, what is wrong with it, and what to do next",
		Long: `Show the last operation of a shoot with the tasks that it waits for, its conditions, its errors with Gardener's
codes, its nodes and Bastions, and the rotations of its credentials with the next step.`,
		Example:           "  gardenlite shoot describe my-shoot\n  gardenlite shoot describe dev/my-shoot -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeProjectShoots(g, &project),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := describeShoot(cmd.Context(), g, args[0], project)
			if err != nil {
				return err
			}
			return printAs(g.out, output, d, func() { printDescription(g, d) })
		},
	}
	addProjectFlag(g, cmd, &project)
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

// shootDescription is the output of "gardenlite shoot describe".
type shootDescription struct {
	*shootclient.Description `json:",inline"`
	Nodes                    []sshclient.Node `json:"nodes"`
	// NodesError says why the nodes are not known.
	NodesError string           `json:"nodesError,omitempty"`
	Bastions   []bastionSummary `json:"bastions"`
}

// bastionSummary describes a Bastion in one line.
type bastionSummary struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`
	Message string       `json:"message,omitempty"`
	Address string       `json:"address,omitempty"`
	Expires *metav1.Time `json:"expires,omitempty"`
}

func describeShoot(ctx context.Context, g *globals, name, project string) (*shootDescription, error) {
	client, key, err := g.shoot(ctx, name, project)
	if err != nil {
		return nil, err
	}
	d := &shootDescription{Nodes: []sshclient.Node{}, Bastions: []bastionSummary{}}
	var shoot *corev1beta1.Shoot
	if d.Description, shoot, err = client.Describe(ctx, key); err != nil {
		return nil, explainShoot(g, err)
	}
	bastions, err := g.sshClient(ctx)
	if err != nil {
		return nil, err
	}
	all, err := bastions.Bastions(ctx, shoot)
	if err != nil {
		return nil, err
	}
	for i := range all {
		d.Bastions = append(d.Bastions, summarizeBastion(&all[i]))
	}
	if d.MaxNodes == 0 { // without workers, or hibernated
		return d, nil
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	nodes, err := bastions.Nodes(reading, key)
	if err != nil { // the API server is not there yet, or is what is wrong
		d.NodesError = err.Error()
		return d, nil
	}
	d.Nodes = nodes
	return d, nil
}

func summarizeBastion(b *operationsv1alpha1.Bastion) bastionSummary {
	s := bastionSummary{Name: b.Name, State: "Pending", Expires: b.Status.ExpirationTimestamp}
	if b.Status.Ingress != nil {
		s.Address = cmp.Or(b.Status.Ingress.IP, b.Status.Ingress.Hostname)
	}
	for _, c := range b.Status.Conditions {
		if c.Type == operationsv1alpha1.BastionReady {
			s.Message = c.Message
			if s.State = "Ready"; c.Status != corev1beta1.ConditionTrue {
				s.State = cmp.Or(c.Reason, string(c.Status))
			}
		}
	}
	return s
}

func printDescription(g *globals, d *shootDescription) {
	printf(g.out, "Shoot       %s/%s: %s\n", d.Project, d.Name, d.State)
	for _, field := range [][2]string{{"Seed", d.Seed}, {"Kubernetes", d.KubernetesVersion}, {"Address", d.Address},
		{"ID", d.ID},
		{"Namespace", d.Namespace}, {"Age", age(d.CreatedAt)}, {"Requested", d.Operation.Requested}} {
		if field[1] != "" {
			printf(g.out, "%-10s  %s\n", field[0], field[1])
		}
	}
	printf(g.out, "Operation   %s, %s ago\n", d.Operation.Text, age(d.Operation.At))
	isError := func(e corev1beta1.LastError) bool { return e.Description == d.Operation.Message }
	if d.Operation.Message != "" && !slices.ContainsFunc(d.Errors, isError) {
		printf(g.out, "            %s\n", d.Operation.Message)
	}
	for _, task := range d.Operation.Tasks {
		printf(g.out, "            - %s\n", task)
	}
	section := func(header string, rows [][]string) {
		if len(rows) > 0 {
			printLine(g.out)
			table(g.out, header, rows)
		}
	}
	var rows [][]string
	for _, e := range d.Errors {
		codes := make([]string, len(e.Codes))
		for i, code := range e.Codes {
			codes[i] = string(code)
		}
		task := ""
		if e.TaskID != nil {
			task = *e.TaskID
		}
		rows = append(rows, []string{strings.Join(codes, ", "), task, e.Description})
	}
	section("ERROR | TASK | MESSAGE", rows)
	rows = nil
	for _, c := range d.Conditions {
		rows = append(rows, []string{string(c.Type), string(c.Status), age(c.LastTransitionTime.Time), c.Message})
	}
	section("CONDITION | STATUS | SINCE | MESSAGE", rows)
	rows = nil
	for _, n := range d.Nodes {
		state := "Ready"
		if !n.Ready {
			state = "NotReady"
		}
		rows = append(rows, []string{n.Name, state, n.Address})
	}
	section("NODE | STATUS | ADDRESS", rows)
	if d.NodesError != "" {
		printf(g.out, "\nThe nodes are not known: %s\n", d.NodesError)
	}
	rows = nil
	for _, b := range d.Bastions {
		expires := ""
		if b.Expires != nil {
			expires = "in " + span(time.Until(b.Expires.Time))
		}
		rows = append(rows, []string{b.Name, b.State, b.Address, expires, b.Message})
	}
	section("BASTION | STATUS | ADDRESS | EXPIRES | MESSAGE", rows)
	rows = nil
	for _, r := range d.Rotations {
		next := strings.Replace(r.Next, "gardenlite ", "gardenlite"+g.nameFlag()+" ", 1) // of this landscape
		rows = append(rows, []string{r.Name, r.Phase, ago(r.Started), ago(r.Completed), next})
	}
	section("ROTATION | PHASE | STARTED | COMPLETED | NEXT STEP", rows)
	if strings.Contains(d.Operation.Text, string(corev1beta1.LastOperationStateFailed)) {
		printf(g.err, "Change what is wrong, then type: gardenlite shoot retry%s %s/%s\n", g.nameFlag(), d.Project, d.Name)
	}
}

func ago(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return age(t.Time) + " ago"
}
