package seedhost

import (
	"context"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// Secrets in the seed with the kubeconfigs of Gardener's gardenlet for the garden. They have the names of its chart.
const (
	bootstrapSecret  = "gardenlet-kubeconfig-bootstrap"
	kubeconfigSecret = "gardenlet-kubeconfig"
)

// ForeignGardenlet returns the configuration with which Gardener's gardenlet runs for a seed of a landscape whose own gardenlet
// does not. It makes a bootstrap token, and writes the kubeconfig with it into the seed, to which the given file gives access.
func ForeignGardenlet(ctx context.Context, garden *rest.Config, seedKubeconfig, name string, life time.Duration) ([]byte, error) {
	seed, err := clientcmd.BuildConfigFromFlags("", seedKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster of seed %s, which must run in this landscape: %w", name, err)
	}
	inSeed, err := newClient(seed)
	if err != nil {
		return nil, err
	}
	if err := PrepareSeed(ctx, garden, name); err != nil {
		return nil, err
	}
	token, err := bootstraptoken.Create(ctx, garden, name, life, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: bootstrapSecret}}
	if err := controllerutils.CreateOrPatch(ctx, inSeed, inSeed, secret, func(secret *corev1.Secret) error {
		secret.Data = map[string][]byte{"kubeconfig": token.Kubeconfig}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("in seed %s: %w", name, err)
	}
	config := gardenletConfiguration(name)
	// A Seed that is made by it has no backup: it would ask etcd for it at an address that resolves in a cluster only.
	config.SeedConfig.Spec.Backup = nil
	existing, err := readSeed(ctx, garden, name)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		config.SeedConfig.Spec.Backup = existing.Spec.Backup // it cannot be removed
	}
	config.TypeMeta = metav1.TypeMeta{APIVersion: gardenletconfigv1alpha1.SchemeGroupVersion.String(), Kind: "GardenletConfiguration"}
	config.GardenClientConnection = &gardenletconfigv1alpha1.GardenClientConnection{
		GardenClusterAddress: &garden.Host,
		BootstrapKubeconfig:  &corev1.SecretReference{Namespace: constants.GardenNamespace, Name: bootstrapSecret},
		KubeconfigSecret:     &corev1.SecretReference{Namespace: constants.GardenNamespace, Name: kubeconfigSecret},
	}
	config.SeedClientConnection = &gardenletconfigv1alpha1.SeedClientConnection{
		ClientConnectionConfiguration: componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: seedKubeconfig}}
	config.Controllers.ShootStatus = &gardenletconfigv1alpha1.ShootStatusControllerConfiguration{ConcurrentSyncs: ptr.To(5)} // it needs one
	config.Server = gardenletconfigv1alpha1.ServerConfiguration{
		HealthProbes: &gardenletconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: 2728},
		Metrics:      &gardenletconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: 2729},
	}
	// It is the only one of its seed. With an election, it would end when a busy machine renews its Lease late.
	config.LeaderElection = &componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)}
	config.LogLevel, config.LogFormat = "info", "text"
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return nil, err
	}
	dropZeros(fields)
	return yaml.Marshal(fields)
}

// dropZeros removes fields that say nothing: types of component-base have no omitempty.
func dropZeros(fields map[string]any) {
	for name, value := range fields {
		if inner, ok := value.(map[string]any); ok {
			dropZeros(inner)
		}
		if value == nil || value == "" || value == "0s" || value == int64(0) || value == float64(0) {
			delete(fields, name)
		}
	}
}
