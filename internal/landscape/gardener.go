package landscape

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager"
	"github.com/gardenlite/gardenlite/internal/garden/scheduler"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackmanager"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/landscape/supervisor"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
)

// The names of components of the garden, in the status and for --controllers.
const (
	controllerManager = "controller-manager"
	schedulerName     = "scheduler"
)

// syncedRunner is a component that reports whether its caches have synced.
type syncedRunner interface {
	supervisor.Runner
	HasSynced() bool
}

// controllerNames returns the names that --controllers can contain, except those of Kubernetes' controllers.
func controllerNames() []string {
	return append([]string{admissionController, controllerManager, schedulerName, stackmanager.Name},
		append(seedhost.ComponentNames(), controllermanager.Names()...)...)
}

// shared reports whether other processes may run the same landscape on the same datastore, so that one of them has
// to lead.
func (l *Landscape) shared() bool {
	return datastore.Config{Endpoint: l.cfg.Datastore}.Shared()
}

func (l *Landscape) startControllerManager(ctx context.Context) error {
	return l.startInGarden(ctx, controllerManager, controllermanager.User, func(config *rest.Config) (syncedRunner, error) {
		return controllermanager.New(controllermanager.Config{
			REST: config, Clock: l.cfg.Clock, Log: klog.Background().WithName(controllerManager), LeaderElection: l.shared(),
			Controllers:       func(name string) bool { return kubecontrollers.Selected(l.cfg.Controllers, name) },
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
			Folder: statedir.StackFolder(l.cfg.Dir),
		})
	})
}

// startInGarden starts a component that works in the garden as the given user, and waits until its caches have
// synced.
func (l *Landscape) startInGarden(ctx context.Context, name, user string, newComponent func(*rest.Config) (syncedRunner, error)) error {
	if !kubecontrollers.Selected(l.cfg.Controllers, name) {
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
