package shoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/seed/extensions/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// firstStep is how much of a reconciliation the first step is, in percent: all that there is yet.
const firstStep = 10

// words are those of events: of an operation that begins, and of one that has failed.
type words struct{ begins, fails, action, begun string }

func of(t corev1beta1.LastOperationType) words {
	if t == corev1beta1.LastOperationTypeDelete {
		return words{corev1beta1.EventDeleting, corev1beta1.EventDeleteError, corev1beta1.EventActionDelete, "Deletion of the Shoot cluster has begun."}
	}
	return words{corev1beta1.EventReconciling, corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile, "Reconciliation of the Shoot cluster has begun."}
}

// start tells that an operation has begun, by whom, and what the Shoot is called from now on. It takes away the annotation
// that has asked for it.
func (r *Reconciler) start(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, a *about) error {
	w, last := of(t), shoot.Status.LastOperation
	again := last != nil && last.Type == t && shoot.Status.ObservedGeneration == shoot.Generation && shoot.Status.UID != ""
	goesOn := again && last.State == corev1beta1.LastOperationStateProcessing
	err := operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		s := &shoot.Status
		if s.RetryCycleStartTime == nil && !goesOn || s.ObservedGeneration != shoot.Generation || s.Gardener.Version != r.Identity.Version ||
			s.LastOperation != nil && s.LastOperation.Type != t {
			s.RetryCycleStartTime = ptr.To(metav1.NewTime(r.Clock.Now().UTC()))
		}
		if a != nil {
			r.name(shoot, a)
		}
		s.Gardener, s.ObservedGeneration = *r.Identity, shoot.Generation
		if !goesOn {
			s.LastOperation = r.lastOperation(t, corev1beta1.LastOperationStateProcessing, 0, w.begun)
		}
	})
	if err != nil {
		return err
	}
	if !again {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, w.begins, w.action, "%s", w.begun)
	}
	return operation.Patch(ctx, r.GardenClient, shoot, takeOperation)
}

// name says in the status what stays of a Shoot for all its life, and on which seed it is. Who finds a UID here knows that
// there may be something of the Shoot in the seed.
func (r *Reconciler) name(shoot *corev1beta1.Shoot, a *about) {
	s := &shoot.Status
	s.TechnicalID, s.SeedName = technicalID(shoot, a.project), shoot.Spec.SeedName
	if s.UID == "" {
		s.UID = shoot.UID
	}
	if s.ClusterIdentity == nil {
		s.ClusterIdentity = ptr.To(fmt.Sprintf("%s-%s-%s", s.TechnicalID, s.UID, a.gardenIdentity))
	}
}

// takeOperation takes the operations that are just another try from the annotation that asks for operations.
func takeOperation(shoot *corev1beta1.Shoot) {
	asked := operation.Of(shoot)
	if asked == "" {
		return
	}
	left := slices.DeleteFunc(strings.Split(asked, constants.GardenerOperationsSeparator), func(asked string) bool {
		asked = strings.TrimSpace(asked)
		return asked == constants.GardenerOperationReconcile || asked == constants.ShootOperationRetry || asked == ""
	})
	if len(left) == 0 {
		delete(shoot.Annotations, constants.GardenerOperation)
		return
	}
	shoot.Annotations[constants.GardenerOperation] = strings.Join(left, constants.GardenerOperationsSeparator)
}

// run runs a flow, and tells of its progress. It counts for so many percent of the operation.
func (r *Reconciler) run(ctx context.Context, shoot *corev1beta1.Shoot, name string, share int32, tasks []flow.Task) (flow.Progress, error) {
	f, err := flow.New(name, tasks...)
	if err != nil {
		return flow.Progress{}, err
	}
	return f.Run(ctx, flow.Options{Clock: r.Clock, Period: orDefault(r.ProgressReportPeriod, DefaultProgressReportPeriod), Report: func(ctx context.Context, p flow.Progress) {
		if err := r.report(ctx, shoot, share, p); err != nil { // the operation goes on
			logf.FromContext(ctx).Error(err, "Telling the progress")
		}
	}})
}

