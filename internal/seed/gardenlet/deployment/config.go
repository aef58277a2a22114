package deployment

import (
	"encoding/json"
	"fmt"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/seedmanagement/encoding"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
)

// notInherited are the fields that a gardenlet does not inherit from its parent's configuration: those for its credentials,
// its cluster and its seed.
var notInherited = [][]string{
	{"gardenClientConnection", "bootstrapKubeconfig"},
	{"gardenClientConnection", "kubeconfigSecret"},
	{"seedClientConnection", "kubeconfig"},
	{"seedConfig"},
}

// Config returns the configuration in the ManagedSeed or Gardenlet with the given name, merged over the parent's if set.
func Config(name string, raw runtime.RawExtension, parent *gardenletconfigv1alpha1.GardenletConfiguration) (
	*gardenletconfigv1alpha1.GardenletConfiguration, error) {
	if len(raw.Raw) == 0 && raw.Object == nil {
		raw.Raw = []byte("{}")
	}
	own, err := toMap(raw)
	if err == nil && parent != nil {
		own, err = inherit(parent, own)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the gardenlet configuration of %s: %w", name, err)
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("reading the gardenlet configuration of %s: %w", name, err)
	}
	config, err := encoding.DecodeGardenletConfigurationFromBytes(text, false)
	if err != nil {
		return nil, fmt.Errorf("reading the gardenlet configuration of %s: %w", name, err)
	}
	if config.SeedConfig == nil {
		return nil, fmt.Errorf("the gardenlet configuration of %s has no seedConfig, which describes its Seed: add it", name)
	}
	config.SeedConfig.Name = name
	if config.LeaderElection == nil {
		config.LeaderElection = &componentbaseconfigv1alpha1.LeaderElectionConfiguration{}
	}
	config.LeaderElection.ResourceNamespace = constants.GardenNamespace
	return config, nil
}

func inherit(parent *gardenletconfigv1alpha1.GardenletConfiguration, own map[string]any) (map[string]any, error) {
	all, err := toMap(parent)
	if err != nil {
		return nil, err
	}
	for _, path := range notInherited {
		within := all
		for _, key := range path[:len(path)-1] {
			within, _ = within[key].(map[string]any)
		}
		delete(within, path[len(path)-1])
	}
	// The type is set only in a configuration that was parsed from a file.
	delete(all, "apiVersion")
	delete(all, "kind")
	return merge(all, own), nil
}

// merge writes the values of over into base, and merges maps recursively.
func merge(base, over map[string]any) map[string]any {
	for key, value := range over {
		inner, ok1 := base[key].(map[string]any)
		outer, ok2 := value.(map[string]any)
		if ok1 && ok2 {
			value = merge(inner, outer)
		}
		base[key] = value
	}
	return base
}

func toMap(obj any) (map[string]any, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	return all, json.Unmarshal(text, &all)
}

// connect sets where the gardenlet finds its credentials for the garden. It clears the Secrets if the gardenlet does not
// bootstrap but uses a given kubeconfig.
func connect(config *gardenletconfigv1alpha1.GardenletConfiguration, method seedmanagementv1alpha1.Bootstrap) {
	if config.GardenClientConnection == nil {
		config.GardenClientConnection = &gardenletconfigv1alpha1.GardenClientConnection{}
	}
	connection := config.GardenClientConnection
	if method == seedmanagementv1alpha1.BootstrapNone {
		connection.KubeconfigSecret, connection.BootstrapKubeconfig = nil, nil
		return
	}
	// This gardenlet looks for its credentials in these Secrets, whatever the configuration says.
	connection.Kubeconfig = ""
	connection.KubeconfigSecret, connection.BootstrapKubeconfig = secretRef(bootstrap.KubeconfigSecret),
		secretRef(bootstrap.BootstrapKubeconfigSecret)
}

func secretRef(key client.ObjectKey) *corev1.SecretReference {
	return &corev1.SecretReference{Namespace: key.Namespace, Name: key.Name}
}
