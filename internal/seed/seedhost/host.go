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
	"os"
	"path/filepath"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/landscape/supervisor"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/node/programs"
	"github.com/gardenlite/gardenlite/internal/shootplane"
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
	cloud      *cloud.Cloud
	shoots     *shootplane.Host
	// seeds are the clusters of BeginSeeds, count is the wanted number of them.
	seeds    *seedClusters
	count    int
	deployer *deployer
}

// New creates a Host, and starts the runner of containers as processes.
func New(cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, supervisor: supervisor.Supervisor{Status: cfg.Status, Clock: cfg.Clock}}
	return h, h.startProcesses()
}

// newClient returns a client for a garden or a seed.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
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
	return []string{GardenletName, providerName, resourceManager, controlPlanes}
}

// startProcesses starts the runner of containers as processes. It ends those that an earlier process has left behind.
func (h *Host) startProcesses() (err error) {
	if h.images, err = process.OpenImages(filepath.Join(h.cfg.Dir, statedir.ImagesFile), h.cfg.Images); err != nil {
		return err
	}
	dir := filepath.Join(h.cfg.Dir, statedir.ProcessesFolder)
	if h.cfg.Datastore == datastore.Memory { // no PersistentVolume has survived the restart
		if err := os.RemoveAll(filepath.Join(dir, process.PersistentFolder)); err != nil {
			return fmt.Errorf("deleting the data of the last run's PersistentVolumes: %w", err)
		}
	}
	h.processes, err = process.Start(process.Config{
		Dir: dir, Images: h.images, Clock: h.cfg.Clock,
		Log: klog.Background().WithName(statedir.ProcessesFolder),
	})
	return err
}

// openCloud opens the cloud that all seeds of the process share. It is closed after the components of the seeds.
func (h *Host) openCloud() error {
	dir := filepath.Join(h.cfg.Dir, statedir.CloudFolder)
	if h.cfg.Datastore == datastore.Memory { // no Machine object has survived the restart
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("deleting the machines of the last run: %w", err)
		}
	}
	c, err := cloud.Open(cloud.Config{Dir: dir, Clock: h.cfg.Clock, Log: klog.Background().WithName("cloud"),
		Programs: programs.New(h.cfg.Clock, h.processes)})
	if err != nil {
		return fmt.Errorf("opening the simulated cloud: %w", err)
	}
	h.cloud = c
	return h.processes.CleanUp(func(node, _ string) bool { return !strings.HasPrefix(node, statedir.SeedPrefix) && !c.HasHost(node) })
}
