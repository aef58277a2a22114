package shootcare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// minimumValidity is the remaining validity below which CAs should be rotated. They are created for ten years.
const minimumValidity = 365 * 24 * time.Hour

// persisted are the labels of the Secrets that a Shoot keeps for its whole life, among them its CAs.
var persisted = client.MatchingLabels{"managed-by": "secrets-manager", "persist": "true"}

// constraints returns the constraints of the Shoot: what cannot be done with it now, and what should be done about it.
// The first two are always reported, the others only if they are not True.
func (c *care) constraints(ctx context.Context) []conditions.Condition {
	all := c.webhooks(ctx)
	for _, optional := range []conditions.Condition{
		c.constraint(corev1beta1.ShootCACertificateValiditiesAcceptable, func() (*problem, error) { return c.expiring(ctx) }),
		c.constraint(corev1beta1.ShootCRDsWithProblematicConversionWebhooks, func() (*problem, error) { return c.conversions(ctx) }),
		c.constraint(corev1beta1.ShootManualInPlaceWorkersUpdated, func() (*problem, error) { return c.pendingInPlace(), nil }),
		controllerutils.ManagedResourcesHonored(c.managed),
		c.constraint(corev1beta1.ShootPreservedFailedMachinesAbsent, func() (*problem, error) { return c.preserved(ctx) }),
		constraint(corev1beta1.ShootAutomaticCredentialsRotationPossible, rotationProblem(c.shoot, c.Clock.Now())),
	} {
		if optional.Status != corev1beta1.ConditionTrue {
			all = append(all, optional)
		}
	}
	return all
}

func (c *care) constraint(kind corev1beta1.ConditionType, check func() (*problem, error)) conditions.Condition {
	wrong, err := check()
	if err != nil {
		return conditions.Unchecked(kind, err)
	}
	return constraint(kind, wrong)
}

func constraint(kind corev1beta1.ConditionType, wrong *problem) conditions.Condition {
	if wrong != nil {
		return conditions.Condition{Type: kind, Status: corev1beta1.ConditionFalse, Reason: wrong.reason,
			Message: wrong.message, Codes: wrong.codes}
	}
	return conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue}
}

// webhooks returns whether the Shoot can be hibernated and maintained. It cannot with webhooks that could keep nodes
// from joining when the Shoot wakes up.
func (c *care) webhooks(ctx context.Context) []conditions.Condition {
	now := c.constraint("", func() (*problem, error) { return c.problematicWebhook(ctx) })
	if now.Status == corev1beta1.ConditionTrue {
		now.Reason, now.Message = "NoProblematicWebhooks", "All webhooks are configured well."
	}
	both := []conditions.Condition{now, now}
	both[0].Type, both[1].Type = corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied
	return both
}

// expiring reports the CAs of the Shoot that expire within minimumValidity.
func (c *care) expiring(ctx context.Context) (*problem, error) {
	secrets := &corev1.SecretList{}
	if err := c.SeedClient.List(ctx, secrets, client.InNamespace(c.shoot.Status.TechnicalID), persisted); err != nil {
		return nil, fmt.Errorf("listing the authorities of the Shoot: %w", err)
	}
	var names []string
	for _, secret := range secrets.Items {
		if len(secret.Data["ca.crt"]) == 0 || len(secret.Data["ca.key"]) == 0 {
			continue
		}
		certs, err := certutil.ParseCertsPEM(secret.Data["ca.crt"])
		if err != nil {
			return nil, fmt.Errorf("reading the certificate in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		if end := certificates.ByClock(certs[0], c.Clock).NotAfter; end.Sub(c.Clock.Now()) < minimumValidity {
			names = append(names, fmt.Sprintf("%q (until %s)", secret.Labels["name"], end.UTC().Format(time.RFC3339)))
		}
	}
	return problemOf("ExpiringCACertificates", fmt.Sprintf("Some authorities are valid for less than %d days, rotate them: ",
		int(minimumValidity.Hours()/24)), names), nil
}

// conversions reports the custom resources of the Shoot with several stored versions and a conversion webhook: they can
// block garbage collection and updates.
func (c *care) conversions(ctx context.Context) (*problem, error) {
	if c.cluster == nil {
		return nil, nil
	}
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.cluster.Client.List(ctx, definitions); err != nil {
		return nil, fmt.Errorf("listing the CustomResourceDefinitions of the Shoot: %w", err)
	}
	var names []string
	for i := range definitions.Items {
		d := &definitions.Items[i]
		if conversion := d.Spec.Conversion; len(d.Status.StoredVersions) > 1 && conversion != nil &&
			conversion.Strategy == apiextensionsv1.WebhookConverter {
			names = append(names, d.Name)
		}
	}
	return problemOf("CRDsWithProblematicConversionWebhooks",
		"Some CustomResourceDefinitions have several stored versions and a conversion webhook: ", names), nil
}

func (c *care) pendingInPlace() *problem {
	updates := c.shoot.Status.InPlaceUpdates
	if isWorkerless(c.shoot) || updates == nil || updates.PendingWorkerUpdates == nil {
		return nil
	}
	return problemOf("WorkerPoolsWithManualInPlaceUpdateStrategyPending",
		"Some worker pools with the update strategy ManualInPlaceUpdate wait for their update: ",
		slices.Clone(updates.PendingWorkerUpdates.ManualInPlaceUpdate))
}

// machineDeployments are read as they are: the types of the API module do not have the field that counts preserved
// machines.
var machineDeployments = schema.GroupVersionKind{
	Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "MachineDeploymentList"}

// preserved reports machines that have failed and are preserved for debugging.
func (c *care) preserved(ctx context.Context) (*problem, error) {
	if isWorkerless(c.shoot) {
		return nil, nil
	}
	deployments := &unstructured.UnstructuredList{}
	deployments.SetGroupVersionKind(machineDeployments)
	if err := c.SeedReader.List(ctx, deployments, client.InNamespace(c.shoot.Status.TechnicalID)); err != nil {
		return nil, fmt.Errorf("listing the MachineDeployments of the Shoot: %w", err)
	}
	count := int64(0)
	for i := range deployments.Items {
		d := &deployments.Items[i]
		preserved, _, err := unstructured.NestedInt64(d.Object, "status", "preservedFailedReplicas")
		if err != nil {
			return nil, fmt.Errorf("reading MachineDeployment %s/%s: %w", d.GetNamespace(), d.GetName(), err)
		}
		count += preserved
	}
	if count == 0 {
		return nil, nil
	}
	return &problem{reason: "FailedMachinesPreserved",
		message: fmt.Sprintf("Failed machines that are preserved, and so not replaced: %d", count)}, nil
}

// problemOf returns the problem of the named objects, nil if there are none.
func problemOf(reason, message string, names []string) *problem {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &problem{reason: reason, message: message + strings.Join(names, ", ")}
}
