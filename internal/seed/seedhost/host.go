// Package seedhost runs seeds and their gardenlets, for a landscape with a garden in the same process and for a gardenlet that
// runs alone: clusters, gardenlets, resource managers, the local provider, the control planes of shoots, and what gardenlets
// deploy. It may import everything below seed, the runner of shoots' control planes, the simulated cloud, the nodes, and the
// parts of a landscape that are the same for both: its state directory, its status, its supervisor.
//
// It promises that nothing runs any more after Stop and Close, and that a restart runs again what was deployed.
package seedhost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/shootowner"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/datastore/sharedfiles"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/node/programs"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
)

// Config configures a Host.
type Config struct {
	// Name is the name of the landscape, Dir its state directory.
	Name, Dir string
	// BindAddress, Datastore and AuditLog are the same as for a landscape.
	BindAddress, Datastore, AuditLog string
	// Context is the name of the context in the garden's kubeconfig, and the prefix of those for seeds.
	Context string
	// Images are mapped to programs, in addition to those that were mapped while the landscape ran.
	Images []process.Image
	// Selects reports whether a component is to run.
	Selects func(component string) bool
	Status  *control.Store
	Clock   clock.WithTicker
}

// Garden tells seeds and gardenlets how to reach the garden.
type Garden struct {
	// At has the address and CA of the garden; nil if the bootstrap kubeconfig has them.
	At *rest.Config
	// Bootstrap returns a bootstrap kubeconfig for the gardenlet of a seed.
	Bootstrap func(ctx context.Context, seedName string) ([]byte, error)
	// Admin has all permissions in the garden; nil for a garden in another process.
	Admin *rest.Config
}

// Host runs the seeds of a process.
type Host struct {
	cfg        Config
	supervisor supervisor.Supervisor
	garden     Garden
	images     *process.Images
	processes  *process.Runner
	shoots     *shootplane.Host
	owners     shootowner.Garden // nil for a garden in another process
	// seeds are the clusters of BeginSeeds, count is the wanted number of them.
	seeds *seedClusters
	count int
	// work is nil while another process works on the seeds.
	work atomic.Pointer[work]
	// election and files are nil if no other process has the datastore.
	election *election
	files    *sharedfiles.Files
}

// work is what only one process of a landscape does at a time: the simulated cloud, and the components of the seeds.
type work struct {
	cloud    *cloud.Cloud
	deployer *deployer
}

// find returns the unit of a seed, nil if this process does not run it.
func (h *Host) find(seedName string) *unit {
	if w := h.work.Load(); w != nil {
		return w.deployer.find(seedName)
	}
	return nil
}

// keeper returns what keeps the files that another process needs to go on.
func (h *Host) keeper() fsutil.Keeper {
	if h.files == nil {
		return fsutil.Nowhere{}
	}
	return h.files
}

// New creates a Host, and starts the runner of containers as processes.
func New(cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, supervisor: supervisor.Supervisor{Status: cfg.Status, Clock: cfg.Clock}}
	if err := h.startProcesses(); err != nil {
		return nil, err
	}
	if err := h.forgetLastRun(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// newClient returns a client for a garden or a seed.
func newClient(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme))
}

// Close stops the processes of containers. Call it last.
func (h *Host) Close() error { return h.processes.Close() }

// Images returns the images that are mapped to programs.
func (h *Host) Images() *process.Images { return h.images }

// Processes returns the runner of containers as processes.
func (h *Host) Processes() *process.Runner { return h.processes }

// shared reports whether other processes may run the same landscape on the same datastore.
func (h *Host) shared() bool { return datastore.Config{Endpoint: h.cfg.Datastore}.Shared() }

// prefix returns the key prefix that separates a cluster from others in a shared datastore.
func (h *Host) prefix(cluster string) string {
	return datastore.Config{Endpoint: h.cfg.Datastore}.PrefixOf(h.cfg.Name, cluster)
}

// ComponentNames returns the names of the components in seeds for Config.Selects.
func ComponentNames() []string {
	return []string{GardenletName, providerName, resourceManager, shootResourceManager, controlPlanes}
}

// startProcesses starts the runner of containers as processes. It ends those that an earlier process has left behind.
func (h *Host) startProcesses() (err error) {
	if h.images, err = process.OpenImages(filepath.Join(h.cfg.Dir, statedir.ImagesFile), h.cfg.Images); err != nil {
		return err
	}
	h.processes, err = process.Start(process.Config{
		Dir: filepath.Join(h.cfg.Dir, statedir.ProcessesFolder), Images: h.images, Clock: h.cfg.Clock,
		Log: klog.Background().WithName(statedir.ProcessesFolder),
	})
	return err
}

