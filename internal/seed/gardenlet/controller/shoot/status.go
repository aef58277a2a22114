package shoot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// words has the texts for an operation: the reasons of the events when it starts, fails and ends, their action, the messages
// when it has begun and ended, and the name of its flow.
type words struct{ started, fails, ends, action, begun, ended, flow string }

var wordsOf = map[corev1beta1.LastOperationType]words{
	corev1beta1.LastOperationTypeDelete: {corev1beta1.EventDeleting, corev1beta1.EventDeleteError, corev1beta1.EventDeleted,
		corev1beta1.EventActionDelete,
		"Deletion of Shoot cluster in progress.", "Shoot cluster has been successfully deleted.", "Shoot cluster deletion"},
	corev1beta1.LastOperationTypeMigrate: {corev1beta1.EventPrepareMigration, corev1beta1.EventMigrationPreparationFailed,
		corev1beta1.EventMigrationPrepared, corev1beta1.EventActionMigrate,
		"Preparation of Shoot cluster for migration initialized.", "Shoot cluster has been successfully prepared for migration.",
		"Shoot cluster preparation for migration"},
	corev1beta1.LastOperationTypeRestore: {corev1beta1.EventReconciling, corev1beta1.EventReconcileError,
		corev1beta1.EventReconciled, corev1beta1.EventActionReconcile,
		"Restoration of Shoot cluster initialized.", "Shoot cluster has been successfully restored.", "Shoot cluster restoration"},
	corev1beta1.LastOperationTypeReconcile: {corev1beta1.EventReconciling, corev1beta1.EventReconcileError,
		corev1beta1.EventReconciled, corev1beta1.EventActionReconcile,
		"Reconciliation of Shoot cluster initialized.", "Shoot cluster has been successfully reconciled.",
		"Shoot cluster reconciliation"},
}

func of(t corev1beta1.LastOperationType) words {
	return cmp.Or(wordsOf[t], wordsOf[corev1beta1.LastOperationTypeReconcile])
}

// start writes into the status that an operation has begun, which gardenlet executes it, and the identity of the Shoot.
// It starts the requested rotations, and removes the requests from the annotation.
func (r *Reconciler) start(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, a *gardenData) error {
	w, last := of(t), shoot.Status.LastOperation
	again := last != nil && last.Type == t && shoot.Status.ObservedGeneration == shoot.Generation && shoot.Status.UID != "" &&
		last.State != corev1beta1.LastOperationStateSucceeded
	inProgress := again && last.State == corev1beta1.LastOperationStateProcessing
	begun, postponed := r.operationsToStart(ctx, shoot, t)
	rotates := sshRotates(shoot)
	// The patch is exclusive because begun is what was requested when the Shoot was read.
	err := operation.PatchStatusExclusively(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		s, now := &shoot.Status, metav1.NewTime(r.Clock.Now().UTC())
		if s.RetryCycleStartTime == nil || s.ObservedGeneration != shoot.Generation || s.Gardener.Version != r.Identity.Version ||
			s.LastOperation != nil && s.LastOperation.Type != t {
			s.RetryCycleStartTime = &now
		}
		if a != nil {
			r.name(shoot, a)
			startRotations(shoot, begun, now)
		}
		s.Gardener, s.ObservedGeneration = *r.Identity, shoot.Generation
		if !inProgress {
			s.LastOperation = r.lastOperation(t, corev1beta1.LastOperationStateProcessing, 0, strings.TrimSpace(w.begun+" "+postponed))
		}
	})
	if err != nil {
		return err
	}
	if !again {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, w.started, w.action, "%s", w.begun)
	}
	if postponed != "" {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, eventPostponed, w.action, "%s", postponed)
	}
	if rotates && slices.Contains(begun, constants.ShootOperationRotateSSHKeypair) {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, eventInProgress, w.action,
			"The rotation of the SSH key pair goes on: it is not begun again.")
	}
	return r.removeOperations(ctx, shoot, begun)
}

// name writes into the status what never changes in a Shoot's life, and its seed. A UID in the status means that
// objects of the Shoot may exist in the seed.
func (r *Reconciler) name(shoot *corev1beta1.Shoot, a *gardenData) {
	s := &shoot.Status
	s.TechnicalID, s.SeedName = technicalID(shoot, a.project), shoot.Spec.SeedName
	s.UID = cmp.Or(s.UID, shoot.UID)
	s.ClusterIdentity = cmp.Or(s.ClusterIdentity, ptr.To(fmt.Sprintf("%s-%s-%s", s.TechnicalID, s.UID, a.gardenIdentity)))
}

