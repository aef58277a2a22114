package shootclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// Progress is the progress of the last operation of a Shoot.
type Progress struct {
	// Type is Create, Reconcile, Delete …, empty until the first operation begins.
	Type, State string
	Percent     int32
	Description string
	// Done says that the Shoot is as specified; Failed that its operation is not retried until a user changes the Shoot.
	Done, Failed bool
	// Errors are the descriptions of the last errors.
	Errors []string
	// Codes are Gardener's error codes of all errors.
	Codes []string
}

// ProgressOf returns the progress of a Shoot.
func ProgressOf(shoot *corev1beta1.Shoot) Progress {
	operation := shoot.Status.LastOperation
	if operation == nil {
		seed := ptr.Deref(shoot.Spec.SeedName, "")
		if seed == "" {
			return Progress{Description: "waits for the scheduler to choose a seed"}
		}
		return Progress{Description: "waits for the gardenlet of seed " + seed}
	}
	p := Progress{Type: string(operation.Type), State: string(operation.State), Percent: operation.Progress,
		Description: operation.Description}
	for _, e := range shoot.Status.LastErrors {
		p.Errors = append(p.Errors, e.Description)
		for _, code := range e.Codes {
			p.Codes = append(p.Codes, string(code))
		}
	}
	seen := shoot.Status.ObservedGeneration == shoot.Generation
	p.Done = seen && shoot.Annotations[constants.GardenerOperation] == "" && operation.State == corev1beta1.LastOperationStateSucceeded &&
		shoot.DeletionTimestamp == nil && operation.Type != corev1beta1.LastOperationTypeMigrate
	p.Failed = seen && operation.State == corev1beta1.LastOperationStateFailed
	return p
}

// String returns the operation in a few words: "Create Processing (40%)".
func (p Progress) String() string {
	switch {
	case p.Type == "":
		return "Pending"
	case p.State == string(corev1beta1.LastOperationStateSucceeded):
		return p.Type + " " + p.State
	}
	return fmt.Sprintf("%s %s (%d%%)", p.Type, p.State, p.Percent)
}

// explain returns a text that says why the Shoot is not ready.
func (p Progress) explain() string {
	text := p.String()
	if p.Description != "" {
		text += ": " + p.Description
	}
	others := slices.DeleteFunc(slices.Clone(p.Errors), func(e string) bool { return strings.Contains(p.Description, e) })
	if len(others) > 0 {
		text += " (" + strings.Join(others, "; ") + ")"
	}
	if len(p.Codes) > 0 {
		text += " [" + strings.Join(p.Codes, ", ") + "]"
	}
	return text
}

// Wait waits until a Shoot is as specified. It calls report, which may be nil, for each change. It returns an error
// when the Shoot has failed and is not retried, when it is gone, or when the context ends.
func (c *Client) Wait(ctx context.Context, key Key, report func(Progress)) (*corev1beta1.Shoot, error) {
	var ready *corev1beta1.Shoot
	last, err := c.poll(ctx, key, report, func(shoot *corev1beta1.Shoot, p Progress) (bool, error) {
		switch {
		case shoot == nil:
			return false, fmt.Errorf("shoot %s %w any more", key, ErrNotFound)
		case p.Failed:
			return false, fmt.Errorf(
				"shoot %s has failed: %s: change what is wrong, then \"kubectl -n %s annotate shoot %s gardener.cloud/operation=retry\"",
				key, p.explain(), shoot.Namespace, shoot.Name)
		}
		ready = shoot
		return p.Done, nil
	})
	if isTimeout(ctx, err) {
		return nil, fmt.Errorf("shoot %s is not ready yet, it goes on: %s: %w", key, last.explain(), ctx.Err())
	}
	return ready, err
}

