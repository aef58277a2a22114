package bastionsim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

const (
	// TagBastion is the tag of the instance of a Bastion. Its value is the namespace of the Bastion.
	TagBastion = "extensions.gardener.cloud/bastion-namespace"
	// BootTimeout is how long an operation waits for a bastion to boot, which takes milliseconds, before it is requeued.
	BootTimeout = time.Second
	maxHostname = 63
)

// Cloud is the part of cloud.Cloud that the provider uses.
type Cloud interface {
	EnsureInstance(ctx context.Context, spec cloud.InstanceSpec) (cloud.Instance, error)
	DeleteInstance(ctx context.Context, id string) error
	Instance(id string) (cloud.Instance, bool)
	Instances(network string) []cloud.Instance
	UpdateIngress(ctx context.Context, id string, rules bastionspec.Ingress) error
	Ready(id string) <-chan struct{}
}

// Provider runs a Bastion as an instance with a public address in the network of its shoot.
type Provider struct {
	Cloud Cloud
	Clock clock.WithTicker
}

// Reconcile creates the instance, and reports its address when it can be reached.
func (b Provider) Reconcile(ctx context.Context, seed client.Client, bastion *extensionsv1alpha1.Bastion) error {
	address, err := b.ensure(ctx, seed, bastion)
	if wait := (*operation.Wait)(nil); errors.As(err, &wait) {
		return err
	}
	if err != nil {
		b.setReady(bastion, corev1beta1.ConditionFalse, "FailedReconciling", err.Error())
		return err
	}
	// The annotation with the port is written before the status, so that clients that see the status find the port. A
	// copy is patched, because the status of the object is not written yet.
	port := strconv.Itoa(int(address.Port()))
	err = operation.Patch(ctx, seed, bastion.DeepCopy(), func(bastion *extensionsv1alpha1.Bastion) {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, operation.AnnotationSSHPort, port)
	})
	if err != nil {
		return err
	}
	bastion.Status.Ingress = &corev1.LoadBalancerIngress{IP: address.Addr().String()}
	b.setReady(bastion, corev1beta1.ConditionTrue, "SuccessfullyReconciled", "The bastion has been reconciled successfully.")
	return nil
}

// Guard sets the firewall of a Bastion's instance to the ingress of the spec. The firewall admits no client if the spec
// cannot be applied or the Bastion is being deleted. Guard cuts connections that the firewall does not allow any more.
func (b Provider) Guard(ctx context.Context, bastion *extensionsv1alpha1.Bastion) error {
	ingress, problem := ingressOf(bastion)
	if bastion.DeletionTimestamp != nil {
		ingress, problem = nil, nil
	}
	id := InstanceID(bastion)
	if instance, ok := b.Cloud.Instance(id); !ok || instance.Network != bastion.Namespace {
		return problem
	}
	if err := b.Cloud.UpdateIngress(ctx, id, ingress); err != nil && !errors.Is(err, cloud.ErrNotFound) && !errors.Is(err, cloud.ErrDeleting) {
		return errors.Join(problem, fmt.Errorf("updating the firewall of Bastion %s/%s: %w", bastion.Namespace, bastion.Name, err))
	}
	return problem
}

// ensure updates the firewall, creates the instance, and returns its public address once it has booted.
func (b Provider) ensure(ctx context.Context, seed client.Client, bastion *extensionsv1alpha1.Bastion) (netip.AddrPort, error) {
	id := InstanceID(bastion)
	if err := b.Guard(ctx, bastion); err != nil {
		return netip.AddrPort{}, err
	}
	ingress, err := ingressOf(bastion)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(bastion.Spec.UserData) > cloud.MaxUserData {
		return netip.AddrPort{}, operation.ConfigurationProblem(fmt.Errorf("spec.userData of Bastion %s/%s has %d bytes, more than %d",
			bastion.Namespace, bastion.Name, len(bastion.Spec.UserData), cloud.MaxUserData))
	}
	if err := b.credentials(ctx, seed, bastion.Namespace); err != nil {
		return netip.AddrPort{}, err
	}
	if _, err := cluster.Shoot(ctx, seed, bastion.Namespace); err != nil {
		return netip.AddrPort{}, err
	}
	instance, err := b.Cloud.EnsureInstance(ctx, cloud.InstanceSpec{
		ID: id, Network: bastion.Namespace, Hostname: bastionHostname(id, bastion.Name), UserData: bastion.Spec.UserData,
		Tags: map[string]string{TagBastion: bastion.Namespace},
		Public: &cloud.PublicSpec{
			Ingress: ingress, Forward: map[string]string{cloud.TagMachine: bastion.Namespace},
		},
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return netip.AddrPort{}, &operation.Error{
			Err:   fmt.Errorf("the shoot has no network %s in the cloud; it has one when its Infrastructure is ready: %w", bastion.Namespace, err),
			Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorRetryableInfraDependencies},
		}
	} else if err != nil {
		return netip.AddrPort{}, fmt.Errorf("creating the instance of Bastion %s/%s in the cloud: %w", bastion.Namespace, bastion.Name, err)
	}
	return b.waitBooted(ctx, bastion, instance)
}

