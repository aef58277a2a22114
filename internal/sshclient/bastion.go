package sshclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

const (
	// annotationSSHPort is the annotation with the port of a bastion. Without it, the port is 22.
	annotationSSHPort = operation.AnnotationSSHPort
	// watchAgain is the delay before a Bastion is watched again.
	watchAgain = 200 * time.Millisecond
	// keepAliveRetry is the delay after a failed heartbeat. The shortest time to live is 10 s.
	keepAliveRetry = 2 * time.Second
)

// NewBastion returns a Bastion for a Shoot, with a random name. It accepts one key, from clients in the CIDRs.
func NewBastion(shoot *corev1beta1.Shoot, publicKey string, cidrs []string) *operationsv1alpha1.Bastion {
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: "cli-" + strings.ToLower(rand.Text()[:8])},
		Spec:       operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: shoot.Name}, SSHPublicKey: publicKey},
	}
	for _, cidr := range cidrs {
		bastion.Spec.Ingress = append(bastion.Spec.Ingress, operationsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: cidr}})
	}
	return bastion
}

// Create creates a Bastion in the garden.
func (c *Client) Create(ctx context.Context, bastion *operationsv1alpha1.Bastion) error {
	if err := c.garden.Create(ctx, bastion); err != nil {
		return fmt.Errorf("creating the bastion %s: %w", client.ObjectKeyFromObject(bastion), err)
	}
	return nil
}

// Bastions returns the Bastions of a Shoot.
func (c *Client) Bastions(ctx context.Context, shoot *corev1beta1.Shoot) ([]operationsv1alpha1.Bastion, error) {
	all := &operationsv1alpha1.BastionList{}
	if err := c.garden.List(ctx, all, client.InNamespace(shoot.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the bastions of shoot %s: %w", shoot.Name, err)
	}
	return slices.DeleteFunc(all.Items,
		func(b operationsv1alpha1.Bastion) bool { return b.Spec.ShootRef.Name != shoot.Name }), nil
}

// Find reads a Bastion of a Shoot.
func (c *Client) Find(ctx context.Context, shoot *corev1beta1.Shoot, name string) (*operationsv1alpha1.Bastion, error) {
	bastion := &operationsv1alpha1.Bastion{}
	err := c.garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, bastion)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no bastion %q: \"kubectl -n %s get bastions\" shows those that there are; without "+
			"--bastion there will be a new one", name, shoot.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading the bastion %s: %w", name, err)
	case bastion.Spec.ShootRef.Name != shoot.Name:
		return nil, fmt.Errorf("the bastion %s leads to the shoot %s, not to %s", name, bastion.Spec.ShootRef.Name, shoot.Name)
	case bastion.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the bastion %s is being deleted: without --bastion there will be a new one", name)
	}
	return bastion, nil
}

// Wait waits until a Bastion is ready and returns it. It calls report with the reason for not being ready when that
// changes.
func (c *Client) Wait(ctx context.Context, bastion *operationsv1alpha1.Bastion, report func(string)) (*operationsv1alpha1.Bastion, error) {
	said := ""
	say := func(text string) {
		if text != "" && text != said {
			said = text
			report(text)
		}
	}
	for {
		ready, err := c.follow(ctx, bastion, say)
		if ready != nil || err != nil && ctx.Err() == nil {
			return ready, err
		}
		select {
		case <-ctx.Done():
			return nil, c.notReady(ctx, bastion, said)
		case <-c.clock.After(watchAgain):
		}
	}
}

func (c *Client) notReady(ctx context.Context, bastion *operationsv1alpha1.Bastion, said string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if said == "" {
		said = "it has no condition yet: does the gardenlet of its seed run? \"gardenlite status\" shows it"
	}
	return fmt.Errorf("the bastion %s is not ready: %s. \"kubectl -n %s get bastion %[1]s -o yaml\" shows more, --timeout waits longer",
		bastion.Name, said, bastion.Namespace)
}

