package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// Run deletes what bootstrapped the identity, and rotates the certificate when it is due, until the context ends. It
// retries failures, and always returns nil.
func (i *Identity) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for i.cleanUp(ctx); ; i.cleanUp(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-i.bootstrapped:
			}
		}
	})
	for i.awaitRotation(ctx) == nil {
		i.retry(ctx, "Rotating the gardenlet's certificate failed", func() error {
			err := i.rotate(ctx)
			if ctx.Err() == nil && !isConflict(err) {
				i.reportError(err)
			}
			return err
		})
	}
	return nil
}

// retry calls a function with exponential backoff until it succeeds or the context ends.
func (i *Identity) retry(ctx context.Context, failed string, do func() error) {
	for delay := i.cfg.Durations.RetryFrom; ; delay = min(2*delay, i.cfg.Durations.RetryTo) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return
		}
		if isConflict(err) { // between rotation and clean-up, or with another gardenlet of the seed
			i.cfg.Log.V(1).Info(failed, "reason", err.Error())
		} else {
			i.cfg.Log.Error(err, failed, "expires", i.Expiration())
		}
		if pause(ctx, delay) != nil {
			return
		}
	}
}

func (i *Identity) reportError(err error) {
	i.mu.Lock()
	observers, expiration := slices.Clone(i.observers), i.current.leaf.NotAfter
	i.mu.Unlock()
	for _, observe := range observers {
		observe(expiration, err)
	}
}

// awaitRotation returns nil when a rotation is due, a user has requested one by annotation, or another gardenlet of the
// seed has stored a new certificate.
func (i *Identity) awaitRotation(ctx context.Context) error {
	for {
		current, at := i.state()
		left := at.Sub(i.cfg.Clock.Now())
		if left <= 0 {
			return ctx.Err()
		}
		timer := i.cfg.Clock.NewTimer(min(left, i.cfg.Durations.RenewCheck))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
		s, err := readStore(ctx, i.cfg.SeedClient)
		if err != nil {
			i.cfg.Log.V(1).Info("Looking whether a new certificate is wanted failed", "reason", err.Error())
		} else if s.renews() || i.successor(s, current) != nil {
			return ctx.Err()
		}
	}
}

// successor returns the stored credential if it expires later than the current one, nil otherwise.
func (i *Identity) successor(s *store, current *credential) *credential {
	stored, err := i.stored(s)
	if err != nil || s.renews() || !stored.leaf.NotAfter.After(current.leaf.NotAfter) {
		return nil
	}
	return stored
}

// rotate gets a new certificate with the current one, or by bootstrapping again if the current one has expired.
func (i *Identity) rotate(ctx context.Context) error {
	landscapeclock.Begin(i.cfg.Clock)
	defer landscapeclock.End(i.cfg.Clock)
	s, err := readStore(ctx, i.cfg.SeedClient)
	if err != nil {
		return err
	}
	current, _ := i.state()
	if next := i.successor(s, current); next != nil {
		return i.use(next)
	}
	if !current.validAt(i.cfg.Clock.Now()) {
		return i.bootstrap(ctx, s, fmt.Errorf("it expired at %s", current.leaf.NotAfter.Format(time.RFC3339)))
	}
	client, err := i.client()
	if err != nil {
		return err
	}
	next, err := i.requestCertificate(ctx, s, client, current.garden, i.cfg.Durations.OwnPoll)
	if err != nil {
		return fmt.Errorf("rotating the certificate of the gardenlet of seed %q: %w", i.cfg.SeedName, err)
	}
	if err := s.setCredential(ctx, next, ""); err != nil {
		return err
	}
	return i.useNew(next)
}

// useNew uses a new credential. If its rotation is already due, because the signer's clock differs or the lifetime is
// short, it is rotated after half of the remaining lifetime, so that certificates are not requested in a loop.
func (i *Identity) useNew(c *credential) error {
	if err := i.use(c); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := i.cfg.Clock.Now(); !i.rotateAt.After(now) {
		i.rotateAt = now.Add(c.leaf.NotAfter.Sub(now) / 2)
	}
	return nil
}

// client returns a client with the identity. It has no rate limit, because its callers poll with delays.
func (i *Identity) client() (kubernetes.Interface, error) {
	config := i.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the garden: %w", err)
	}
	return client, nil
}
