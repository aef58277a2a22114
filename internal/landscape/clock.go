package landscape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garbage"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	// settleTimeout is how long a step of an advance waits for Shoots and Bastions, settlePoll how often it looks at them.
	settleTimeout, settlePoll = 2 * time.Minute, 50 * time.Millisecond
	// maxUnsettled limits how many of them an error names.
	maxUnsettled = 5
)

// loadClock returns the clock of a landscape, which goes on where it was.
func loadClock(dir, endpoint string) (*landscapeclock.Clock, error) {
	file := filepath.Join(dir, statedir.ClockFile)
	var history landscapeclock.History
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &history)
	}
	if err == nil {
		err = history.Validate()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--data-dir: reading the time of the landscape from %s: %w", file, err)
	}
	return landscapeclock.New(history, func(history landscapeclock.History) error {
		if (datastore.Config{Endpoint: endpoint}).Shared() {
			return fmt.Errorf("the datastore %s may have other processes, whose clocks would stay: only a landscape with a datastore of its own "+
				"has a clock that can be changed", DatastoreKind(endpoint))
		}
		data, err := json.Marshal(history)
		if err != nil {
			return err
		}
		return fsutil.WriteFile(file, data, 0o600)
	}), nil
}

var errOtherClock = errors.New("the landscape was started with a clock that cannot be changed")

// Clock returns the clock of the landscape, nil if it was started with another one.
func (l *Landscape) Clock() *landscapeclock.Clock {
	clock, _ := l.cfg.Clock.(*landscapeclock.Clock)
	return clock
}

// AdvanceClock moves the clock ahead to a time. What is due at different times happens in that order, and has happened when it returns;
// passed is called after each step. An error says what has not; the clock then stays where it was when that was due.
func (l *Landscape) AdvanceClock(ctx context.Context, to time.Time, passed func(time.Time)) error {
	clock := l.Clock()
	if clock == nil {
		return errOtherClock
	}
	if to.Before(clock.Now()) {
		return landscapeclock.ErrBack
	}
	if !l.advancing.TryLock() {
		return errors.New("the clock is being advanced already")
	}
	defer l.advancing.Unlock()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(gardencorev1beta1.AddToScheme, operationsv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		return err
	}
	config := l.garden.AdminConfig()
	config.QPS = -1 // polling limits itself
	garden, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the garden: %w", err)
	}
	if rate := clock.Rate(); rate != 1 { // what works needs the time
		if err := clock.SetRate(1); err != nil {
			return err
		}
		defer func() { _ = clock.SetRate(rate) }()
	}
	return clock.Advance(ctx, to, func(ctx context.Context) error { return settle(ctx, garden) }, func(at time.Time) {
		garbage.ReportLoad(0) // else half of the time is garbage collection
		passed(at)
	})
}

// settle waits until no operation of a Shoot and no deletion of a Bastion goes on.
func settle(ctx context.Context, garden client.Reader) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, settlePoll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		found, err := unsettled(ctx, garden)
		if ctx.Err() != nil { // what was found before is left
			return false, ctx.Err()
		} else if err != nil {
			return false, err
		}
		left = found
		return len(left) == 0, nil
	})
	if len(left) > maxUnsettled {
		left = append(left[:maxUnsettled], fmt.Sprintf("and %d more", len(left)-maxUnsettled))
	}
	if err != nil && len(left) > 0 && ctx.Err() == nil {
		return fmt.Errorf("what became due has not ended within %s: %s", settleTimeout, strings.Join(left, "; "))
	}
	return err
}

func unsettled(ctx context.Context, garden client.Reader) (left []string, err error) {
	shoots, bastions := &gardencorev1beta1.ShootList{}, &operationsv1alpha1.BastionList{}
	if err := errors.Join(garden.List(ctx, shoots), garden.List(ctx, bastions)); err != nil {
		return nil, fmt.Errorf("looking at what became due: %w", err)
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		last := shoot.Status.LastOperation
		switch {
		case shoot.Spec.SeedName == nil: // nothing works on it
		case last == nil || shoot.Status.ObservedGeneration != shoot.Generation || shoot.Annotations[constants.GardenerOperation] != "":
			left = append(left, fmt.Sprintf("Shoot %s/%s waits for its gardenlet", shoot.Namespace, shoot.Name))
		case last.State == gardencorev1beta1.LastOperationStateProcessing || last.State == gardencorev1beta1.LastOperationStatePending:
			left = append(left, fmt.Sprintf("Shoot %s/%s: %s, %d %%, %s", shoot.Namespace, shoot.Name, last.Type, last.Progress, last.Description))
		}
	}
	for i := range bastions.Items {
		if bastion := &bastions.Items[i]; bastion.DeletionTimestamp != nil {
			left = append(left, fmt.Sprintf("Bastion %s/%s is being deleted", bastion.Namespace, bastion.Name))
		}
	}
	return left, nil
}

// clockState returns what the control socket says of the clock.
func (l *Landscape) clockState() (control.Clock, error) {
	clock := l.Clock()
	if clock == nil {
		return control.Clock{}, errOtherClock
	}
	state := control.Clock{Now: clock.Now().UTC(), Ahead: clock.Offset(), Rate: clock.Rate()}
	if next, ok := clock.NextDate(); ok {
		state.Next = &next
	}
	return state, nil
}

// changeClock moves the clock as the control socket asks for.
func (l *Landscape) changeClock(ctx context.Context, change control.ClockChange, passed func(time.Time)) error {
	clock := l.Clock()
	switch {
	case clock == nil:
		return errOtherClock
	case l.store.State() != control.StateReady:
		return errNotReady(l.store.State())
	case change.Rate != nil:
		return clock.SetRate(*change.Rate)
	}
	to := clock.Now().Add(change.By)
	if change.To != nil {
		to = *change.To
	}
	var err error
	if change.AtOnce {
		err = clock.Set(to)
	} else {
		err = l.AdvanceClock(ctx, to, passed)
	}
	if errors.Is(err, landscapeclock.ErrBack) {
		return &usage.Error{Err: err}
	}
	return err
}
