package landscape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/extensions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet"
	"github.com/gardenlite/gardenlite/internal/seed/resourcemanager"
	"github.com/gardenlite/gardenlite/internal/version"
)

// What runs in each seed, by the names for --controllers. In the status the seed's name stands behind it.
const (
	gardenletName   = "gardenlet"
	providerName    = "provider-local"
	resourceManager = "resource-manager"
)

// bootstrapTokenLife is how long the token lives with which a gardenlet of this process gets its certificate.
const bootstrapTokenLife = time.Hour

// startGardenlets starts in each seed what runs there, and returns when every Seed is ready.
func (l *Landscape) startGardenlets(ctx context.Context, seeds *seedClusters) error {
	begin := l.cfg.Clock.Now()
	names := slices.Sorted(maps.Keys(seeds.running))
	if err := l.openCloud(); err != nil {
		return err
	}
	l.deployer = newDeployer(l, l.ownGarden())
	l.onClose(l.deployer.stop)
	for _, name := range names {
		if err := PrepareSeed(ctx, l.garden.AdminConfig(), name); err != nil {
			return err
		}
		if err := l.deployer.adopt(seeds.running[name], gardenletConfiguration(name)); err != nil {
			return err
		}
	}
	if err := l.deployer.resume(); err != nil {
		return err
	}
	if err := l.tellOfStopped(ctx); err != nil {
		return err
	}
	for _, needed := range []string{gardenletName, controllerManager, admissionController} {
		if !garden.SelectsController(l.cfg.Controllers, needed) {
			return nil // no Seed becomes ready
		}
	}
	var waiting sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		waiting.Go(func() {
			if errs[i] = l.waitSeedReady(ctx, name, begin); errs[i] == nil {
				l.step("seed "+name+" ready", l.cfg.Clock.Since(begin))
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// inSeed starts a component that works in a seed as a user of its own, if it is selected.
func (l *Landscape) inSeed(component, user string, cluster *seed.Cluster,
	newComponent func(name string, config *rest.Config) (runner, error)) (stop func(), err error) {
	if !garden.SelectsController(l.cfg.Controllers, component) {
		return func() {}, nil
	}
	config, err := cluster.Server().ClientConfig(component, user)
	if err != nil {
		return nil, err
	}
	name := component + " " + cluster.Name()
	l.countRefusals(name, config)
	return l.supervise(name, func() (runner, error) { return newComponent(name, config) })
}

func (l *Landscape) startResourceManager(cluster *seed.Cluster) (stop func(), err error) {
	return l.inSeed(resourceManager, resourcemanager.User, cluster, func(name string, config *rest.Config) (runner, error) {
		return resourcemanager.New(resourcemanager.Config{
			REST: config, Clock: l.cfg.Clock, Log: klog.Background().WithName(name), Lease: l.leaseIfShared(resourceManager),
		})
	})
}

func (l *Landscape) startProvider(cluster *seed.Cluster) (stop func(), err error) {
	return l.inSeed(providerName, extensions.User, cluster, func(name string, config *rest.Config) (runner, error) {
		return extensions.New(extensions.Config{
			REST: config, Cloud: l.cloud, Clock: l.cfg.Clock, Log: klog.Background().WithName(name), Lease: l.leaseIfShared(providerName),
		})
	})
}

// leaseIfShared is the Lease of a component in its seed, where other processes may run the same landscape.
func (l *Landscape) leaseIfShared(component string) *client.ObjectKey {
	if !l.shared() {
		return nil
	}
	return &client.ObjectKey{Namespace: constants.GardenNamespace, Name: component}
}

// gardenFor is the garden as gardenlets need to know it.
type gardenFor struct {
	// at is where it is and what its authority is; nil if the bootstrap kubeconfig says so.
	at *rest.Config
	// bootstrap makes a bootstrap kubeconfig for the gardenlet of a seed.
	bootstrap func(ctx context.Context, seedName string) ([]byte, error)
}

// ownGarden is the garden of this process.
func (l *Landscape) ownGarden() gardenFor {
	server := l.garden.Server()
	return gardenFor{
		at: &rest.Config{Host: server.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: server.PKI().CAPEM()}},
		bootstrap: func(ctx context.Context, seedName string) ([]byte, error) {
			token, err := CreateToken(ctx, l.garden.AdminConfig(), seedName, bootstrapTokenLife, l.cfg.Clock)
			if err != nil {
				return nil, err
			}
			return token.Kubeconfig, nil
		},
	}
}

// startGardenlet starts a gardenlet. One that has a parent is bootstrapped by that.
func (l *Landscape) startGardenlet(cluster *seed.Cluster, configuration *gardenletconfigv1alpha1.GardenletConfiguration,
	hasParent bool) (stop func(), err error) {
	return l.inSeed(gardenletName, gardenlet.SeedUser, cluster, func(name string, config *rest.Config) (runner, error) {
		cfg := gardenlet.Config{
			Configuration: configuration, Seed: config, Garden: l.deployer.garden.at,
			WrapGarden:   func(config *rest.Config) { l.countRefusals(name, config) },
			ChartLayouts: filepath.Join(l.cfg.Dir, chartsFolder),
			Version:      version.GardenerVersion, Clock: l.cfg.Clock, Log: klog.Background().WithName(name),
			LeaderElection: l.shared(), Deployer: l.deployer,
		}
		if !hasParent {
			cfg.Bootstrap = func(ctx context.Context) ([]byte, error) { return l.deployer.garden.bootstrap(ctx, cluster.Name()) }
		}
		return gardenlet.New(cfg)
	})
}

// waitSeedReady returns when all conditions of a Seed are good that Gardener shows as its readiness, its gardenlet has
// renewed its lease since then (after a restart the conditions are still those of before), and gardenctl can target it.
func (l *Landscape) waitSeedReady(ctx context.Context, name string, since time.Time) error {
	config := l.garden.AdminConfig()
	seeds, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	leases := core.CoordinationV1().Leases(gardencorev1beta1.GardenerSeedLeaseNamespace)
	missing := "it is not registered"
	seed := &gardencorev1beta1.Seed{}
	err = waitFor(ctx, "Seed "+name+" to be ready", func() bool {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
			missing = "its gardenlet has not renewed its lease"
			return false
		}
		obj, err := seeds.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("seeds")).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		seed = &gardencorev1beta1.Seed{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, seed); err != nil {
			return false
		}
		if missing = notReady(seed); missing == "" {
			if _, err := core.CoreV1().Secrets(constants.GardenNamespace).Get(ctx, name+SeedLoginSuffix, metav1.GetOptions{}); err != nil {
				missing = "the kubeconfig for gardenctl is not written"
			}
		}
		return missing == ""
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return ownSeedSecrets(ctx, config, seed)
}

// tellOfStopped has the status say which Seeds have a cluster here that is not started any more.
func (l *Landscape) tellOfStopped(ctx context.Context) error {
	client, err := dynamic.NewForConfig(l.garden.AdminConfig())
	if err != nil {
		return err
	}
	for _, name := range KnownSeeds(l.cfg.Dir) {
		if l.deployer.find(name) != nil {
			continue
		}
		_, err := client.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("seeds")).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			l.board.component(seedPrefix+name, StateStopped, fmt.Sprintf(
				"there is a Seed %s, but --seeds %d does not start its cluster: start more seeds, and delete the Seed first if "+
					"it is not needed any more", name, l.cfg.Seeds))
		}
	}
	return nil
}

// readiness are the conditions that make a Seed ready.
var readiness = []gardencorev1beta1.ConditionType{
	gardencorev1beta1.GardenletReady, gardencorev1beta1.SeedSystemComponentsHealthy,
	gardencorev1beta1.SeedBackupBucketsReady, gardencorev1beta1.SeedExtensionsReady,
}

// notReady says why a Seed is not ready, "" if it is.
func notReady(seed *gardencorev1beta1.Seed) string {
	var missing []string
	for _, wanted := range readiness {
		i := slices.IndexFunc(seed.Status.Conditions, func(c gardencorev1beta1.Condition) bool { return c.Type == wanted })
		switch {
		case i < 0:
			missing = append(missing, string(wanted)+" has not been looked at")
		case seed.Status.Conditions[i].Status != gardencorev1beta1.ConditionTrue:
			missing = append(missing, string(wanted)+": "+seed.Status.Conditions[i].Message)
		}
	}
	return strings.Join(missing, "; ")
}
