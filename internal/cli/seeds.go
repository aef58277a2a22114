package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/kubeconfig"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// seedsElsewhere returns the Seeds of the garden whose clusters are not the landscape's own.
func seedsElsewhere(ctx context.Context, g *globals, dir string) ([]corev1beta1.Seed, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	garden, err := g.shootClient(ctx)
	if err != nil {
		return nil, err
	}
	seeds := &corev1beta1.SeedList{}
	if err := garden.Client.List(ctx, seeds); err != nil {
		return nil, fmt.Errorf("listing the Seeds: %w", err)
	}
	known := statedir.LocalSeeds(dir)
	return slices.DeleteFunc(seeds.Items, func(s corev1beta1.Seed) bool { return slices.Contains(known, s.Name) }), nil
}

// seedSummaries returns the status of seeds that run elsewhere, as their gardenlets report it to the garden.
func seedSummaries(ctx context.Context, g *globals, dir string) []control.Cluster {
	seeds, err := seedsElsewhere(ctx, g, dir)
	if err != nil {
		return nil
	}
	var all []control.Cluster
	for _, s := range seeds {
		summary := control.Cluster{Kind: "seed", Name: s.Name, State: control.StateStarting, Message: "its gardenlet has not reported yet"}
		if s.Status.KubernetesVersion != nil {
			summary.KubernetesVersion = *s.Status.KubernetesVersion
		}
		for _, c := range s.Status.Conditions {
			if c.Type != corev1beta1.GardenletReady {
				continue
			}
			summary.State, summary.Message = control.StateFailed, cmp.Or(c.Message, c.Reason)
			if c.Status == corev1beta1.ConditionTrue {
				summary.State, summary.Message = control.StateReady, "its gardenlet runs elsewhere"
			}
		}
		all = append(all, summary)
	}
	return all
}

// seedNames returns the names of all seeds, for completion.
func seedNames(ctx context.Context, g *globals) []string {
	dir, err := g.dir()
	if err != nil {
		return nil
	}
	names := statedir.LocalSeeds(dir)
	seeds, _ := seedsElsewhere(ctx, g, dir)
	for _, s := range seeds {
		names = append(names, s.Name)
	}
	return names
}

// seedKubeconfig returns the kubeconfig of a seed elsewhere: that of the Secret garden/SEED.login, or that of a gardenlet
// which "gardenlite gardenlet" runs on this machine.
func seedKubeconfig(ctx context.Context, g *globals, dir, name string) (*clientcmdapi.Config, error) {
	config, err := g.gardenConfig(ctx)
	if err != nil {
		return nil, err
	}
	garden, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	seeds, err := seedsElsewhere(ctx, g, dir)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(seeds, func(s corev1beta1.Seed) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("there is no seed %q: \"kubectl get seeds\" shows those that there are", name)
	}
	secret, err := garden.CoreV1().Secrets(constants.GardenNamespace).Get(ctx, name+seedhost.SeedLoginSuffix, metav1.GetOptions{})
	switch {
	case err == nil:
		config, err := kubeconfig.Load(secret.Data[seedhost.SeedLoginKey])
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig in the Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
		return config, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the Secret %s/%s%s: %w", constants.GardenNamespace, name, seedhost.SeedLoginSuffix, err)
	}
	if config := gardenletKubeconfig(ctx, &seeds[at]); config != nil {
		return config, nil
	}
	return nil, fmt.Errorf(
		"the gardenlet of seed %s runs elsewhere, and there is no kubeconfig for its cluster: create the Secret %s/%s%s with the key %q",
		name, constants.GardenNamespace, name, seedhost.SeedLoginSuffix, seedhost.SeedLoginKey)
}

// gardenletKubeconfig returns the kubeconfig that a gardenlet on this machine has written, or nil. It compares the
// cluster identities, because another landscape can have a Seed of the same name.
func gardenletKubeconfig(ctx context.Context, seed *corev1beta1.Seed) *clientcmdapi.Config {
	dir, err := seedhost.DefaultGardenletDir(seed.Name)
	if err != nil || seed.Status.ClusterIdentity == nil {
		return nil
	}
	config, err := clientcmd.LoadFromFile(statedir.SeedKubeconfigPath(dir, seed.Name))
	if err != nil {
		return nil
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil
	}
	cluster, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	identity, err := cluster.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, constants.ClusterIdentity, metav1.GetOptions{})
	if err != nil || identity.Data[constants.ClusterIdentity] != *seed.Status.ClusterIdentity {
		return nil
	}
	return config
}