// WaitGone waits until a Shoot is gone, also if another one with the same name has been created since.
func (c *Client) WaitGone(ctx context.Context, key Key, report func(Progress)) error {
	var uid types.UID
	last, err := c.poll(ctx, key, report, func(shoot *corev1beta1.Shoot, p Progress) (bool, error) {
		if shoot == nil || uid != "" && shoot.UID != uid {
			return true, nil
		}
		uid = shoot.UID
		if p.Failed {
			return false, fmt.Errorf("the deletion of shoot %s has failed: %s: change what is wrong, then \"kubectl -n %s "+
				"annotate shoot %s gardener.cloud/operation=retry\"",
				key, p.explain(), shoot.Namespace, shoot.Name)
		}
		return false, nil
	})
	if isTimeout(ctx, err) {
		return fmt.Errorf("shoot %s is not gone yet, its deletion goes on: %s: %w", key, last.explain(), ctx.Err())
	}
	return err
}

// stateGone is the state in the summary of a Shoot that was deleted.
const stateGone = "Gone"

// Watch calls report with all Shoots, and then with those that have changed or are gone, until the context ends.
func (c *Client) Watch(ctx context.Context, report func([]Summary)) error {
	var before []Summary
	return wait.PollUntilContextCancel(ctx, cmp.Or(c.PollInterval, DefaultPollInterval), true,
		func(ctx context.Context) (bool, error) {
			all, err := c.List(ctx)
			if err != nil {
				return false, err
			}
			if changed := changes(before, all); len(changed) > 0 || before == nil {
				report(changed)
			}
			before = all
			return false, nil
		})
}

// changes returns the summaries that were not there before, and those of Shoots that are gone.
func changes(before, now []Summary) (changed []Summary) {
	for _, s := range now {
		if !slices.Contains(before, s) {
			changed = append(changed, s)
		}
	}
	for _, s := range before {
		if !slices.ContainsFunc(now, func(n Summary) bool { return n.Project == s.Project && n.Name == s.Name }) {
			s.State, s.Message = stateGone, ""
			changed = append(changed, s)
		}
	}
	return changed
}

// withoutGardenlet returns a text that says that the gardenlet of a Shoot is not ready, or "" if it is ready or this
// is unknown.
func (c *Client) withoutGardenlet(ctx context.Context, shoot *corev1beta1.Shoot) string {
	name := cmp.Or(ptr.Deref(shoot.Status.SeedName, ""), ptr.Deref(shoot.Spec.SeedName, ""))
	seed := &corev1beta1.Seed{}
	if name == "" || c.Get(ctx, client.ObjectKey{Name: name}, seed) != nil {
		return ""
	}
	if c := conditions.Get(seed.Status.Conditions, corev1beta1.GardenletReady); c != nil && c.Status != corev1beta1.ConditionTrue {
		return fmt.Sprintf("no gardenlet works on it, that of seed %s is not ready: %s", name, c.Message)
	}
	return ""
}

func isTimeout(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && (wait.Interrupted(err) || errors.Is(err, ctx.Err()))
}

// poll reads a Shoot periodically until done returns true or an error. The Shoot is nil when it is gone.
func (c *Client) poll(ctx context.Context, key Key, report func(Progress),
	done func(*corev1beta1.Shoot, Progress) (bool, error)) (last Progress, err error) {
	namespace, err := c.Namespace(ctx, key.Project)
	if err != nil {
		return last, err
	}
	err = wait.PollUntilContextCancel(ctx, c.pollInterval(), true, func(ctx context.Context) (bool, error) {
		shoot, err := c.shoot(ctx, namespace, key)
		if errors.Is(err, ErrNotFound) {
			return done(nil, Progress{})
		} else if err != nil {
			return false, err
		}
		p := ProgressOf(shoot)
		if why := c.withoutGardenlet(ctx, shoot); why != "" && !p.Done {
			p.Description = why
		}
		if report != nil && (p.String() != last.String() || p.Description != last.Description) {
			report(p)
		}
		last = p
		return done(shoot, p)
	})
	return last, err
}