// forgetLastRun deletes the files that belong to objects of the last run, of which a datastore in memory keeps none.
func (h *Host) forgetLastRun() error {
	if h.cfg.Datastore != datastore.Memory {
		return nil
	}
	for _, path := range []string{
		filepath.Join(statedir.ProcessesFolder, process.PersistentFolder),
		statedir.CloudFolder,
		filepath.Join(statedir.DataFolder, statedir.ShootsFolder),
		statedir.GardenletsFolder,
	} {
		if err := fsutil.RemoveAll(filepath.Join(h.cfg.Dir, path)); err != nil {
			return fmt.Errorf("deleting the data of the last run: %w", err)
		}
	}
	return nil
}

// openCloud opens the cloud that all seeds of the process share.
func (h *Host) openCloud() (*cloud.Cloud, error) {
	c, err := cloud.Open(cloud.Config{Dir: filepath.Join(h.cfg.Dir, statedir.CloudFolder), Clock: h.cfg.Clock,
		Log: klog.Background().WithName("cloud"), Programs: programs.New(h.processes, h.apiServerOf), Keeper: h.keeper()})
	if err != nil {
		return nil, fmt.Errorf("opening the simulated cloud: %w", err)
	}
	return c, nil
}

// isClusterNode reports whether a Node is the one of the garden or of a seed, which is no instance of the cloud.
func isClusterNode(name string) bool {
	return name == statedir.GardenCluster || strings.HasPrefix(name, statedir.SeedPrefix)
}

// firstSeed is the name of the first seed; further ones have a number behind it.
const firstSeed = "local"

// SeedNames returns the names of the given number of seeds of a landscape.
func SeedNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = firstSeed
		if i > 0 {
			names[i] += "-" + strconv.Itoa(i+1)
		}
	}
	return names
}

// seedClusters are the clusters that start at the same time as the garden.
type seedClusters struct {
	starting sync.WaitGroup
	mu       sync.Mutex
	running  map[string]*seed.Cluster
	errs     []error
}

func (s *seedClusters) cluster(name string) *seed.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

// set sets the cluster of a seed, or removes it if that is nil.
func (s *seedClusters) set(name string, cluster *seed.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[name] = cluster; cluster == nil {
		delete(s.running, name)
	}
}

// BeginSeeds starts the clusters of the given number of seeds in the background, without those that were removed and with
// those that were added. They listen on their former ports, which are given by seed, if these are free.
func (h *Host) BeginSeeds(ctx context.Context, count int, ports map[string]int) {
	s := &seedClusters{running: map[string]*seed.Cluster{}}
	h.seeds, h.count = s, count
	changes, err := h.readChanges()
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	for _, name := range changes.apply(SeedNames(count)) {
		h.cfg.Status.SetComponentState(statedir.SeedPrefix+name, control.StateStarting, "")
		s.starting.Go(func() {
			cluster, err := h.startSeedCluster(ctx, name, 0, ports[name])
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.errs = append(s.errs, err)
				return
			}
			s.set(name, cluster)
		})
	}
}

