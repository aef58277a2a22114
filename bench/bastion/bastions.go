package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/bench/harness"
)

// bastion is a ready Bastion, with the key that opens it.
type bastion struct {
	name, address string
	key           ssh.Signer
	expires       time.Time
}

// newBastion creates a Bastion and waits until a watch says that it is ready, as clients do.
func (l *landscape) newBastion(ctx context.Context, name string) (*bastion, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b := &bastion{name: name}
	var err error
	if b.key, err = newKey(); err != nil {
		return nil, err
	}
	if _, err := l.bastions.Create(ctx, l.object(b), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating bastion %s: %w", name, err)
	}
	events, err := l.bastions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("watching bastion %s: %w", name, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if obj, ok := event.Object.(*unstructured.Unstructured); ok && b.read(obj) {
			return b, nil
		}
	}
	return nil, fmt.Errorf("bastion %s is not ready in time", name)
}

func newKey() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

func (l *landscape) object(b *bastion) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operations.gardener.cloud/v1alpha1", "kind": "Bastion",
		"metadata": map[string]any{"name": b.name, "namespace": harness.Namespace},
		"spec": map[string]any{
			"shootRef": map[string]any{"name": shootName}, "sshPublicKey": string(ssh.MarshalAuthorizedKey(b.key.PublicKey())),
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "127.0.0.0/8"}}},
		},
	}}
}

// read reads what a client needs of a Bastion, and reports whether the Bastion is ready.
func (b *bastion) read(obj *unstructured.Unstructured) (ready bool) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, condition := range conditions {
		c, _ := condition.(map[string]any)
		ready = ready || c["type"] == "BastionReady" && c["status"] == "True"
	}
	ip, _, _ := unstructured.NestedString(obj.Object, "status", "ingress", "ip")
	expires, _, _ := unstructured.NestedString(obj.Object, "status", "expirationTimestamp")
	b.expires, _ = time.Parse(time.RFC3339, expires)
	port := obj.GetAnnotations()["gardenlite.dev/ssh-port"]
	if port == "" {
		port = "22"
	}
	b.address = net.JoinHostPort(ip, port)
	return ready && ip != ""
}

// deleteBastions deletes Bastions and waits until they are gone.
func (l *landscape) deleteBastions(ctx context.Context, gone ...*bastion) error {
	for _, b := range gone {
		if err := l.bastions.Delete(ctx, b.name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting bastion %s: %w", b.name, err)
		}
	}
	for _, b := range gone {
		if err := harness.Poll(ctx, timeout, func() (bool, error) {
			_, err := l.bastions.Get(ctx, b.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}); err != nil {
			return fmt.Errorf("waiting until bastion %s is gone: %w", b.name, err)
		}
	}
	return nil
}
