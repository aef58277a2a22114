package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// nodeSecrets are the labels of the Secrets that nodes read.
var nodeSecrets = map[string]string{constants.GardenRole: constants.GardenRoleOperatingSystemConfig}

// deployNodeSecrets writes the Secrets for the nodes of each pool into the shoot. Nodes of replaced pools may read
// their Secrets until they are gone.
func (b *botanist) deployNodeSecrets(ctx context.Context) error {
	var objects []client.Object
	names, err := b.nodeSecretNames(ctx)
	if err != nil {
		return err
	}
	for _, p := range b.pools() {
		data := b.nodeConfigs[p.original]
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: node.SecretNamespace, Name: p.secret, Annotations: map[string]string{node.AnnotationChecksumSecret: node.Checksum(data)},
				Labels: labels.Merge(nodeSecrets, map[string]string{constants.LabelWorkerPool: p.Name}),
			},
			Data: map[string][]byte{node.DataKeyOSC: data},
		})
		names = append(names, p.secret)
	}
	slices.Sort(names)
	return b.applyAll(ctx, append(objects, node.RBAC(slices.Compact(names)...)...)...)
}

func (b *botanist) nodeSecretNames(ctx context.Context) (names []string, err error) {
	secrets, err := listNodeSecrets(ctx, b.shootClient)
	for _, secret := range secrets {
		names = append(names, secret.Name)
	}
	return names, err
}

func listNodeSecrets(ctx context.Context, shoot client.Reader) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	if err := shoot.List(ctx, list, client.InNamespace(node.SecretNamespace), client.MatchingLabels(nodeSecrets)); err != nil {
		return nil, fmt.Errorf("listing the Secrets of nodes in the shoot: %w", err)
	}
	return list.Items, nil
}

func listNodes(ctx context.Context, shoot client.Reader) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := shoot.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the Nodes of the shoot: %w", err)
	}
	return list.Items, nil
}

// deleteStaleNodeSecrets deletes the Secrets in the shoot that no node reads any more.
func (b *botanist) deleteStaleNodeSecrets(ctx context.Context) error {
	names, err := b.nodeSecretNames(ctx)
	if err != nil {
		return err
	}
	var wanted []string
	for _, p := range b.pools() {
		wanted = append(wanted, p.secret)
	}
	stale := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(wanted, name) })
	for _, name := range stale {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: node.SecretNamespace, Name: name}}
		if err := b.shootClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s/%s in the shoot: %w", secret.Namespace, name, err)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(wanted)
	return b.applyAll(ctx, node.RBAC(wanted...)...)
}

// nodesUpdated waits until each node has applied the Secret of its pool, for example with new SSH keys. It ignores
// nodes that are about to be replaced.
func (b *botanist) nodesUpdated(ctx context.Context) error {
	wanted := map[string]string{}
	for _, p := range b.pools() {
		wanted[p.secret] = node.Checksum(b.nodeConfigs[p.original])
	}
	nodes, err := listNodes(ctx, b.shootClient)
	if err != nil {
		return err
	}
	if names := outdated(nodes, wanted); len(names) > 0 {
		return flow.Pending("these nodes have not applied their operating system config yet: %s", strings.Join(names, ", "))
	}
	return nil
}

// deleteNodes deletes all Nodes. Their machines are gone, and no other controller deletes the Nodes while the shoot
// hibernates.
func (b *botanist) deleteNodes(ctx context.Context) error {
	nodes, err := listNodes(ctx, b.shootClient)
	if err != nil {
		return err
	}
	for i := range nodes {
		if err := b.shootClient.Delete(ctx, &nodes[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Node %s of the shoot: %w", nodes[i].Name, err)
		}
	}
	return nil
}

const (
	// machineControllerSecret is the name of the Secret with the kubeconfig of the machine controller.
	machineControllerSecret = "machine-controller-manager"
	kubeconfigKey           = "kubeconfig"
	// machineControllerLife is the validity of its certificate, which is replaced when a fifth of that is left.
	machineControllerLife = 365 * 24 * time.Hour
)

// deployMachineController gives the machine controller access to the shoot.
func (b *botanist) deployMachineController(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: machineControllerSecret}}
	return ensure(ctx, b.SeedClient, b.SeedReader, secret, func(secret *corev1.Secret) error {
		authority := b.authorities[shootsecrets.CAClient].Authority()
		certificate, key := b.currentAccess(secret.Data[kubeconfigKey], authority)
		if certificate == nil {
			var err error
			if certificate, key, err = authority.Client(machineController, nil, landscapeclock.Real(b.Clock), machineControllerLife); err != nil {
				return err
			}
		}
		cluster := &rest.Config{Host: b.url(), TLSClientConfig: rest.TLSClientConfig{CAData: b.bundle()}}
		user := &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
		data, err := controllerutils.Kubeconfig(cluster, machineControllerSecret, user)
		secret.Data = map[string][]byte{kubeconfigKey: data}
		return err
	})
}

// currentAccess returns the certificate and key in a kubeconfig, nil if they have to be replaced.
func (b *botanist) currentAccess(kubeconfig []byte, authority shootsecrets.Authority) (certificate, key []byte) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || len(kubeconfig) == 0 {
		return nil, nil
	}
	for _, info := range config.AuthInfos {
		if authority.Signed(info.ClientCertificateData, b.Clock, machineControllerLife/5) {
			return info.ClientCertificateData, info.ClientKeyData
		}
	}
	return nil, nil
}