func (h *Host) startSeedCluster(ctx context.Context, name string, port, preferredPort int) (*seed.Cluster, error) {
	cluster := statedir.SeedPrefix + name
	begin := time.Now()
	c, err := seed.Start(ctx, seed.Config{
		Config: controlplane.Config{
			Name: name, PKIDir: filepath.Join(h.cfg.Dir, statedir.PKIFolder, cluster),
			DataDir:   filepath.Join(h.cfg.Dir, statedir.DataFolder, cluster),
			Datastore: h.cfg.Datastore, Prefix: h.prefix(cluster),
			BindAddress: h.cfg.BindAddress, Port: port, PreferredPort: preferredPort,
			ServiceCIDR: netip.MustParsePrefix(services),
			AuditLog:    h.auditLog(cluster), Clock: h.cfg.Clock,
			OnPhase: func(phase string, took time.Duration) { h.cfg.Status.RecordStep("seed "+name+": "+phase, took) },
		},
		Region: Region, Zones: Zones, Processes: h.processes,
		ResourceManagerOfGardener: !h.cfg.Selects(resourceManager),
	})
	if err != nil {
		h.cfg.Status.SetComponentState(cluster, control.StateFailed, err.Error())
		return nil, err
	}
	kubeconfig, err := c.AdminKubeconfig(h.cfg.Context + "-" + cluster)
	if err == nil {
		err = fsutil.WriteFile(statedir.SeedKubeconfigPath(h.cfg.Dir, name), kubeconfig, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	h.cfg.Status.SetComponentState(cluster, control.StateReady, "")
	h.cfg.Status.RecordStep("seed "+name+" in all", time.Since(begin))
	h.cfg.Status.Update(func(s *control.Status) {
		s.Clusters = append(s.Clusters, control.Cluster{Kind: "seed", Name: name, URL: c.Server().URL(), Port: c.Server().Port(),
			KubernetesVersion: controlplane.KubernetesVersion, State: control.StateReady})
	})
	return c, nil
}

// removeSeedCluster stops the cluster of a seed, if it runs, and deletes its data.
func (h *Host) removeSeedCluster(ctx context.Context, name string, c *seed.Cluster) error {
	cluster := statedir.SeedPrefix + name
	errs := []error{h.stopSeedCluster(name, c)}
	dir := filepath.Join(h.cfg.Dir, statedir.DataFolder, cluster)
	if err := controlplane.DeleteData(ctx, h.cfg.Datastore, dir, h.prefix(cluster)); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, path := range []string{dir,
		filepath.Join(h.cfg.Dir, statedir.PKIFolder, cluster), statedir.SeedKubeconfigPath(h.cfg.Dir, name)} {
		errs = append(errs, os.RemoveAll(path))
	}
	errs = append(errs, h.processes.DeleteVolumes(cluster))
	h.processes.CleanUp(func(node, _ string) bool { return node == cluster || strings.HasPrefix(node, cluster+".") })
	return errors.Join(errs...)
}

// stopSeedCluster stops the cluster of a seed, if it runs, and removes it from the status.
func (h *Host) stopSeedCluster(name string, c *seed.Cluster) (err error) {
	cluster := statedir.SeedPrefix + name
	if c != nil {
		h.cfg.Status.SetComponentState(cluster, control.StateStopping, "")
		err = c.Stop()
	}
	h.cfg.Status.Remove(cluster)
	h.cfg.Status.Update(func(s *control.Status) {
		s.Clusters = slices.DeleteFunc(s.Clusters, func(c control.Cluster) bool { return c.Kind == "seed" && c.Name == name })
	})
	return err
}

// auditLog returns the path of the audit log of a seed's cluster, empty if there is none.
func (h *Host) auditLog(cluster string) string {
	if h.cfg.AuditLog == "" {
		return ""
	}
	return h.cfg.AuditLog + "." + cluster
}

// WaitSeeds waits until all clusters run, and returns their ports by seed, or an error if one could not be started.
func (h *Host) WaitSeeds() (map[string]int, error) {
	h.seeds.starting.Wait()
	if err := errors.Join(h.seeds.errs...); err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for name, cluster := range h.seeds.running {
		ports[name] = cluster.Server().Port()
	}
	return ports, nil
}

// StopSeeds stops the clusters that BeginSeeds has started.
func (h *Host) StopSeeds() error {
	s := h.seeds
	s.starting.Wait()
	var errs []error
	var stopping sync.WaitGroup
	for name, cluster := range s.running {
		h.cfg.Status.SetComponentState(statedir.SeedPrefix+name, control.StateStopping, "")
		stopping.Go(func() {
			err := cluster.Stop()
			if err != nil {
				err = fmt.Errorf("stopping the cluster of seed %s: %w", name, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			errs = append(errs, err)
		})
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// internalDomain is the same for all seeds: a Shoot is migrated only between seeds with the same one, as its addresses stay.
const internalDomain = "internal.gardenlite.local"

// backupSecret and dnsSecret return the names of the Secrets in the namespace garden that a Seed of the local provider
// refers to. Each seed has its own: SeedRestriction lets no gardenlet refer to those of another seed.
func backupSecret(seedName string) string { return statedir.SeedPrefix + seedName + "-backup" }
func dnsSecret(seedName string) string    { return statedir.SeedPrefix + seedName + "-dns" }

// SeedExists reports whether a Seed is registered in a garden.
func SeedExists(ctx context.Context, config *rest.Config, seedName string) (bool, error) {
	found, err := readSeed(ctx, config, seedName)
	return found != nil, err
}

// readSeed reads a Seed in a garden, nil if it is not registered.
func readSeed(ctx context.Context, config *rest.Config, name string) (*gardencorev1beta1.Seed, error) {
	garden, err := newClient(config)
	if err != nil {
		return nil, err
	}
	found := &gardencorev1beta1.Seed{}
	err = garden.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Seed %s: %w", name, err)
	}
	return found, nil
}

// PrepareSeed creates the Secrets in a garden that a Seed of the local provider refers to, with the operator's permissions.
// They are empty: the local provider reads no credentials.
func PrepareSeed(ctx context.Context, config *rest.Config, seedName string) error {
	garden, err := newClient(config)
	if err != nil {
		return err
	}
	for _, name := range []string{backupSecret(seedName), dnsSecret(seedName)} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: constants.GardenNamespace, Name: name,
				Labels: map[string]string{
					constants.LabelShootProviderPrefix + provider.Type: "true",
					constants.LabelPrefixSeedName + seedName:           "true", // otherwise the gardenlet may not refer to it
				},
			},
			Type: corev1.SecretTypeOpaque,
		}
		if err := garden.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating Secret %s/%s, which Seed %s refers to: %w", secret.Namespace, name, seedName, err)
		}
	}
	return ensureGlobalMonitoring(ctx, garden)
}

// ensureGlobalMonitoring creates the Secret with the login for the observability components of all seeds, as the installation of
// Gardener does. Gardener's gardenlet needs it.
func ensureGlobalMonitoring(ctx context.Context, garden client.Client) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "observability-ingress",
		Labels: map[string]string{constants.GardenRole: constants.GardenRoleGlobalMonitoring}}, Type: corev1.SecretTypeOpaque}
	err := garden.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		if secret.Data, err = shootsecrets.NewPassword(); err != nil {
			return err
		}
		err = client.IgnoreAlreadyExists(garden.Create(ctx, secret))
	}
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// ownSeedSecrets makes the Seed the owner of the Secrets of PrepareSeed, so that they are deleted with it.
func ownSeedSecrets(ctx context.Context, garden client.Client, seed *gardencorev1beta1.Seed) error {
	for _, name := range []string{backupSecret(seed.Name), dnsSecret(seed.Name)} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
		patch := client.MergeFrom(secret.DeepCopy())
		secret.OwnerReferences = []metav1.OwnerReference{seedOwner(seed)}
		if err := garden.Patch(ctx, secret, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("making Seed %s the owner of Secret %s/%s: %w", seed.Name, constants.GardenNamespace, name, err)
		}
	}
	return nil
}

