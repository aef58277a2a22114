package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
	"github.com/gardenlite/gardenlite/internal/usercontexts"
)

type kubeconfigFlags struct {
	merge, path, viewer bool
	user                string
	groups              []string
	expiration          time.Duration
}

func newKubeconfig(g *globals) *cobra.Command {
	flags := &kubeconfigFlags{}
	cmd := &cobra.Command{
		Use:   "kubeconfig [garden | seed NAME | shoot PROJECT/NAME]",
		Short: "Print a kubeconfig for the landscape",
		Long: `Print a kubeconfig for the garden or for the cluster of a seed: the administrator's, or with --user that of another user,
with a certificate that is made for it and not kept. Or one for a shoot, which the garden makes
anew each time and which expires: after an hour, or --expiration.`,
		Example: `  export KUBECONFIG=$(gardenlite kubeconfig --path)
  gardenlite kubeconfig --merge && kubectl --context gardenlite-default get projects
  gardenlite kubeconfig --user alice@example.com --group developers > alice.kubeconfig
  gardenlite kubeconfig seed local > local.kubeconfig
  gardenlite kubeconfig shoot dev/my-shoot --merge
  gardenlite kubeconfig shoot dev/my-shoot --viewer --expiration 30m > viewer.kubeconfig`,
		ValidArgsFunction: completeArgs(cobra.FixedCompletions([]string{"garden", "seed", "shoot"}, cobra.ShellCompDirectiveNoFileComp),
			func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				return completeNames(func(ctx context.Context) []string {
					switch args[0] {
					case "seed":
						return seedNames(ctx, g)
					case "shoot":
						return shootNames(ctx, g, "")
					}
					return nil
				})(cmd, args, typed)
			}),
		Args: func(_ *cobra.Command, args []string) error {
			words := map[string]int{"garden": 1, "seed": 2}
			if len(args) == 0 || args[0] == "shoot" || len(args) == words[args[0]] {
				return nil
			}
			return errors.New("say \"garden\", \"seed NAME\" or \"shoot PROJECT/NAME\": which cluster the kubeconfig is for")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("user") && flags.user == "" {
				return usage.Errorf("--user is empty: say the name of a user")
			}
			if len(args) > 0 && args[0] == "shoot" {
				if !cmd.Flags().Changed("expiration") {
					flags.expiration = defaultShootExpiration
				}
				return flags.runShoot(cmd.Context(), g, args[1:])
			}
			if cmd.Flags().Changed("expiration") && flags.user == "" {
				return usage.Errorf("--expiration needs --user, or a shoot: the administrator's kubeconfig does not expire by it")
			}
			return flags.run(cmd.Context(), g, args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.merge, "merge", false,
		"merge it into your own kubeconfig file, under the context gardenlite-NAME, and make that the current one")
	f.BoolVar(&flags.path, "path", false, "print the path of the administrator's kubeconfig instead")
	f.StringVar(&flags.user, "user", "", "make a kubeconfig for this user name")
	f.StringArrayVar(&flags.groups, "group", nil, "group of the user; can be given several times")
	f.DurationVar(&flags.expiration, "expiration", 24*time.Hour,
		"how long the user's certificate is valid (10m to 8760h); for a shoot 1h if nothing is said, and as long as the garden allows at most")
	f.BoolVar(&flags.viewer, "viewer", false, "make a kubeconfig for a shoot that can read only, and no secrets")
	cmd.MarkFlagsMutuallyExclusive("merge", "path")
	cmd.MarkFlagsMutuallyExclusive("user", "path")
	return cmd
}

// file returns the path of the kubeconfig for the arguments, or "" for a seed that runs elsewhere.
func (k *kubeconfigFlags) file(g *globals, dir string, args []string) (string, error) {
	garden, err := g.gardenKubeconfig()
	if err != nil {
		return "", err
	}
	if len(args) < 2 {
		return garden, nil
	}
	if !slices.Contains(statedir.LocalSeeds(dir), args[1]) {
		return "", nil
	}
	return statedir.SeedKubeconfigPath(dir, args[1]), nil
}

func (k *kubeconfigFlags) run(ctx context.Context, g *globals, args []string) error {
	if k.viewer {
		return usage.Errorf("--viewer is for a shoot")
	}
	if len(k.groups) > 0 && k.user == "" {
		return usage.Errorf("--group needs --user")
	}
	if k.expiration < 10*time.Minute || k.expiration > 8760*time.Hour {
		return usage.Errorf("--expiration %s: between 10m and 8760h", k.expiration)
	}
	dir, err := g.dir()
	if err != nil {
		return err
	}
	file, err := k.file(g, dir, args)
	if err != nil {
		return err
	}
	if k.path && file != "" {
		_, err := io.WriteString(g.out, file+"\n")
		return err
	}
	var config *clientcmdapi.Config
	switch {
	case file == "":
		config, err = seedKubeconfig(ctx, g, dir, args[1])
	case len(args) < 2:
		config, err = readKubeconfig(file, "")
	default:
		config, err = readKubeconfig(file, args[1])
	}
	switch {
	case err != nil:
		return err
	case k.user != "" && file == "":
		return usage.Errorf("--user: the landscape has no certificate authority of the seed %s, which runs elsewhere", args[1])
	case k.path:
		return usage.Errorf("--path: the landscape keeps no kubeconfig of the seed %s, which runs elsewhere", args[1])
	}
	if k.user != "" {
		cluster := statedir.GardenCluster
		if len(args) > 1 {
			cluster = statedir.SeedPrefix + args[1]
		}
		if config, err = landscape.UserKubeconfig(dir, cluster, config, k.user, k.groups, k.expiration); err != nil {
			return err
		}
	}
	if k.merge {
		cluster := strings.Join(args, " ")
		if file == "" {
			return mergeFromCluster(g, config, cluster)
		}
		return mergeKubeconfig(g, config, strings.TrimPrefix(cluster, "garden"))
	}
	data, err := clientcmd.Write(*config)
	if err == nil {
		_, err = g.out.Write(data)
	}
	return err
}

// mergeKubeconfig adds a kubeconfig for a cluster of the landscape to the user's own, "" for the garden.
func mergeKubeconfig(g *globals, config *clientcmdapi.Config, cluster string) error {
	dir, err := g.dir()
	if err != nil {
		return err
	}
	file, err := usercontexts.Owner{Dir: dir, Cluster: cluster}.Set(config)
	if err != nil {
		return err
	}
	printf(g.err, "Context %q is in %s and is the current one.\n", config.CurrentContext, file)
	return nil
}

// contextEnv turns on --kubeconfig-context where the command line says nothing.
const contextEnv = "GARDENLITE_KUBECONFIG_CONTEXT"

// addContextFlag adds the flag with which a command that starts a cluster writes the user's own kubeconfig.
func addContextFlag(cmd *cobra.Command, wanted *bool) {
	const name = "kubeconfig-context"
	cmd.Flags().BoolVar(wanted, name, false,
		"make a context in your own kubeconfig, and make it the current one (default: the variable "+contextEnv+", else false)")
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if setting := os.Getenv(contextEnv); setting != "" && !cmd.Flags().Changed(name) {
			var err error
			if *wanted, err = strconv.ParseBool(setting); err != nil {
				return usage.Errorf("%s is %q: it is neither true nor false", contextEnv, setting)
			}
		}
		if before == nil {
			return nil
		}
		return before(cmd, args)
	}
}