// report tells how far an operation is.
func (r *Reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, share int32, p flow.Progress) error {
	return r.progress(ctx, shoot, p.Percent()*share/100, p.String(), nil)
}

// endFirstStep tells that the first step is done, and that there is no second.
func (r *Reconciler) endFirstStep(ctx context.Context, shoot *corev1beta1.Shoot) error {
	description := fmt.Sprintf("Namespace and Cluster resource %s are in seed %s. This version of gardenlite does not make control planes yet.",
		shoot.Status.TechnicalID, r.SeedName)
	return r.progress(ctx, shoot, firstStep, description, func(shoot *corev1beta1.Shoot) {
		shoot.Status.LastErrors, shoot.Status.RetryCycleStartTime = nil, nil
	})
}

// progress writes that an operation goes on, if that is not what the status says.
func (r *Reconciler) progress(ctx context.Context, shoot *corev1beta1.Shoot, percent int32, description string, also func(*corev1beta1.Shoot)) error {
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		last := shoot.Status.LastOperation
		if also != nil {
			also(shoot)
		}
		// What has been done before, and is only made sure of, is no step back.
		if percent < last.Progress || last.Progress == percent && last.Description == description {
			return
		}
		shoot.Status.LastOperation = r.lastOperation(last.Type, corev1beta1.LastOperationStateProcessing, percent, description)
	})
}

// endDeletion tells that nothing is left.
func (r *Reconciler) endDeletion(ctx context.Context, shoot *corev1beta1.Shoot) error {
	const description = "Nothing is left of the Shoot cluster."
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, corev1beta1.EventDeleted, corev1beta1.EventActionDelete, description)
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		shoot.Status.LastErrors, shoot.Status.RetryCycleStartTime = nil, nil
		shoot.Status.LastOperation = r.lastOperation(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateSucceeded, 100, description)
	})
}

// fail tells what has gone wrong, and returns it if it is to be tried again.
func (r *Reconciler) fail(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, failure error) error {
	w, since := of(t), shoot.Status.RetryCycleStartTime
	state, description := corev1beta1.LastOperationStateError, failure.Error()+" Operation will be retried."
	forGood := flow.Final(failure) || since != nil && r.Clock.Since(since.Time) > orDefault(r.RetryDuration, DefaultRetryDuration)
	if forGood {
		state, description = corev1beta1.LastOperationStateFailed, failure.Error()
	}
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, w.fails, w.action, "%s", failure)
	err := operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		s := &shoot.Status
		s.Gardener, s.LastErrors = *r.Identity, flow.LastErrors(failure, r.Clock.Now())
		s.LastOperation = r.lastOperation(t, state, r.percent(shoot), description)
		if forGood {
			s.RetryCycleStartTime, s.ObservedGeneration = nil, shoot.Generation
		} else if since == nil {
			s.RetryCycleStartTime = ptr.To(metav1.NewTime(r.Clock.Now().UTC()))
		}
	})
	if forGood {
		return err
	}
	return errors.Join(err, failure)
}

// reportSeed tells that the seed is in no state to have the Shoot, once: that concerns all Shoots of the seed.
func (r *Reconciler) reportSeed(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, why string) error {
	description := fmt.Sprintf("Seed %s cannot take care of the Shoot now: %s. Operation will be retried.", r.SeedName, why)
	if last := shoot.Status.LastOperation; last != nil && last.Description == description {
		return nil
	}
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		shoot.Status.Gardener = *r.Identity
		shoot.Status.LastOperation = r.lastOperation(t, corev1beta1.LastOperationStateError, r.percent(shoot), description)
	})
}

func (r *Reconciler) percent(shoot *corev1beta1.Shoot) int32 {
	if last := shoot.Status.LastOperation; last != nil {
		return last.Progress
	}
	return 0
}

func (r *Reconciler) lastOperation(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState, percent int32, description string) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{Type: t, State: state, Progress: percent, Description: description, LastUpdateTime: metav1.NewTime(r.Clock.Now().UTC())}
}
