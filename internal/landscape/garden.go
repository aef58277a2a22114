package landscape

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garden"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager"
	"github.com/gardenlite/gardenlite/internal/garden/scheduler"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackmanager"
	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
)

// The names of components of the garden, in the status and for --controllers.
const (
	admissionController = "admission-controller"
	controllerManager   = "controller-manager"
	schedulerName       = "scheduler"
)

func (l *Landscape) startGarden(ctx context.Context, run *statedir.Run) error {
	releaseGates, err := corevalidation.UseFeatureGates(l.cfg.FeatureGates)
	if err != nil {
		return err
	}
	l.onClose(func() error { releaseGates(); return nil })
	l.store.SetComponentState(statedir.GardenCluster, control.StateStarting, "")
	g, err := garden.Start(ctx, garden.Config{
		Config: controlplane.Config{
			PKIDir:      filepath.Join(l.cfg.Dir, statedir.PKIFolder, statedir.GardenCluster),
			DataDir:     filepath.Join(l.cfg.Dir, statedir.DataFolder, statedir.GardenCluster),
			Datastore:   l.cfg.Datastore,
			Prefix:      datastore.Config{Endpoint: l.cfg.Datastore}.PrefixOf(l.cfg.Name, statedir.GardenCluster),
			BindAddress: l.cfg.BindAddress,
			Port:        l.cfg.Port, PreferredPort: run.Port,
			Prepare:  l.prepareAdmission,
			Services: l.admission.Services(),
			AuditLog: l.cfg.AuditLog,
			Clock:    l.cfg.Clock,
			OnPhase:  func(name string, took time.Duration) { l.store.RecordStep("garden: "+name, took) },
		},
		Bare: l.cfg.Bare, Admission: l.cfg.Admission,
		Controllers: l.cfg.Controllers, Programs: slices.DeleteFunc([]string{controllerManager, schedulerName}, l.selects),
		Kubeconfigs: l.cfg.Kubeconfigs, BastionTimeToLive: l.cfg.BastionTimeToLive,
		Region: seedhost.Region, Zones: seedhost.Zones[:1], Processes: l.host.Load().Processes(),
	})
	if err != nil {
		return fmt.Errorf("starting the garden: %w", err)
	}
	l.garden = g
	l.onClose(func() error {
		l.store.SetComponentState(statedir.GardenCluster, control.StateStopping, "")
		return g.Stop()
	})
	run.URL, run.Port = g.Server().URL(), g.Server().Port()
	if err := statedir.WriteRun(l.cfg.Dir, run); err != nil {
		return err
	}
	kubeconfig, err := g.AdminKubeconfig(ContextName(l.cfg.Name))
	if err != nil {
		return err
	}
	if err := fsutil.WriteFile(l.KubeconfigPath(), kubeconfig, 0o600); err != nil {
		return err
	}
	l.store.SetComponentState(statedir.GardenCluster, control.StateReady, "")
	l.store.Update(func(s *control.Status) {
		s.Run = *run
		s.Clusters = append(s.Clusters, control.Cluster{Kind: "garden", Name: statedir.GardenCluster, URL: run.URL, Port: run.Port,
			KubernetesVersion: controlplane.KubernetesVersion, State: control.StateReady})
	})
	return nil
}

// applyDefaults creates the objects that every landscape has: a CloudProfile, a Project, the provider.
func (l *Landscape) applyDefaults(ctx context.Context) error {
	if l.cfg.Bare {
		return nil
	}
	begin := time.Now()
	if err := l.garden.ApplyDefaultLandscape(ctx); err != nil {
		return fmt.Errorf("creating the default landscape: %w", err)
	}
	l.store.RecordStep("default landscape", time.Since(begin))
	return nil
}

// applyManifests applies the user's manifests. They may refer to the landscape's Seeds.
func (l *Landscape) applyManifests(ctx context.Context) error {
	for _, path := range l.cfg.Apply {
		begin := time.Now()
		if err := l.garden.ApplyPath(ctx, path); err != nil {
			return fmt.Errorf("--apply %s: %w", path, err)
		}
		l.store.RecordStep("apply "+filepath.Base(path), time.Since(begin))
	}
	return nil
}

// admission is the admission controller of the landscape; controller has none until it is started.
type admission struct {
	*server.Embedded
	controller atomic.Pointer[server.Controller]
}

// listenAdmission listens on a port for the webhooks, the previous one if it is free.
func (l *Landscape) listenAdmission(previous *statedir.Run) (err error) {
	port := 0
	if previous != nil {
		port = previous.AdmissionPort
	}
	if l.admission.Embedded, err = server.Listen(port); err != nil { // another program has it now
		l.admission.Embedded, err = server.Listen(0)
	}
	if err != nil {
		return err
	}
	l.onClose(func() error {
		_ = l.admission.Close() // the server has closed it, if it was started
		return nil
	})
	return nil
}

// prepareAdmission writes the files that the API server needs for the webhooks, and returns its flags.
func (l *Landscape) prepareAdmission(p *pki.PKI) ([]string, error) {
	return l.admission.WriteFiles(p, filepath.Join(l.cfg.Dir, statedir.AdmissionFolder))
}