// follow watches a Bastion until it is ready. It returns neither a Bastion nor an error if the watch must be started
// again.
func (c *Client) follow(ctx context.Context, bastion *operationsv1alpha1.Bastion, say func(string)) (*operationsv1alpha1.Bastion, error) {
	events, err := c.garden.Watch(ctx, &operationsv1alpha1.BastionList{}, client.InNamespace(bastion.Namespace),
		client.MatchingFields{"metadata.name": bastion.Name})
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return nil, fmt.Errorf("watching the bastion %s: %w", bastion.Name, err)
	} else if err != nil {
		if ctx.Err() == nil {
			say("it cannot be watched: " + err.Error())
		}
		return nil, nil
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, open := <-events.ResultChan():
			now, ok := e.Object.(*operationsv1alpha1.Bastion)
			switch {
			case !open:
				return nil, nil
			case !ok || now.Name != bastion.Name:
				continue
			case e.Type == watch.Deleted || now.DeletionTimestamp != nil:
				return nil, fmt.Errorf("the bastion %s is being deleted: look at its shoot with \"kubectl -n %s get shoot %s\", and try again",
					now.Name, now.Namespace, now.Spec.ShootRef.Name)
			}
			ready, why := readiness(now)
			if ready {
				return now, nil
			}
			say(why)
		}
	}
}

// readiness reports whether a Bastion can be used, and if not, why.
func readiness(bastion *operationsv1alpha1.Bastion) (bool, string) {
	for _, condition := range bastion.Status.Conditions {
		if condition.Type != operationsv1alpha1.BastionReady {
			continue
		}
		if condition.Status != corev1beta1.ConditionTrue {
			return false, condition.Message
		}
		if _, err := Endpoint(bastion); err != nil {
			return false, err.Error()
		}
		return true, ""
	}
	return false, ""
}

// Endpoint returns the host and port of a Bastion that is ready.
func Endpoint(bastion *operationsv1alpha1.Bastion) (string, error) {
	ingress := bastion.Status.Ingress
	if ingress == nil || ingress.IP == "" && ingress.Hostname == "" {
		return "", fmt.Errorf("the bastion %s has no address", bastion.Name)
	}
	// The API server does not check what the gardenlet writes, and it gets into the configuration of ssh.
	host, port := ingress.IP, bastion.Annotations[annotationSSHPort]
	if host == "" {
		host = ingress.Hostname
		if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
			return "", fmt.Errorf("the bastion %s has the host name %q: %s", bastion.Name, host, strings.Join(problems, ", "))
		}
	} else if _, err := netip.ParseAddr(host); err != nil || !isAddress(host) {
		return "", fmt.Errorf("the bastion %s has the invalid address %q", bastion.Name, host)
	}
	port = cmp.Or(port, sshPort)
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("the annotation %s of the bastion %s is %q, which is no port", annotationSSHPort, bastion.Name, port)
	}
	return net.JoinHostPort(host, port), nil
}

// Heartbeat prolongs the life of a Bastion, and returns it with its new expiration.
func (c *Client) Heartbeat(ctx context.Context, bastion *operationsv1alpha1.Bastion) (*operationsv1alpha1.Bastion, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.GardenerOperation, constants.GardenerOperationKeepalive)
	alive := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: bastion.Namespace, Name: bastion.Name}}
	if err := c.garden.Patch(ctx, alive, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, fmt.Errorf("keeping the bastion %s alive: %w", bastion.Name, err)
	}
	return alive, nil
}

// KeepAlive keeps a Bastion alive until the context ends: it sends a heartbeat at once, then each time that a third of the
// time to live has passed, and again soon if one fails. report is called with the first of several failures in a row.
func (c *Client) KeepAlive(ctx context.Context, bastion *operationsv1alpha1.Bastion, report func(error)) {
	failed := false
	for ctx.Err() == nil {
		alive, err := c.Heartbeat(ctx, bastion)
		interval := keepAliveRetry
		if err == nil {
			interval = keepAliveInterval(alive)
		} else if !failed && ctx.Err() == nil {
			report(err)
		}
		failed = err != nil
		timer := c.clock.NewTimer(interval)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

func keepAliveInterval(bastion *operationsv1alpha1.Bastion) time.Duration {
	beat, end := bastion.Status.LastHeartbeatTimestamp, bastion.Status.ExpirationTimestamp
	if beat == nil || end == nil {
		return keepAliveRetry
	}
	return max(end.Sub(beat.Time)/3, time.Second)
}

// Delete deletes a Bastion. It returns no error if the Bastion does not exist.
func (c *Client) Delete(ctx context.Context, bastion *operationsv1alpha1.Bastion) error {
	if err := c.garden.Delete(ctx, bastion.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the bastion %s: %w; it expires by itself, or: kubectl -n %s delete bastion %[1]s",
			bastion.Name, err, bastion.Namespace)
	}
	return nil
}
