package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
)

const (
	retryFirst = time.Second
	retryMax   = time.Minute
	// pollFirst and pollMax bound the backoff while the agent waits for the kubelet's certificate, then for the Node.
	pollFirst = 250 * time.Millisecond
	pollMax   = 5 * time.Second

	// checkInterval is the period in which the agent restores applied files that were changed on the machine.
	checkInterval = 30 * time.Second
)

// Agent is gardener-node-agent on one machine.
type Agent struct {
	host host.Host
	// pending are the units that have changed and have not been restarted since.
	pending map[string]bool
	// node is the UID of the Node, once it is known.
	node types.UID
}

// Run runs gardener-node-agent until the context ends. It retries after every error but an invalid configuration.
func Run(ctx context.Context, h host.Host) error {
	a := &Agent{host: h, pending: map[string]bool{}}
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for {
		config, err := a.config()
		if err != nil {
			return err
		}
		if err = a.follow(ctx, config, &backoff); ctx.Err() != nil {
			return nil
		}
		wait := backoff.Next()
		a.host.Logf("going on in %s: %v", wait.Round(time.Millisecond), err)
		if host.Sleep(ctx, a.host.Clock, wait) != nil {
			return nil
		}
	}
}

func (a *Agent) config() (node.AgentConfig, error) {
	data, err := a.host.Files.ReadFile(node.PathAgentConfig)
	if err != nil {
		return node.AgentConfig{}, fmt.Errorf("reading the configuration of gardener-node-agent: %w", err)
	}
	config, err := node.ParseAgentConfig(data)
	if err == nil {
		config.APIServer, err = a.host.Server(config.APIServer)
	}
	return config, err
}

// follow applies the Secret and each change of it, until the watch ends or an error occurs.
func (a *Agent) follow(ctx context.Context, config node.AgentConfig, backoff *host.Backoff) error {
	client, bootstrapping, err := a.connect(config)
	if err != nil {
		return err
	}
	defer client.Close()
	secret, err := client.Core.Secrets(node.SecretNamespace).Get(ctx, config.SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the OperatingSystemConfig of the node: %w", err)
	}
	if err := a.apply(ctx, secret); err != nil {
		return err
	}
	if bootstrapping {
		if err := a.awaitCertificate(ctx); err != nil {
			return err
		}
		backoff.Reset()
		return errors.New("the kubelet has its certificate")
	}
	if err := a.report(ctx, client, secret); err != nil {
		return err
	}
	backoff.Reset()
	if a.changed(config) {
		return errors.New("the configuration has changed")
	}
	return a.watch(ctx, client, config, secret)
}

// watch applies each change of the Secret, and restores files that were changed on the machine: it removes, for
// example, a key that was added to the authorized keys.
func (a *Agent) watch(ctx context.Context, client *apiclient.Client, config node.AgentConfig, applied *corev1.Secret) error {
	// Without a version, the watch begins with the Secret as it is. From the Secret's version, the API server refuses a watch
	// when it has started again or has many newer changes.
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + config.SecretName}
	w, err := client.Core.Secrets(node.SecretNamespace).Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching the OperatingSystemConfig of the node: %w", err)
	}
	defer w.Stop()
	if err := a.renewLease(ctx, client, config); err != nil {
		return err
	}
	ticker := a.host.Clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C():
			if err := errors.Join(a.restoreFiles(applied), a.renewLease(ctx, client, config)); err != nil {
				return err
			}
			continue
		case event, open := <-w.ResultChan():
			secret, err := apiclient.ObjectOf[*corev1.Secret](event, open)
			if errors.Is(err, io.EOF) {
				return errors.New("the watch has ended")
			}
			if err != nil {
				return err
			}
			if event.Type == watch.Deleted { // the pool is being deleted, or the machine will get another Secret
				continue
			}
			if secret.ResourceVersion == applied.ResourceVersion {
				continue
			}
			applied = secret
		}
		if err := a.apply(ctx, applied); err != nil {
			return err
		}
		if err := a.report(ctx, client, applied); err != nil {
			return err
		}
		if a.changed(config) {
			return errors.New("the configuration has changed")
		}
	}
}

// changed reports whether the applied files contain another configuration of the agent. The agent then starts over with
// it, because it cannot restart its own unit.
func (a *Agent) changed(config node.AgentConfig) bool {
	now, err := a.config()
	return err == nil && now != config
}

// connect returns a client with the kubelet's certificate, or with the bootstrap token if there is no certificate yet.
func (a *Agent) connect(config node.AgentConfig) (client *apiclient.Client, bootstrapping bool, err error) {
	credentials := apiclient.Credentials{Server: config.APIServer, CA: []byte(config.CA)}
	credentials.Certificate, err = a.host.Files.ReadFile(node.PathKubeletClient)
	if errors.Is(err, fs.ErrNotExist) {
		bootstrapping = true
		credentials.Token, err = a.token()
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the credentials of the node: %w", err)
	}
	client, err = apiclient.New(credentials)
	return client, bootstrapping, err
}

// awaitCertificate waits until the kubelet has its certificate.
func (a *Agent) awaitCertificate(ctx context.Context) error {
	backoff := host.Backoff{First: pollFirst, Max: pollMax}
	for {
		if _, err := a.host.Files.ReadFile(node.PathKubeletClient); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := host.Sleep(ctx, a.host.Clock, backoff.Next()); err != nil {
			return err
		}
	}
}

// report writes the applied checksum and Kubernetes version to the Node, as soon as there is a Node. Then it removes
// the bootstrap token, which is not needed any more.
func (a *Agent) report(ctx context.Context, client *apiclient.Client, secret *corev1.Secret) error {
	data, err := a.host.Files.ReadFile(node.PathKubeletConfig)
	if err != nil {
		return fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	kubelet, err := node.ParseKubeletConfig(data)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{node.AnnotationChecksum: checksum(secret)},
		"labels":      map[string]string{node.LabelKubernetesVersion: kubelet.KubernetesVersion},
	}})
	if err != nil {
		return err
	}
	backoff := host.Backoff{First: pollFirst, Max: pollMax}
	for {
		is, err := client.Core.Nodes().Patch(ctx, a.host.Hostname, types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			a.node = is.UID
			a.host.Logf("the node has what Secret %s/%s says", node.SecretNamespace, secret.Name)
			break
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("telling what the node has: %w", err)
		}
		if err := host.Sleep(ctx, a.host.Clock, backoff.Next()); err != nil {
			return err
		}
	}
	for _, path := range []string{node.PathBootstrapToken, node.PathKubeconfigBootstrap} {
		if err := a.host.Files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s, which is not needed any more: %w", path, err)
		}
	}
	return nil
}

// checksum returns the checksum in the Secret's annotation, or else that of its content.
func checksum(secret *corev1.Secret) string {
	return cmp.Or(secret.Annotations[node.AnnotationChecksumSecret], node.Checksum(secret.Data[node.DataKeyOSC]))
}