func seedOwner(seed *gardencorev1beta1.Seed) metav1.OwnerReference {
	return *metav1.NewControllerRef(seed, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
}

// gardenletConfiguration returns the configuration of the gardenlet of a seed of the landscape.
func gardenletConfiguration(name string) *gardenletconfigv1alpha1.GardenletConfiguration {
	return &gardenletconfigv1alpha1.GardenletConfiguration{
		Controllers: &gardenletconfigv1alpha1.GardenletControllerConfiguration{
			// Gardener's default of 15 s is for Shoots and Seeds that take minutes.
			ManagedSeed: &gardenletconfigv1alpha1.ManagedSeedControllerConfiguration{
				WaitSyncPeriod: &metav1.Duration{Duration: time.Second},
			},
		},
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: *seedTemplate(name)},
	}
}

// Region and Zones are those of the landscape's own seeds.
const Region = "local"

var Zones = []string{"local-a", "local-b", "local-c"}

// services is the range of the Services of the landscape's own seeds.
const services = "10.242.0.0/16"

// seedTemplate returns the template of the Seed that a gardenlet registers.
func seedTemplate(name string) *gardencorev1beta1.SeedTemplate {
	secret := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: name}
	}
	return &gardencorev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: provider.Type, Region: Region, Zones: Zones},
			Networks: gardencorev1beta1.SeedNetworks{
				Nodes: ptr.To("10.240.0.0/16"), Pods: "10.241.0.0/16", Services: services,
				// Those of Gardener's examples, for Shoots that leave them out.
				ShootDefaults: &gardencorev1beta1.ShootNetworks{Pods: ptr.To("100.96.0.0/11"), Services: ptr.To("100.64.0.0/13")},
			},
			Backup: &gardencorev1beta1.Backup{Provider: provider.Type, CredentialsRef: ptr.To(secret(backupSecret(name)))},
			DNS: gardencorev1beta1.SeedDNS{
				Provider: &gardencorev1beta1.SeedDNSProvider{Type: provider.Type, CredentialsRef: ptr.To(secret(dnsSecret(name)))},
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{
					Type: provider.Type, Domain: internalDomain, CredentialsRef: secret(dnsSecret(name)),
				},
			},
			Ingress: &gardencorev1beta1.Ingress{
				Domain: "ingress." + name + ".gardenlite.local", Controller: gardencorev1beta1.IngressController{Kind: "nginx"},
			},
			Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		},
	}
}
