package controllerinstallation

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/charts"
)

// caBundleKey is the key of the CA certificates of a registry in a Secret, as in Gardener.
const caBundleKey = "bundle.crt"

// invalid says why a ControllerDeployment cannot be installed. If it is final, only a change of the deployment helps.
type invalid struct {
	reason string
	err    error
	final  bool
}

// rendered contains what is installed for a ControllerDeployment.
type rendered struct {
	objects []*unstructured.Unstructured
	// kubeconfig is the Secret with the kubeconfig for the garden; nil if the deployment asks for none.
	kubeconfig *corev1.Secret
	// access says that some of the objects need a token for the garden.
	access bool
}

// render renders the chart of a ControllerDeployment. The result has no objects if this process serves the extension.
func (r *Reconciler) render(ctx context.Context, installation *corev1beta1.ControllerInstallation, seed *corev1beta1.Seed,
	deployment *gardencorev1.ControllerDeployment) (result *rendered, wrong *invalid, err error) {
	result = &rendered{}
	namespace := NamespaceName(installation.Name)
	if AsksForGarden(deployment) {
		if result.kubeconfig, err = r.genericKubeconfig(namespace); err != nil {
			return nil, nil, err
		}
	}
	if Simulated(deployment) {
		result.access = result.kubeconfig != nil
		return result, nil, nil
	}
	values, err := r.gardenerValues(ctx, seed, result.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	own, wrong := r.deploymentValues(ctx, deployment)
	if wrong != nil {
		return nil, wrong, nil
	}
	archive, wrong := r.chart(ctx, deployment.Helm)
	if wrong != nil {
		return nil, wrong, nil
	}
	result.objects, err = charts.Render(ctx, charts.Request{
		Archive: archive, Release: installation.Spec.RegistrationRef.Name, Namespace: namespace,
		KubeVersion: ptr.Deref(seed.Status.KubernetesVersion, ""), Values: chartutil.MergeTables(values, own),
	})
	var chartError *charts.InvalidError
	if errors.As(err, &chartError) {
		return nil, &invalid{reason: "ChartCannotBeRendered", err: err, final: true}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	result.inject(namespace, seed.Name)
	return result, nil, nil
}

// inject sets the seed's name in all workloads, mounts the token of their ServiceAccount, and adds the kubeconfig for
// the garden to the workloads that want it.
func (r *rendered) inject(namespace, seed string) {
	for _, obj := range r.objects {
		if !charts.IsWorkloadIn(obj, namespace) {
			continue
		}
		if r.kubeconfig != nil && charts.WantsGarden(obj) {
			r.access = true
			charts.InjectGardenKubeconfig(obj, r.kubeconfig.Name, AccessSecretName)
		}
		charts.SetEnv(obj, constants.EnvSeedName, seed)
		charts.MountToken(obj)
	}
}

// chart returns the chart of a ControllerDeployment, which is either inline or pulled from an OCI repository.
func (r *Reconciler) chart(ctx context.Context, helm *gardencorev1.HelmControllerDeployment) ([]byte, *invalid) {
	ref := helm.OCIRepository
	switch {
	case len(helm.RawChart) > 0:
		return helm.RawChart, nil
	case ref == nil:
		err := errors.New("it needs a chart: set helm.rawChart or helm.ociRepository")
		return nil, &invalid{reason: "ChartInformationInvalid", err: err, final: true}
	case ref.Ref == nil && ref.Repository == nil:
		err := errors.New("helm.ociRepository names no chart: set ref, or repository with tag or digest")
		return nil, &invalid{reason: "OCIChartCannotBePulled", err: err, final: true}
	}
	source := charts.Source{Reference: ref.GetURL(), Layouts: r.ChartLayouts}
	for _, needed := range []struct {
		ref *corev1.LocalObjectReference
		key string
		to  *[]byte
	}{{ref.PullSecretRef, corev1.DockerConfigJsonKey, &source.PullSecret}, {ref.CABundleSecretRef, caBundleKey, &source.CABundle}} {
		if needed.ref == nil {
			continue
		}
		secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: needed.ref.Name}
		if err := r.GardenReader.Get(ctx, key, secret); err != nil {
			return nil, &invalid{reason: "OCIChartCannotBePulled", err: fmt.Errorf("reading Secret %s in the garden: %w", key, err)}
		}
		if *needed.to = secret.Data[needed.key]; len(*needed.to) == 0 {
			return nil, &invalid{reason: "OCIChartCannotBePulled", err: fmt.Errorf("the Secret %s in the garden has no %s", key, needed.key)}
		}
	}
	archive, err := charts.Pull(ctx, source)
	if err != nil {
		return nil, &invalid{reason: "OCIChartCannotBePulled", err: err}
	}
	return archive, nil
}

const (
	// ProviderDeployment is the name of the ControllerDeployment of the landscape's own provider.
	ProviderDeployment = "provider-local"
	// AnnotationSimulated, with the value "true", marks any other ControllerDeployment whose extension this process
	// serves.
	AnnotationSimulated = "gardenlite.dev/simulated"
)

// Simulated reports whether this process serves the extension of a ControllerDeployment. Its chart, if any, is ignored.
func Simulated(deployment *gardencorev1.ControllerDeployment) bool {
	simulated, _ := strconv.ParseBool(deployment.Annotations[AnnotationSimulated])
	return simulated || deployment.Name == ProviderDeployment
}

// AsksForGarden reports whether a ControllerDeployment requests access to the garden for its workloads. Simulated
// extensions have access unless their deployment opts out.
func AsksForGarden(deployment *gardencorev1.ControllerDeployment) bool {
	return ptr.Deref(deployment.InjectGardenKubeconfig, Simulated(deployment))
}

// responsible reports whether the gardenlet installs a ControllerDeployment. It ignores deployments of other types than
// helm.
func responsible(deployment *gardencorev1.ControllerDeployment) bool {
	return deployment.Helm != nil || Simulated(deployment)
}
