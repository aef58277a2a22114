package sshclient

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

const (
	// kubeconfigLife is the validity of the kubeconfig for listing the nodes: the shortest one that is possible.
	kubeconfigLife = 10 * time.Minute
	sshPort        = "22"
	keyPrivate     = "id_rsa"
)

// Node is a node of a Shoot.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Ready   bool   `json:"ready"`
}

// Endpoint returns the address of the node's SSH server in the Shoot's network.
func (n Node) Endpoint() string { return net.JoinHostPort(n.Address, sshPort) }

// Nodes returns the nodes of a Shoot, sorted by name.
func (c *Client) Nodes(ctx context.Context, key shootclient.Key) ([]Node, error) {
	config, err := c.shoots.ShootConfig(ctx, key, false, kubeconfigLife)
	if err != nil {
		return nil, err
	}
	shoot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the shoot %s: %w", key, err)
	}
	list, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of the shoot %s: %w", key, err)
	}
	nodes := make([]Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = nodeOf(&list.Items[i])
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

func nodeOf(node *corev1.Node) Node {
	n := Node{Name: node.Name}
	for _, address := range node.Status.Addresses {
		// The API server does not check addresses, and what is none must not get into the configuration of ssh.
		if _, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP && n.Address == "" {
			n.Address = address.Address
		}
	}
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	n.Ready = ready != nil && ready.Status == corev1.ConditionTrue
	return n
}

// Choose returns the wanted node: by its name, or by a prefix or suffix that only one name has. If wanted is empty, it
// returns the first node that is ready.
func Choose(nodes []Node, wanted string) (Node, error) {
	if len(nodes) == 0 {
		return Node{}, fmt.Errorf("the shoot has no nodes: wait until \"gardenlite shoot list\" shows some")
	}
	var found []Node
	for _, node := range nodes {
		if wanted != "" && node.Name == wanted {
			found = []Node{node}
			break
		}
		if wanted == "" && node.Ready && node.Address != "" && len(found) == 0 ||
			wanted != "" && (strings.HasPrefix(node.Name, wanted) || strings.HasSuffix(node.Name, wanted)) {
			found = append(found, node)
		}
	}
	switch {
	case len(found) == 0 && wanted == "":
		return Node{}, fmt.Errorf("no node of the shoot is ready; say which one to go to nevertheless: %s", names(nodes))
	case len(found) == 0:
		return Node{}, fmt.Errorf("the shoot has no node %q; it has: %s", wanted, names(nodes))
	case len(found) > 1:
		return Node{}, fmt.Errorf("%q can be each of these nodes, say more of the name: %s", wanted, names(found))
	case found[0].Address == "":
		return Node{}, fmt.Errorf("the node %s has no address yet: try again in a moment", found[0].Name)
	}
	return found[0], nil
}

func names(nodes []Node) string {
	all := make([]string, len(nodes))
	for i, node := range nodes {
		all[i] = node.Name
	}
	return strings.Join(all, ", ")
}

// NodeKeys returns the private keys for the nodes of a Shoot, in a format that OpenSSH reads. During a rotation, the
// second key is the old one.
func (c *Client) NodeKeys(ctx context.Context, shoot *corev1beta1.Shoot) ([][]byte, error) {
	var keys [][]byte
	for _, suffix := range []string{".ssh-keypair", ".ssh-keypair.old"} {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: shoot.Namespace, Name: shoot.Name + suffix}
		err := c.garden.Get(ctx, key, secret)
		switch {
		case apierrors.IsNotFound(err) && len(keys) > 0:
			continue
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf(
				"there is no key for the nodes of shoot %s, the secret %s: it is there when the shoot has been reconciled", shoot.Name, key)
		case err != nil:
			return nil, fmt.Errorf("reading the key for the nodes of shoot %s: %w", shoot.Name, err)
		}
		if _, err := ssh.ParsePrivateKey(secret.Data[keyPrivate]); err != nil {
			return nil, fmt.Errorf("the key for the nodes in the secret %s cannot be read: %w", key, err)
		}
		keys = append(keys, secret.Data[keyPrivate])
	}
	return keys, nil
}
