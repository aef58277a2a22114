package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	namespace = "garden-dev"
	shootName = "bench"
	patience  = 5 * time.Minute
)

var (
	shoots   = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}
	bastions = schema.GroupVersionResource{Group: "operations.gardener.cloud", Version: "v1alpha1", Resource: "bastions"}
)

// landscape is a landscape with a seed and a Shoot with one node. It runs until Stop.
type landscape struct {
	*harness.Landscape
	kube kubernetes.Interface
	dyn  dynamic.Interface

	node    string // its address
	nodeKey ssh.Signer
}

func startLandscape(ctx context.Context, binary string, flags ...string) (*landscape, error) {
	started, err := harness.StartLandscape(ctx, binary, flags...)
	if err != nil {
		return nil, err
	}
	l := &landscape{Landscape: started}
	if err := l.open(ctx); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

// open creates the clients and the Shoot.
func (l *landscape) open(ctx context.Context) error {
	config, err := l.Config()
	if err != nil {
		return err
	}
	if l.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if l.dyn, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	return l.openShoot(ctx)
}

const shootManifest = `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: bench, namespace: garden-dev}
spec:
  cloudProfile: {kind: CloudProfile, name: local}
  credentialsBindingName: sample
  region: local
  purpose: testing
  kubernetes: {version: 1.36.0}
  networking: {type: local, nodes: 10.10.0.0/16, pods: 10.11.0.0/16, services: 10.12.0.0/16}
  provider:
    type: local
    workers:
    - {name: worker, minimum: 1, maximum: 1, machine: {type: local, image: {name: local, version: 1.0.0}}, zones: [local-a]}
`

// openShoot creates the Shoot, and finds its node and the key for it.
func (l *landscape) openShoot(ctx context.Context) error {
	shoot := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(shootManifest), &shoot.Object); err != nil {
		return err
	}
	if _, err := l.dyn.Resource(shoots).Namespace(namespace).Create(ctx, shoot, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a shoot: %w", err)
	}
	if err := harness.Poll(ctx, patience, func() (bool, error) {
		now, err := l.dyn.Resource(shoots).Namespace(namespace).Get(ctx, shootName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		state, _, _ := unstructured.NestedString(now.Object, "status", "lastOperation", "state")
		return state == "Succeeded", nil
	}); err != nil {
		return fmt.Errorf("waiting for a shoot: %w", err)
	}
	secret, err := l.kube.CoreV1().Secrets(namespace).Get(ctx, shootName+".ssh-keypair", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if l.nodeKey, err = ssh.ParsePrivateKey(secret.Data["id_rsa"]); err != nil {
		return err
	}
	return l.findNode(ctx)
}

func (l *landscape) findNode(ctx context.Context) error {
	data, err := l.Run(ctx, "kubeconfig", "shoot", "dev/"+shootName)
	if err != nil {
		return fmt.Errorf("asking for a kubeconfig of the shoot: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, patience, func() (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, node := range nodes.Items {
			for _, address := range node.Status.Addresses {
				if address.Type == corev1.NodeInternalIP {
					l.node = address.Address
				}
			}
		}
		return l.node != "", nil
	})
}

// configMap creates a ConfigMap, and waits until a watch reports it.
func (l *landscape) configMap(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	maps := l.kube.CoreV1().ConfigMaps(namespace)
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	events, err := maps.Watch(ctx, one)
	if err != nil {
		return err
	}
	defer events.Stop()
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for event := range events.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); ok && m.Name == name {
			return nil
		}
	}
	return errors.New("the watch has ended")
}

// deleteConfigMap deletes a ConfigMap, and returns how long it takes until it is gone.
func (l *landscape) deleteConfigMap(ctx context.Context, name string) (time.Duration, error) {
	maps := l.kube.CoreV1().ConfigMaps(namespace)
	begin := time.Now()
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	err := harness.Poll(ctx, patience, func() (bool, error) {
		_, err := maps.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	return time.Since(begin), err
}
