package controllerinstallation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/utils"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gardenerValues returns the values with which every chart is rendered, as in Gardener's gardenlet
// (pkg/gardenlet/controller/controllerinstallation). They override those of the ControllerDeployment. kubeconfig is the
// Secret with the kubeconfig for the garden, nil if there is none.
func (r *Reconciler) gardenerValues(ctx context.Context, seed *corev1beta1.Seed, kubeconfig *corev1.Secret) (map[string]any, error) {
	identity := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}
	if err := r.GardenReader.Get(ctx, key, identity); err != nil {
		return nil, fmt.Errorf("reading the identity of the garden, ConfigMap %s: %w", key, err)
	}
	garden := map[string]any{"clusterIdentity": identity.Data[constants.ClusterIdentity]}
	if kubeconfig != nil {
		garden["genericKubeconfigSecretName"] = kubeconfig.Name
	}
	gardener := map[string]any{
		"version":   r.Version,
		"garden":    garden,
		"gardenlet": map[string]any{"featureGates": r.FeatureGates},
		"seed":      seedValues(seed),
	}
	// The result consists of generic maps, like the values of a chart.
	data, err := json.Marshal(map[string]any{"gardener": gardener})
	if err != nil {
		return nil, fmt.Errorf("encoding the values of the seed: %w", err)
	}
	return chartutil.ReadValues(data)
}

func seedValues(seed *corev1beta1.Seed) map[string]any {
	values := map[string]any{
		"name":            seed.Name,
		"clusterIdentity": seed.Status.ClusterIdentity,
		"annotations":     seed.Annotations,
		"labels":          seed.Labels,
		"provider":        seed.Spec.Provider.Type,
		"region":          seed.Spec.Provider.Region,
		"volumeProvider":  "",
		"volumeProviders": nil,
		"protected": slices.ContainsFunc(seed.Spec.Taints, func(taint corev1beta1.SeedTaint) bool {
			return taint.Key == corev1beta1.SeedTaintProtected
		}),
		"visible":    seed.Spec.Settings != nil && seed.Spec.Settings.Scheduling != nil && seed.Spec.Settings.Scheduling.Visible,
		"taints":     seed.Spec.Taints,
		"networks":   seed.Spec.Networks,
		"blockCIDRs": seed.Spec.Networks.BlockCIDRs,
		"spec":       seed.Spec,
	}
	if volume := seed.Spec.Volume; volume != nil && len(volume.Providers) > 0 {
		values["volumeProvider"], values["volumeProviders"] = volume.Providers[0].Name, volume.Providers
	}
	if seed.Spec.Ingress != nil {
		values["ingressDomain"] = seed.Spec.Ingress.Domain
	}
	return values
}

// deploymentValues returns the values of a ControllerDeployment, with the references to its resources replaced by their
// data.
func (r *Reconciler) deploymentValues(ctx context.Context, deployment *gardencorev1.ControllerDeployment) (map[string]any, *invalid) {
	values := map[string]any{}
	if deployment.Helm.Values != nil {
		if err := json.Unmarshal(deployment.Helm.Values.Raw, &values); err != nil {
			return nil, &invalid{reason: "ChartInformationInvalid", err: fmt.Errorf("helm.values must be an object: %w", err), final: true}
		}
	}
	if len(deployment.Resources) == 0 {
		return values, nil
	}
	resources := map[string]map[string]string{}
	for _, resource := range deployment.Resources {
		data, err := r.resourceData(ctx, resource)
		if err != nil {
			return nil, &invalid{reason: "RenderingHelmValuesFailed", err: fmt.Errorf("resource %s: %w", resource.Name, err)}
		}
		resources[resource.Name] = data
	}
	replaced, err := utils.WalkStructure(values, func(text string) (any, error) { return replaceReferences(text, resources) })
	if err != nil {
		return nil, &invalid{reason: "RenderingHelmValuesFailed", err: err}
	}
	values, _ = replaced.(map[string]any)
	return values, nil
}

// resourceData returns the data of a Secret or ConfigMap of the garden. The object must have the label with which the
// garden marks the resources of ControllerDeployments.
func (r *Reconciler) resourceData(ctx context.Context, resource gardencorev1.NamedResourceReference) (map[string]string, error) {
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: resource.ResourceRef.Name}
	var obj client.Object
	data := map[string]string{}
	switch resource.ResourceRef.Kind {
	case "Secret":
		secret := &corev1.Secret{}
		if err := r.GardenReader.Get(ctx, key, secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s in the garden: %w", key, err)
		}
		for name, value := range secret.Data {
			data[name] = string(value)
		}
		obj = secret
	case "ConfigMap":
		configMap := &corev1.ConfigMap{}
		if err := r.GardenReader.Get(ctx, key, configMap); err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s in the garden: %w", key, err)
		}
		obj, data = configMap, configMap.Data
	default:
		return nil, fmt.Errorf("it must be a Secret or a ConfigMap, not a %s", resource.ResourceRef.Kind)
	}
	if obj.GetLabels()[constants.GardenRole] != constants.GardenRoleResourceReference {
		return nil, fmt.Errorf("%s %s in the garden needs the label %s: %s",
			resource.ResourceRef.Kind, key, constants.GardenRole, constants.GardenRoleResourceReference)
	}
	return data, nil
}

// replaceReferences replaces references such as {{ .resources.NAME.data.KEY }} by the data. The validation allows no
// other expressions.
func replaceReferences(text string, resources map[string]map[string]string) (string, error) {
	var failed error
	replaced := constants.ResourceReferenceRegexp.ReplaceAllStringFunc(text, func(reference string) string {
		parts := strings.Split(strings.Trim(reference, "{} \t\r\n"), ".") // "", resources, NAME, data, KEY
		value, ok := resources[parts[2]][parts[4]]
		if !ok {
			failed = fmt.Errorf("%s in helm.values: there is no such key", reference)
		}
		return value
	})
	return replaced, failed
}
