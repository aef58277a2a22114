package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

const (
	// checksumApplied is the annotation of a Node for the configuration that it has applied. checksumWanted is the
	// annotation of the Secret of its pool for the configuration that it has to apply. Both are Gardener's.
	checksumApplied = "checksum/cloud-config-data"
	checksumWanted  = "checksum/data-script"
	// rotationPoll is how often the nodes are read during a rotation.
	rotationPoll = time.Second
)

// rotation is a rotation of credentials: with operation alone or, if complete is set, with a second operation that
// completes it.
type rotation struct{ name, short, operation, complete string }

var rotations = []rotation{
	{"ssh-keypair", "Rotate the SSH key pair of the nodes", constants.ShootOperationRotateSSHKeypair, ""},
	{"observability", "Rotate the password of the observability components", constants.OperationRotateObservabilityCredentials, ""},
	{"etcd-encryption-key", "Rotate the key that resources are encrypted with", constants.OperationRotateETCDEncryptionKey, ""},
	{"ca", "Rotate the certificate authorities", constants.OperationRotateCAStart, constants.OperationRotateCAComplete},
	{"serviceaccount-key", "Rotate the key that signs tokens of service accounts",
		constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyComplete},
	{"credentials", "Rotate all credentials", constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsComplete},
}

func newRotate(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Rotate credentials of a shoot",
	}
	for _, r := range rotations {
		cmd.AddCommand(newRotateOne(g, r))
	}
	return cmd
}

func newRotateOne(g *globals, r rotation) *cobra.Command {
	var wait, complete bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               r.name + " PROJECT/SHOOT",
		Short:             r.short,
		Example:           fmt.Sprintf("  gardenlite rotate %s dev/my-shoot --wait", r.name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(completeShoots(g, "")),
		RunE: func(cmd *cobra.Command, args []string) error {
			operation := r.operation
			if complete {
				operation = r.complete
			}
			if !wait {
				timeout = 0
			}
			return rotate(cmd.Context(), g, args[0], operation, timeout)
		},
	}
	if r.complete != "" {
		cmd.Long = r.short + ". The rotation has two steps: old and new are valid after the first one, and the second one, with\n" +
			"--complete, ends the life of the old ones."
		cmd.Example += fmt.Sprintf("\n  gardenlite rotate %s dev/my-shoot --complete --wait", r.name)
		cmd.Flags().BoolVar(&complete, "complete", false, "begin the second step")
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done, and show which nodes have the new configuration")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultShootTimeout, "how long to wait")
	return cmd
}

// rotate asks for a rotation, and waits for its end unless the timeout is 0.
func rotate(ctx context.Context, g *globals, name, operation string, timeout time.Duration) error {
	client, key, err := g.shoot(ctx, name, defaultProject)
	if err != nil {
		return err
	}
	before := map[string]string{}
	if timeout > 0 { // a shoot without an API server has no nodes
		before, _, _ = nodeConfigurations(ctx, client, key)
	}
	if err := client.RequestOperation(ctx, key, operation); err != nil {
		return explainShoot(g, err)
	}
	if timeout == 0 {
		printf(g.out, "Shoot %s: %s is asked for.\n", key, operation)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newShootProgress(g, "Rotating")
	defer progress.close()
	above := func(format string, args ...any) { progress.above(g.out, format, args...) }
	read := func(ctx context.Context) (map[string]string, []corev1.Node, error) {
		return nodeConfigurations(ctx, client, key)
	}
	nodes := nodeProgress{before: before, printf: above, read: read}
	done, followed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		nodes.follow(ctx, done)
	}()
	_, err = client.Wait(ctx, key, progress.report)
	close(done)
	<-followed
	progress.close()
	if err != nil {
		return err
	}
	printf(g.out, "Shoot %s: %s is done.\n", key, operation)
	return nil
}

// nodeProgress prints each node once it has applied another configuration than before.
type nodeProgress struct {
	printf func(format string, args ...any)
	before map[string]string // the checksums of the configurations by the names of their Secrets
	read   func(context.Context) (wanted map[string]string, nodes []corev1.Node, err error)
}

// follow reads the nodes again and again, and for the last time after done is closed. A read that fails is repeated,
// because API servers restart during a rotation.
func (p nodeProgress) follow(ctx context.Context, done <-chan struct{}) {
	seen := map[string]bool{}
	for last := false; ; {
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		wanted, nodes, err := p.read(reading)
		cancel()
		for _, n := range updated(nodes, p.before, wanted) {
			if err == nil && !seen[n] {
				seen[n] = true
				p.printf("Node %s has the new configuration (%d of %d).\n", n, len(seen), len(nodes))
			}
		}
		if last {
			return
		}
		select {
		case <-done:
			last = true
		case <-time.After(rotationPoll):
		}
	}
}

// updated returns the nodes that have applied the current configuration of their pool, if that differs from the one
// before.
func updated(nodes []corev1.Node, before, wanted map[string]string) (names []string) {
	for _, n := range nodes {
		secret := n.Labels[constants.LabelWorkerPoolGardenerNodeAgentSecretName]
		if now := wanted[secret]; now != "" && now != before[secret] && n.Annotations[checksumApplied] == now {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodeConfigurations returns the checksums of the wanted configurations by the names of their Secrets, and the
// nodes.
func nodeConfigurations(ctx context.Context, client *shootclient.Client, key shootclient.Key) (map[string]string, []corev1.Node, error) {
	config, err := client.ShootConfig(ctx, key, false, 10*time.Minute)
	if err != nil {
		return nil, nil, err
	}
	shoot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for shoot %s: %w", key, err)
	}
	secrets, err := shoot.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: constants.GardenRole + "=" + constants.GardenRoleOperatingSystemConfig})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the configurations of the nodes of shoot %s: %w", key, err)
	}
	nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the nodes of shoot %s: %w", key, err)
	}
	wanted := map[string]string{}
	for _, secret := range secrets.Items {
		wanted[secret.Name] = strings.TrimSpace(secret.Annotations[checksumWanted])
	}
	return wanted, nodes.Items, nil
}
