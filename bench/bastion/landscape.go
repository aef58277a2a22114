package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const (
	shootName = "bench"
	timeout   = 5 * time.Minute
)

var bastionResource = schema.GroupVersionResource{
	Group: "operations.gardener.cloud", Version: "v1alpha1", Resource: "bastions",
}

// landscape is a landscape with a seed and a Shoot with one node. It runs until Remove.
type landscape struct {
	*harness.Landscape
	bastions dynamic.ResourceInterface

	node    string // its address
	nodeKey ssh.Signer
}

func startLandscape(ctx context.Context, flags ...string) (*landscape, error) {
	started, err := harness.StartLandscape(ctx, flags...)
	if err != nil {
		return nil, err
	}
	l := &landscape{Landscape: started}
	if err := l.open(ctx); err != nil {
		l.Remove()
		return nil, err
	}
	return l, nil
}

// open creates the clients and the Shoot, and finds its node and the key for it.
func (l *landscape) open(ctx context.Context) error {
	config, err := l.Config(ctx)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	l.bastions = client.Resource(bastionResource).Namespace(harness.Namespace)
	if _, err := l.Run(ctx, "shoot", "create", shootName, "--workers=1", "--wait"); err != nil {
		return err
	}
	secret, err := l.Kube.CoreV1().Secrets(harness.Namespace).Get(ctx, shootName+".ssh-keypair", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if l.nodeKey, err = ssh.ParsePrivateKey(secret.Data["id_rsa"]); err != nil {
		return err
	}
	return l.findNode(ctx)
}

func (l *landscape) findNode(ctx context.Context) error {
	client, err := l.Client(ctx, "shoot", "dev/"+shootName)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, timeout, func() (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) == 0 {
			return false, err
		}
		for _, address := range nodes.Items[0].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				l.node = address.Address
			}
		}
		return l.node != "", nil
	})
}

// configMap creates a ConfigMap, and waits until a watch reports it.
func (l *landscape) configMap(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	maps := l.Kube.CoreV1().ConfigMaps(harness.Namespace)
	events, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
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
	maps := l.Kube.CoreV1().ConfigMaps(harness.Namespace)
	begin := time.Now()
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	err := harness.Poll(ctx, timeout, func() (bool, error) {
		_, err := maps.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	return time.Since(begin), err
}
