package landscape

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
)

// bootstrapTokenLife is how long the bootstrap token of a gardenlet of this process is valid.
const bootstrapTokenLife = time.Hour

// startHost creates the host of the seeds, with the runner of containers that are processes, for all clusters. Such
// processes that an earlier gardenlite has left behind are ended.
func (l *Landscape) startHost() error {
	h, err := seedhost.New(seedhost.Config{
		Name: l.cfg.Name, Dir: l.cfg.Dir, BindAddress: l.cfg.BindAddress, Datastore: l.cfg.Datastore, AuditLog: l.cfg.AuditLog,
		Context: l.contextName(), Images: l.cfg.Images, Selects: l.selects, Status: &l.store, Clock: l.cfg.Clock,
	})
	if err != nil {
		return err
	}
	l.host.Store(h)
	l.onClose(h.Close)
	return nil
}

// selects reports whether --controllers selects a component.
func (l *Landscape) selects(component string) bool {
	return kubecontrollers.Selected(l.cfg.Controllers, component)
}

// status returns the current status of the landscape. With collect, garbage is collected before memory is measured.
func (l *Landscape) status(collect bool) control.Status {
	s := l.store.Snapshot(collect)
	if h := l.host.Load(); h != nil {
		s.Processes = h.Processes().Processes()
	}
	return s
}

// startGardenlets starts the components of each seed, and returns when every Seed is ready.
func (l *Landscape) startGardenlets(ctx context.Context) error {
	begin := l.cfg.Clock.Now()
	h := l.host.Load()
	l.onClose(h.StopGardenlets)
	if err := h.StartGardenlets(ctx, l.gardenOfSeeds()); err != nil {
		return err
	}
	for _, needed := range []string{seedhost.GardenletName, controllerManager, admissionController} {
		if !l.selects(needed) {
			return nil // no Seed becomes ready
		}
	}
	return h.WaitReady(ctx, begin)
}

// gardenOfSeeds returns how the seeds of this process connect to its garden.
func (l *Landscape) gardenOfSeeds() seedhost.Garden {
	server, admin := l.garden.Server(), l.garden.AdminConfig()
	return seedhost.Garden{
		At:    &rest.Config{Host: server.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: server.PKI().CAPEM()}},
		Admin: admin,
		Bootstrap: func(ctx context.Context, seedName string) ([]byte, error) {
			token, err := bootstraptoken.Create(ctx, admin, seedName, bootstrapTokenLife, l.cfg.Clock)
			if err != nil {
				return nil, err
			}
			return token.Kubeconfig, nil
		},
	}
}
