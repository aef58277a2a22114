package landscape

import (
	"context"
	"fmt"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

func (l *Landscape) addSeed(ctx context.Context, name string) error {
	return l.changeSeeds(func(h *seedhost.Host) error { return h.AddSeed(ctx, name) })
}

func (l *Landscape) removeSeed(ctx context.Context, name string) error {
	return l.changeSeeds(func(h *seedhost.Host) error { return h.RemoveSeed(ctx, name) })
}

// changeSeeds adds or removes a seed of the landscape, and stores the ports of the seeds for the next start.
func (l *Landscape) changeSeeds(change func(*seedhost.Host) error) error {
	if state := l.store.State(); state != control.StateReady {
		return errNotReady(state)
	}
	if missing := l.missingForSeeds(); missing != "" {
		return fmt.Errorf("the landscape runs without the %s, so no Seed becomes ready or goes: "+
			"start it without -%s in --controllers", missing, missing)
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	h := l.host.Load()
	if err := change(h); err != nil {
		return err
	}
	run, err := statedir.ReadRun(l.cfg.Dir)
	if err == nil {
		run.SeedPorts, err = h.WaitSeeds()
	}
	if err == nil {
		err = statedir.WriteRun(l.cfg.Dir, run)
	}
	return err
}

func errNotReady(state string) error {
	return fmt.Errorf("the landscape is not ready: it is %s; wait with \"gardenlite status --wait\"", state)
}
