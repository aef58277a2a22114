// Package supervisor runs the components of the process. It restarts components that end by themselves, and records
// in the status their states and how many of their requests were forbidden. It may import the status store.
package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// A component that ends by itself is restarted after an exponential backoff from restartFirst to restartLast.
const (
	restartFirst = time.Second
	restartLast  = 30 * time.Second
)

// Runner is a part of the process that runs until its context ends.
type Runner interface {
	Run(context.Context) error
}

// Supervisor runs components, and records their states in the status.
type Supervisor struct {
	Status *control.Store
	Clock  clock.WithTicker
}

// Start runs a component until it is stopped. The first runner is created at once, and an error of that fails the
// start. A runner that ends by itself is replaced by a new one.
func (s *Supervisor) Start(name string, newRunner func() (Runner, error)) (stop func(), err error) {
	s.Status.SetComponentState(name, control.StateStarting, "")
	defer quirks.EnterLogOrigin(originOf(name))()
	current, err := newRunner()
	if err != nil {
		s.Status.SetComponentState(name, control.StateFailed, err.Error())
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.keepRunning(ctx, name, current, newRunner)
	}()
	return func() {
		s.Status.SetComponentState(name, control.StateStopping, "")
		cancel()
		<-ended
	}, nil
}

// originOf returns the origin of what a component logs. The name of a seed's component ends with that of the seed.
func originOf(name string) quirks.LogOrigin {
	component, seed, found := strings.Cut(name, " ")
	if !found {
		return quirks.LogOrigin{Component: component, Cluster: statedir.GardenCluster}
	}
	return quirks.LogOrigin{Component: component, Cluster: statedir.SeedPrefix + seed}
}

func (s *Supervisor) keepRunning(ctx context.Context, name string, current Runner, newRunner func() (Runner, error)) {
	pause := restartFirst
	for {
		begin := s.Clock.Now()
		err := s.runOnce(ctx, name, current)
		if ctx.Err() != nil {
			return
		}
		if s.Clock.Since(begin) > restartLast {
			pause = restartFirst
		}
		if err == nil {
			err = errors.New("it ended without an error")
		}
		for {
			klog.Background().Error(err, "A component has ended by itself; starting it again", "component", name, "after", pause)
			s.Status.SetComponentState(name, control.StateFailed, err.Error())
			select {
			case <-ctx.Done():
				return
			case <-s.Clock.After(pause):
			}
			pause = min(2*pause, restartLast)
			var next Runner
			if next, err = newRunner(); err == nil {
				current = next
				break
			}
		}
		s.Status.SetComponentState(name, control.StateStarting, "")
	}
}

// runOnce runs a component until it ends, and sets its state to ready once its caches have synced.
func (s *Supervisor) runOnce(ctx context.Context, name string, current Runner) error {
	var watching sync.WaitGroup
	watchCtx, stopWatching := context.WithCancel(ctx)
	if synced, ok := current.(interface{ HasSynced() bool }); ok {
		watching.Go(func() {
			if WaitFor(watchCtx, name, synced.HasSynced) == nil {
				s.Status.SetComponentState(name, control.StateReady, "")
			}
		})
	}
	err := current.Run(ctx)
	stopWatching()
	watching.Wait()
	return err
}

// WaitFor polls until a part of the landscape is ready.
func WaitFor(ctx context.Context, what string, ready func() bool) error {
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) { return ready(), nil })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// CountForbidden counts the forbidden requests of a component in the status: the component has too few rights, or
// requests what it does not need.
func (s *Supervisor) CountForbidden(component string, config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &refusals{next: next, refused: func(r *http.Request) {
			klog.Background().Info("A component was forbidden something", "component", component, "method", r.Method, "path",
				r.URL.Path, "query", r.URL.RawQuery)
			s.Status.CountForbidden(component)
		}}
	})
}

// refusals is a RoundTripper that reports each response with the status 403, unless the reason is that a namespace is being
// deleted: that has nothing to do with the rights of a component.
type refusals struct {
	next    http.RoundTripper
	refused func(*http.Request)
}

func (t *refusals) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden && !isNamespaceTerminating(response) {
		t.refused(r)
	}
	return response, err
}

// maxStatus is how much is read of the body of a response with an error.
const maxStatus = 64 << 10

func isNamespaceTerminating(response *http.Response) bool {
	status, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(status), response.Body), response.Body}
	return err == nil && bytes.Contains(status, []byte(corev1.NamespaceTerminatingCause)) // in JSON and in protobuf
}

// WrappedRoundTripper returns the wrapped RoundTripper, so that its idle connections can be closed.
func (t *refusals) WrappedRoundTripper() http.RoundTripper { return t.next }