// startAdmission starts the admission controller, and waits until it has synced with the garden.
func (l *Landscape) startAdmission(ctx context.Context) error {
	begin := time.Now()
	if !l.selects(admissionController) {
		// The API server keeps asking: gardenlets are refused until another admission controller answers on the port.
		return l.admission.Close()
	}
	apiserver := l.garden.Server()
	config, err := apiserver.ClientConfig(admissionController, server.User)
	if err != nil {
		return err
	}
	stop, err := l.supervisor.Start(admissionController, func() (supervisor.Runner, error) {
		install, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.ReadyTimeout)
		defer cancel()
		c, err := l.admission.New(install, server.Config{REST: config, Limits: l.cfg.limits, Reads: l.cfg.Reads,
			Clock: l.cfg.Clock,
			Log:   klog.Background().WithName(admissionController)}, l.garden.AdminConfig(), apiserver.PKI())
		if err != nil {
			return nil, err
		}
		l.admission.controller.Store(c)
		return c, nil
	})
	if err != nil {
		return err
	}
	l.onClose(func() error { stop(); return nil })
	if err := l.admission.controller.Load().WaitSynced(ctx, func(string) {}); err != nil {
		return err
	}
	l.store.RecordStep("admission controller", time.Since(begin))
	return nil
}

// inspected returns the controller that explains access to the garden, or an error until the landscape is ready.
func (l *Landscape) inspected() (*server.Controller, *rest.Config, error) {
	if state := l.store.State(); state != control.StateReady {
		return nil, nil, errNotReady(state)
	}
	controller := l.admission.controller.Load()
	if controller == nil {
		return nil, nil, errors.New("the landscape runs without the " + admissionController +
			", so nothing is allowed to gardenlets beyond RBAC: start it without -" + admissionController + " in --controllers")
	}
	return controller, l.garden.AdminConfig(), nil
}

// syncedRunner is a component that reports whether its caches have synced.
type syncedRunner interface {
	supervisor.Runner
	HasSynced() bool
}

func (l *Landscape) startControllerManager(ctx context.Context) error {
	return l.startInGarden(ctx, controllerManager, controllermanager.User, func(config *rest.Config) (syncedRunner, error) {
		return controllermanager.New(controllermanager.Config{
			REST: config, Clock: l.cfg.Clock, Log: klog.Background().WithName(controllerManager), LeaderElection: l.shared(),
			Controllers:       l.selects,
			SeedMonitorPeriod: l.cfg.SeedMonitorPeriod, BastionMaxLifetime: l.cfg.BastionMaxLifetime,
		})
	})
}

func (l *Landscape) startScheduler(ctx context.Context) error {
	return l.startInGarden(ctx, schedulerName, scheduler.User, func(config *rest.Config) (syncedRunner, error) {
		return scheduler.New(scheduler.Config{
			REST: config, Clock: l.cfg.Clock, Log: klog.Background().WithName(schedulerName), LeaderElection: l.shared(),
		})
	})
}

func (l *Landscape) startStackManager(ctx context.Context) error {
	return l.startInGarden(ctx, stackmanager.Name, stackmanager.User, func(config *rest.Config) (syncedRunner, error) {
		return stackmanager.New(stackmanager.Config{
			REST: config, Clock: l.cfg.Clock, Log: klog.Background().WithName(stackmanager.Name), LeaderElection: l.shared(),
			Folder: statedir.StackFolder(l.cfg.Dir), LoopbackRegistry: l.cfg.LoopbackRegistry,
		})
	})
}

// startInGarden starts a component that works in the garden as the given user, and waits until its caches have
// synced.
func (l *Landscape) startInGarden(ctx context.Context, name, user string, newComponent func(*rest.Config) (syncedRunner, error)) error {
	if !l.selects(name) {
		return nil
	}
	begin := l.cfg.Clock.Now()
	config, err := l.garden.Server().ClientConfig(name, user)
	if err != nil {
		return err
	}
	l.supervisor.CountForbidden(name, config)
	var first syncedRunner
	stop, err := l.supervisor.Start(name, func() (supervisor.Runner, error) {
		component, err := newComponent(config)
		if first == nil {
			first = component
		}
		return component, err
	})
	if err != nil {
		return err
	}
	l.onClose(func() error { stop(); return nil })
	if err := supervisor.WaitFor(ctx, "the "+name+" to read what it watches", first.HasSynced); err != nil {
		return err
	}
	l.store.RecordStep(name, l.cfg.Clock.Since(begin))
	return nil
}

// UserKubeconfig returns a kubeconfig for another user of a cluster, the garden or a seed, derived from the administrator's. It
// needs no running landscape: the certificate is signed with the authority's key in the state directory.
func UserKubeconfig(dir, cluster string, admin *clientcmdapi.Config, user string, groups []string, life time.Duration) (
	*clientcmdapi.Config, error) {
	context := admin.Contexts[admin.CurrentContext]
	if context == nil || admin.Clusters[context.Cluster] == nil {
		return nil, errors.New("the landscape's kubeconfig has no current context: start the landscape again, and it is written anew")
	}
	of := admin.Clusters[context.Cluster]
	authority := filepath.Join(dir, statedir.PKIFolder, cluster)
	certPEM, keyPEM, err := pki.IssueFrom(authority, clock.RealClock{}, user, groups, life)
	if err != nil {
		return nil, err
	}
	return controlplane.Kubeconfig(admin.CurrentContext+"-"+user, of.Server, of.CertificateAuthorityData, certPEM, keyPEM), nil
}