// run runs the flow of an operation, reports its progress, and returns whether it is done. If it has to wait, it
// returns for how long.
func (r *Reconciler) run(ctx context.Context, b *botanist, tasks []flow.Task) (done bool, wait time.Duration, err error) {
	f, err := flow.New(of(b.kind).flow, tasks...)
	if err != nil {
		return false, 0, err
	}
	shoot := b.shoot.DeepCopy() // the tasks read the other one
	progress, err := f.Run(ctx, flow.Options{Clock: r.Clock, Period: r.ProgressReportPeriod,
		Report: func(ctx context.Context, p flow.Progress) {
			if err := r.progress(ctx, shoot, p.Percent(), p.String()); err != nil { // the operation continues
				logf.FromContext(ctx).Error(err, "Telling the progress")
			}
		}})
	switch {
	case ctx.Err() != nil:
		return false, 0, context.Cause(ctx)
	case apierrors.IsConflict(err): // the Shoot has changed since a task read it: it is read again
		return false, 0, err
	case err != nil:
		r.botanistCache.forget(shoot)
		return false, 0, r.fail(ctx, shoot, b.kind, err)
	case len(progress.Waiting) > 0:
		return false, requeueAfter(progress), r.progress(ctx, shoot, progress.Percent(), progress.String())
	}
	return true, 0, nil
}

// progress writes the progress of an operation into the status, if it is not there yet. The percentage never decreases,
// because a run only confirms what earlier runs have done.
func (r *Reconciler) progress(ctx context.Context, shoot *corev1beta1.Shoot, percent int32, description string) error {
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		last := shoot.Status.LastOperation
		if percent < last.Progress || last.Progress == percent && last.Description == description {
			return
		}
		shoot.Status.LastOperation = r.lastOperation(last.Type, corev1beta1.LastOperationStateProcessing, percent, description)
	})
}

// succeed reports that an operation has succeeded, and the seed of the Shoot, which is none after a migration. That is
// the last write, because this seed must not write the Shoot any more once it has released it.
func (r *Reconciler) succeed(ctx context.Context, b *botanist) error {
	w, shoot := of(b.kind), b.shoot.DeepCopy()
	err := operation.Patch(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) { delete(shoot.Annotations, constants.ShootTasks) })
	if err != nil {
		return err
	}
	// Tasks have written to the status meanwhile, so only the changes made here are written.
	err = operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		s := &shoot.Status
		s.LastErrors, s.RetryCycleStartTime, s.SeedName = nil, nil, nil
		if b.kind != corev1beta1.LastOperationTypeMigrate {
			s.SeedName = ptr.To(r.SeedName)
			s.IsHibernated = b.hibernates()
			endRotations(shoot, metav1.NewTime(r.Clock.Now().UTC()), b.asleep)
		}
		s.LastOperation = r.lastOperation(b.kind, corev1beta1.LastOperationStateSucceeded, 100, w.ended)
	})
	if err != nil {
		return err
	}
	r.botanistCache.end(client.ObjectKeyFromObject(shoot))
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, w.ends, w.action, "%s", w.ended)
	return nil
}

// endDeletion reports that nothing is left of the Shoot.
func (r *Reconciler) endDeletion(ctx context.Context, shoot *corev1beta1.Shoot) error {
	w := of(corev1beta1.LastOperationTypeDelete)
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, w.ends, w.action, "%s", w.ended)
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		shoot.Status.LastErrors, shoot.Status.RetryCycleStartTime = nil, nil
		shoot.Status.LastOperation = r.lastOperation(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateSucceeded, 100, w.ended)
	})
}

// fail reports a failure, and returns it if the operation is to be retried.
func (r *Reconciler) fail(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, failure error) error {
	w, since := of(t), shoot.Status.RetryCycleStartTime
	state, description := corev1beta1.LastOperationStateError, failure.Error()+" Operation will be retried."
	forGood := flow.Final(failure) || since != nil && r.Clock.Since(since.Time) > r.RetryDuration
	if forGood {
		state, description = corev1beta1.LastOperationStateFailed, failure.Error()
	}
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, w.fails, w.action, "%s", failure)
	err := operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		s := &shoot.Status
		s.Gardener, s.LastErrors = *r.Identity, flow.LastErrors(failure, r.Clock.Now())
		s.LastOperation = r.lastOperation(t, state, percent(shoot), description)
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

// reportSeed reports that the seed is not ready for the Shoot. It writes that only once, because it concerns all Shoots
// of the seed.
func (r *Reconciler) reportSeed(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType, why string) error {
	description := fmt.Sprintf("Seed %s cannot take care of the Shoot now: %s. Operation will be retried.", r.SeedName, why)
	if last := shoot.Status.LastOperation; last != nil && last.Description == description {
		return nil
	}
	return operation.PatchStatus(ctx, r.GardenClient, shoot, func(shoot *corev1beta1.Shoot) {
		shoot.Status.Gardener = *r.Identity
		shoot.Status.LastOperation = r.lastOperation(t, corev1beta1.LastOperationStateError, percent(shoot), description)
	})
}

func percent(shoot *corev1beta1.Shoot) int32 {
	return ptr.Deref(shoot.Status.LastOperation, corev1beta1.LastOperation{}).Progress
}

func (r *Reconciler) lastOperation(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState, percent int32,
	description string) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{Type: t, State: state, Progress: percent, Description: description,
		LastUpdateTime: metav1.NewTime(r.Clock.Now().UTC())}
}
