package landscape

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/garden"
	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
)

// bootstrapTokenLife is how long the token lives with which a gardenlet of this process gets its certificate.
const bootstrapTokenLife = time.Hour

// startHost makes what runs the seeds, with what runs containers as processes in all clusters. Those that an earlier process
// has left behind are ended.
func (l *Landscape) startHost() error {
	h, err := seedhost.New(seedhost.Config{
		Name: l.cfg.Name, Dir: l.cfg.Dir, BindAddress: l.cfg.BindAddress, Datastore: l.cfg.Datastore, AuditLog: l.cfg.AuditLog,
		Context: l.contextName(), Images: l.cfg.Images, Selects: l.selects, Status: &l.board, Clock: l.cfg.Clock,
	})
	if err != nil {
		return err
	}
	l.host.Store(h)
	l.onClose(h.Close)
	return nil
}

// selects says whether --controllers has a component run.
func (l *Landscape) selects(component string) bool {
	return garden.SelectsController(l.cfg.Controllers, component)
}

// status is the landscape's status now; with collect, after a garbage collection.
func (l *Landscape) status(collect bool) control.Status {
	s := l.board.Snapshot(collect)
	if h := l.host.Load(); h != nil {
		s.Processes = h.Processes().Processes()
	}
	return s
}

// startGardenlets starts in each seed what runs there, and returns when every Seed is ready.
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

// gardenOfSeeds is the garden of this process, for its seeds.
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