// setContext makes the garden's context the current one of the user's own kubeconfig. What goes wrong is a warning: the
// landscape runs.
func setContext(g *globals, file string) (set bool) {
	config, err := readKubeconfig(file, "")
	if err == nil {
		err = mergeKubeconfig(g, config, "")
	}
	if err != nil {
		printf(g.err, "WARNING: there is no context for the landscape: %v\n", err)
	}
	return err == nil
}

const (
	// defaultShootExpiration is how long a kubeconfig for a shoot is valid without --expiration.
	defaultShootExpiration = time.Hour
	// minShootExpiration is the shortest expiration that the garden accepts.
	minShootExpiration = 10 * time.Minute
)

// runShoot prints or merges a kubeconfig for a shoot.
func (k *kubeconfigFlags) runShoot(ctx context.Context, g *globals, args []string) error {
	switch {
	case len(args) != 1:
		return usage.Errorf("say which shoot: kubeconfig shoot PROJECT/NAME")
	case k.user != "" || len(k.groups) > 0:
		return usage.Errorf("--user and --group are for the garden and for seeds: a kubeconfig for a shoot is for who asks for it")
	case k.path:
		return usage.Errorf("--path is for the garden and for seeds: a kubeconfig for a shoot is not kept")
	case k.expiration < minShootExpiration:
		return usage.Errorf("--expiration %s: %s at least", k.expiration, minShootExpiration)
	}
	client, key, err := g.shoot(ctx, args[0], defaultProject)
	if err != nil {
		return err
	}
	return k.writeShoot(ctx, g, client, key)
}

// writeShoot prints or merges a kubeconfig for a shoot, which the garden makes for the landscape's administrator.
func (k *kubeconfigFlags) writeShoot(ctx context.Context, g *globals, client *shootclient.Client, key shootclient.Key) error {
	config, expires, err := client.Kubeconfig(ctx, key, k.viewer, k.expiration)
	if err != nil {
		return explainShoot(g, err)
	}
	note := ""
	if left := time.Until(expires); left < k.expiration-time.Minute {
		note = ", which is as long as the garden allows"
	}
	printf(g.err, "Valid until %s%s.\n", moment(expires), note)
	if !k.merge {
		data, err := clientcmd.Write(*config)
		if err == nil {
			_, err = g.out.Write(data)
		}
		return err
	}
	return mergeFromCluster(g, config, "shoot "+key.String())
}

// mergeFromCluster merges a kubeconfig that comes from a cluster, whose names have to be such that other programs
// read each as one word.
func mergeFromCluster(g *globals, config *clientcmdapi.Config, cluster string) error {
	names := slices.Concat(slices.Collect(maps.Keys(config.Clusters)), slices.Collect(maps.Keys(config.AuthInfos)),
		slices.Collect(maps.Keys(config.Contexts)), []string{config.CurrentContext})
	for _, name := range names {
		if !isName(name) {
			return fmt.Errorf("%q cannot be a name in your kubeconfig: without --merge, the kubeconfig is printed", name)
		}
	}
	return mergeKubeconfig(g, prefixed(config, "gardenlite-"+g.name+"-"), cluster)
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

// forgetContexts removes contexts of clusters that are deleted from the user's own kubeconfig. What goes wrong is a
// warning: the clusters are deleted anyway.
func forgetContexts(g *globals, of usercontexts.Owner) {
	names, err := of.Remove()
	if err != nil {
		printf(g.err, "WARNING: your kubeconfig may still have contexts of deleted clusters: %v\n", err)
	} else if len(names) > 0 {
		printf(g.err, "Removed from your kubeconfig: %s.\n", strings.Join(names, ", "))
	}
}