// credentials checks that the shoot has credentials, because a real cloud does nothing without them.
func (b Provider) credentials(ctx context.Context, seed client.Reader, namespace string) error {
	key := client.ObjectKey{Namespace: namespace, Name: constants.SecretNameCloudProvider}
	if err := seed.Get(ctx, key, &corev1.Secret{}); err != nil {
		return fmt.Errorf("reading the credentials for the cloud in Secret %s: %w", key, err)
	}
	return nil
}

// waitBooted waits at most BootTimeout until the instance has booted, and returns its public address.
func (b Provider) waitBooted(ctx context.Context, bastion *extensionsv1alpha1.Bastion, instance cloud.Instance) (netip.AddrPort, error) {
	if instance.State == cloud.Pending {
		select {
		case <-b.Cloud.Ready(instance.ID):
		case <-b.Clock.After(BootTimeout):
		case <-ctx.Done():
			return netip.AddrPort{}, context.Cause(ctx)
		}
		instance, _ = b.Cloud.Instance(instance.ID)
	}
	switch {
	case instance.State == cloud.Running && instance.Message == "":
		return instance.PublicAddress, nil
	case instance.State == cloud.Running:
		return netip.AddrPort{}, operation.ConfigurationProblem(fmt.Errorf("the user data of Bastion %s/%s went wrong on the instance %s: %s",
			bastion.Namespace, bastion.Name, instance.ID, instance.Message))
	case instance.State == cloud.Pending && instance.Message == "":
		return netip.AddrPort{}, &operation.Wait{For: "the instance " + instance.ID + " to boot", After: BootTimeout, Progress: 50}
	case instance.State == cloud.Stopped:
		return netip.AddrPort{}, fmt.Errorf("the instance %s was powered off from within; delete the Bastion and make another one", instance.ID)
	}
	err := fmt.Errorf("the instance %s is %s: %s", instance.ID, instance.State, instance.Message)
	if instance.State == cloud.Failed && bastion.Status.Ingress == nil { // no client knows its address yet
		err = errors.Join(err, b.Cloud.DeleteInstance(ctx, instance.ID))
	}
	return netip.AddrPort{}, err
}

func (b Provider) setReady(bastion *extensionsv1alpha1.Bastion, status corev1beta1.ConditionStatus, reason, message string) {
	condition := corev1beta1.Condition{Type: operationsv1alpha1.BastionReady, Status: status, Reason: reason, Message: message}
	bastion.Status.Conditions, _ = conditions.Set(bastion.Status.Conditions, condition, b.Clock)
}

// Delete ends every session and deletes the instance with its address. It needs no credentials, so that it never blocks
// the deletion of a shoot.
func (b Provider) Delete(ctx context.Context, _ client.Client, bastion *extensionsv1alpha1.Bastion) error {
	id := InstanceID(bastion)
	if instance, ok := b.Cloud.Instance(id); ok && instance.Network != bastion.Namespace {
		return nil // the instance of another namespace
	}
	if err := b.Cloud.DeleteInstance(ctx, id); err != nil {
		return fmt.Errorf("deleting the instance of Bastion %s/%s from the cloud: %w", bastion.Namespace, bastion.Name, err)
	}
	return nil
}

// DeleteOrphans deletes the instances in a namespace whose Bastion is gone although its finalizer was not released.
func DeleteOrphans(ctx context.Context, seed client.Reader, c Cloud, namespace string) error {
	list := &extensionsv1alpha1.BastionList{}
	if err := seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Bastions in %s: %w", namespace, err)
	}
	known := map[string]bool{}
	for n := range list.Items {
		known[InstanceID(&list.Items[n])] = true
	}
	for _, instance := range c.Instances(namespace) {
		if instance.Tags[TagBastion] != namespace || known[instance.ID] {
			continue
		}
		if err := c.DeleteInstance(ctx, instance.ID); err != nil {
			return fmt.Errorf("deleting the instance %s, which is of no Bastion any more: %w", instance.ID, err)
		}
	}
	return nil
}

func ingressOf(bastion *extensionsv1alpha1.Bastion) (bastionspec.Ingress, error) {
	blocks := make([]networkingv1.IPBlock, len(bastion.Spec.Ingress))
	for i := range blocks {
		blocks[i] = bastion.Spec.Ingress[i].IPBlock
	}
	rules, errs := bastionspec.ParseIngress(blocks, field.NewPath("spec", "ingress"))
	if len(errs) > 0 {
		return nil, operation.ConfigurationProblem(
			fmt.Errorf("ingress of Bastion %s/%s: %w", bastion.Namespace, bastion.Name, errs.ToAggregate()))
	}
	return rules, nil
}

// InstanceID returns the ID of a Bastion's instance. Its hash tells apart Bastions whose IDs would be equal after
// namespace and name are joined and cut to the maximum length.
func InstanceID(bastion metav1.Object) string {
	sum := sha256.Sum256([]byte(bastion.GetNamespace() + "/" + bastion.GetName()))
	hash := "-" + hex.EncodeToString(sum[:5])
	id := bastion.GetNamespace() + "-bastion-" + bastion.GetName()
	return id[:min(len(id), cloud.MaxID-len(hash))] + hash
}

// bastionHostname returns the instance ID, or a shorter hostname if the ID is longer than maxHostname.
func bastionHostname(id, name string) string {
	if len(id) <= maxHostname {
		return id
	}
	if short := "bastion-" + name; len(short) <= maxHostname {
		return short
	}
	return "bastion" + id[strings.LastIndex(id, "-"):]
}
