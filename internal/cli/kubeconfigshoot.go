package cli

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	// defaultShootExpiration is how long a kubeconfig for a shoot is valid without --expiration.
	defaultShootExpiration = time.Hour
	// minShootExpiration is the shortest expiration that the garden accepts.
	minShootExpiration = 10 * time.Minute
)

// runShoot prints or merges a kubeconfig for a shoot, which the garden makes for the landscape's administrator.
func (k *kubeconfigFlags) runShoot(ctx context.Context, g *globals, args []string) error {
	switch {
	case len(args) != 1:
		return usage.Errorf("say which shoot: kubeconfig shoot PROJECT/NAME")
	case k.user != "" || len(k.groups) > 0:
		return usage.Errorf("--user and --group are for the garden: a kubeconfig for a shoot is for who asks for it")
	case k.path:
		return usage.Errorf("--path is for the garden and for seeds: a kubeconfig for a shoot is not kept")
	case k.expiration < minShootExpiration:
		return usage.Errorf("--expiration %s: %s at least", k.expiration, minShootExpiration)
	}
	client, key, err := g.shoot(ctx, args[0], defaultProject)
	if err != nil {
		return err
	}
	data, expires, err := client.Kubeconfig(ctx, key, k.viewer, k.expiration)
	if err != nil {
		return explainShoot(g, err)
	}
	note := ""
	if left := time.Until(expires); left < k.expiration-time.Minute {
		note = ", which is as long as the garden allows"
	}
	fmt.Fprintf(g.err, "Valid until %s%s.\n", expires.Local().Format(time.RFC3339), note)
	if !k.merge {
		_, err = g.out.Write(data)
		return err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig for the shoot %s: %w", key, err)
	}
	return mergeKubeconfig(g, prefixed(config, "gardenlite-"+g.name+"-"))
}

// prefixed returns the kubeconfig with a prefix before all names, which keeps them apart from those of other
// landscapes.
func prefixed(config *clientcmdapi.Config, prefix string) *clientcmdapi.Config {
	renamed := clientcmdapi.NewConfig()
	for name, cluster := range config.Clusters {
		renamed.Clusters[prefix+name] = cluster
	}
	for name, user := range config.AuthInfos {
		renamed.AuthInfos[prefix+name] = user
	}
	for name, entry := range config.Contexts {
		entry.Cluster, entry.AuthInfo = prefix+entry.Cluster, prefix+entry.AuthInfo
		renamed.Contexts[prefix+name] = entry
	}
	renamed.CurrentContext = prefix + config.CurrentContext
	return renamed
}
