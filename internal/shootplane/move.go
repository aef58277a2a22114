package shootplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// kubeconfigKey is the key of kubeconfigs in Secrets.
const kubeconfigKey = "kubeconfig"

// MovePorts gives the control planes of a seed other ports if another program listens at theirs, and changes what names them in the
// seed. It is called before anything works on the seed: the other program may be a landscape with the same authorities, because both
// began with one snapshot, and would obey the components of this one.
func (h *Host) MovePorts(ctx context.Context, seed client.Client) error {
	entries, err := os.ReadDir(h.ports.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		id := entry.Name()
		before := h.ports.recorded(id)
		if before == 0 || canListen(before) {
			continue
		}
		service := &corev1.Service{}
		if err := seed.Get(ctx, client.ObjectKey{Namespace: id, Name: spec.ServiceName}, service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the Service of a control plane: %w", err)
		} else if err != nil {
			continue // it is in another seed
		}
		after, err := h.ports.take(id)
		if err != nil {
			return err
		}
		if err := move(ctx, seed, service, before, after); err != nil {
			return fmt.Errorf("moving the control plane of the shoot %s to another port: %w", id, err)
		}
		if err := h.ports.keep(id, after); err != nil {
			return err
		}
		h.cfg.Log.Info("Another program listens at the port of a shoot: it has another one", "shoot", id, "before", before, "after", after)
	}
	return nil
}

// move changes the address in the Service, in the kubeconfigs beside it, and at the Deployment of Gardener's gardenlet.
func move(ctx context.Context, seed client.Client, service *corev1.Service, before, after int) error {
	from, to := net.JoinHostPort(address, strconv.Itoa(before)), net.JoinHostPort(address, strconv.Itoa(after))
	secrets := &corev1.SecretList{}
	if err := seed.List(ctx, secrets, client.InNamespace(service.Namespace)); err != nil {
		return err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		changed := bytes.ReplaceAll(secret.Data[kubeconfigKey], []byte(from), []byte(to))
		if bytes.Equal(changed, secret.Data[kubeconfigKey]) {
			continue
		}
		secret.Data[kubeconfigKey] = changed
		if err := seed.Update(ctx, secret); err != nil {
			return err
		}
	}
	deployment := &appsv1.Deployment{}
	err := seed.Get(ctx, client.ObjectKey{Namespace: service.Namespace, Name: spec.APIServer}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if old := deployment.DeepCopy(); err == nil && deployment.Annotations[spec.AnnotationAddress] == from {
		deployment.Annotations[spec.AnnotationAddress] = to
		if err := seed.Patch(ctx, deployment, client.MergeFrom(old)); err != nil {
			return err
		}
	}
	old := service.DeepCopy()
	for i := range service.Status.LoadBalancer.Ingress {
		for j := range service.Status.LoadBalancer.Ingress[i].Ports {
			service.Status.LoadBalancer.Ingress[i].Ports[j].Port = int32(after) //nolint:gosec // a port
		}
	}
	return seed.Status().Patch(ctx, service, client.MergeFrom(old))
}
