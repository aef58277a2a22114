package deployment

import (
	"context"
	"errors"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// Installer deploys gardenlets together with their bootstrap credentials.
type Installer struct {
	Bootstrapper
	Deployer Deployer
}

// Install deploys the gardenlet of a ManagedSeed or Gardenlet. If the object is annotated to renew the identity, Install
// renews it and then removes the annotation: from then on the garden refuses bootstrap credentials for this seed.
func (i *Installer) Install(ctx context.Context, of client.Object, g Gardenlet, method seedmanagementv1alpha1.Bootstrap) error {
	has, err := i.Deployer.Status(ctx, g.Target)
	if err != nil {
		return fmt.Errorf("looking for the gardenlet of seed %s: %w", g.SeedName, err)
	}
	if has.IsOfOther(g.SeedName) {
		return fmt.Errorf("the cluster for seed %s has a gardenlet of seed %s: look whether it is the right cluster", g.SeedName, has.SeedName)
	}
	renews := bootstraprules.RequestsNewKubeconfig(of)
	if renews {
		i.event(of, corev1.EventTypeNormal, "Renewing gardenlet kubeconfig secret due to operation annotation")
	}
	connect(g.Config, method)
	g.Bootstrap, g.Renew, err = i.kubeconfig(ctx, of, method, has, g.Config.GardenClientConnection)
	if errors.Is(err, errBootstrapped) {
		i.event(of, corev1.EventTypeWarning, err.Error())
	} else if err != nil {
		return fmt.Errorf("preparing the bootstrapping of seed %s: %w", g.SeedName, err)
	}
	if err := i.Deployer.Deploy(ctx, g); err != nil {
		return fmt.Errorf("deploying the gardenlet of seed %s: %w", g.SeedName, err)
	}
	if !renews {
		return nil
	}
	return operation.Patch(ctx, i.GardenClient, of, func(of client.Object) {
		annotations := of.GetAnnotations()
		delete(annotations, constants.GardenerOperation)
		of.SetAnnotations(annotations)
	})
}

// IsOfOther reports whether there is a gardenlet that is known to belong to another seed.
func (s Status) IsOfOther(seed string) bool {
	return s.Deployed && s.SeedName != "" && s.SeedName != seed
}

func (i *Installer) event(of client.Object, severity, message string) {
	reason := corev1beta1.EventReconciling
	if severity == corev1.EventTypeWarning {
		reason = corev1beta1.EventReconcileError
	}
	i.Recorder.Eventf(of, nil, severity, reason, corev1beta1.EventActionReconcile, "%s", message)
}

// Owner returns a reference to a ManagedSeed or Gardenlet.
func Owner(kind string, of client.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: seedmanagementv1alpha1.SchemeGroupVersion.String(), Kind: kind,
		Namespace: of.GetNamespace(), Name: of.GetName(), UID: of.GetUID(),
	}
}
