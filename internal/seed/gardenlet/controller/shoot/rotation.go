package shoot

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

type phase = corev1beta1.CredentialsRotationPhase

// rotations returns the rotations in a status, which are created if they are missing.
func rotations(s *corev1beta1.ShootStatus) *corev1beta1.ShootCredentialsRotation {
	return initialized(&initialized(&s.Credentials).Rotation)
}

// initialized returns what a field of a status points to, which is created if it is missing.
func initialized[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// rotationsOf returns the rotations in a status, empty ones if they are missing.
func rotationsOf(s *corev1beta1.ShootStatus) corev1beta1.ShootCredentialsRotation {
	if s.Credentials == nil || s.Credentials.Rotation == nil {
		return corev1beta1.ShootCredentialsRotation{}
	}
	return *s.Credentials.Rotation
}

// steps points to the fields in the status of a two-step rotation, of any kind of credentials.
type steps struct {
	phase                                     *phase
	initiated, prepared, triggered, completed **metav1.Time
	pending                                   *[]corev1beta1.PendingWorkersRollout
}

func authoritySteps(s *corev1beta1.ShootStatus) steps {
	r := initialized(&rotations(s).CertificateAuthorities)
	return steps{&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime,
		&r.LastCompletionTime, &r.PendingWorkersRollouts}
}

func signingKeySteps(s *corev1beta1.ShootStatus) steps {
	r := initialized(&rotations(s).ServiceAccountKey)
	return steps{&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime,
		&r.LastCompletionTime, &r.PendingWorkersRollouts}
}

func encryptionKeySteps(s *corev1beta1.ShootStatus) steps {
	r := initialized(&rotations(s).ETCDEncryptionKey)
	return steps{phase: &r.Phase, initiated: &r.LastInitiationTime, prepared: &r.LastInitiationFinishedTime,
		triggered: &r.LastCompletionTriggeredTime, completed: &r.LastCompletionTime}
}

func isPreparing(p phase) bool {
	return p == corev1beta1.RotationPreparing || p == corev1beta1.RotationPreparingWithoutWorkersRollout
}

// begin starts a rotation. A rotation that has just begun is left alone, because its annotation has been read twice.
func (s steps) begin(now *metav1.Time, withoutRollout []corev1beta1.Worker) {
	if isPreparing(*s.phase) {
		return
	}
	*s.phase = corev1beta1.RotationPreparing
	if s.pending != nil {
		*s.pending = nil
		for _, pool := range withoutRollout {
			*s.phase = corev1beta1.RotationPreparingWithoutWorkersRollout
			*s.pending = append(*s.pending, corev1beta1.PendingWorkersRollout{Name: pool.Name, LastInitiationTime: *s.initiated})
		}
	}
	*s.initiated, *s.prepared, *s.triggered = now, nil, nil
}

// complete starts the second step of a rotation.
func (s steps) complete(now *metav1.Time) {
	if *s.phase == corev1beta1.RotationPrepared {
		*s.phase, *s.triggered = corev1beta1.RotationCompleting, now
	}
}

// end ends the current step of a rotation when the operation has succeeded.
func (s steps) end(now *metav1.Time) {
	switch *s.phase {
	case corev1beta1.RotationPreparing:
		*s.phase, *s.prepared = corev1beta1.RotationPrepared, now
	case corev1beta1.RotationPreparingWithoutWorkersRollout:
		*s.phase = corev1beta1.RotationWaitingForWorkersRollout
	case corev1beta1.RotationWaitingForWorkersRollout:
		if len(*s.pending) == 0 {
			*s.phase, *s.prepared = corev1beta1.RotationPrepared, now
		}
	case corev1beta1.RotationCompleting:
		*s.phase, *s.completed, *s.prepared, *s.triggered = corev1beta1.RotationCompleted, now, nil, nil
	}
}

// rolls removes pools from those whose rollout a rotation waits for.
func (s steps) rolls(gone func(pool string) bool) {
	if *s.pending = slices.DeleteFunc(
		*s.pending, func(p corev1beta1.PendingWorkersRollout) bool { return gone(p.Name) }); len(*s.pending) == 0 {
		*s.pending = nil
	}
}

// twoStep returns the two-step rotations that have begun at some time.
func twoStep(s *corev1beta1.ShootStatus) (all []steps) {
	had := rotationsOf(s)
	if had.CertificateAuthorities != nil {
		all = append(all, authoritySteps(s))
	}
	if had.ServiceAccountKey != nil {
		all = append(all, signingKeySteps(s))
	}
	if had.ETCDEncryptionKey != nil {
		all = append(all, encryptionKeySteps(s))
	}
	return all
}

// etcdKeyAtOnce reports whether one request rotates the etcd encryption key completely, as from Kubernetes 1.34 on.
func etcdKeyAtOnce(shoot *corev1beta1.Shoot) bool {
	version, err := semver.NewVersion(shoot.Spec.Kubernetes.Version)
	return err == nil && (version.Major() > 1 || version.Minor() >= 34)
}

// startRotations starts the rotations and rollouts that operations request.
func startRotations(shoot *corev1beta1.Shoot, operations []string, now metav1.Time) {
	s, pools := &shoot.Status, shoot.Spec.Provider.Workers
	for _, requested := range operations {
		switch requested {
		case constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout:
			var withoutRollout []corev1beta1.Worker
			if requested == constants.OperationRotateCredentialsStartWithoutWorkersRollout {
				withoutRollout = pools
			}
			authoritySteps(s).begin(&now, withoutRollout)
			signingKeySteps(s).begin(&now, withoutRollout)
			startOneStep(shoot, &now, true, true)
			startEncryptionKey(shoot, &now, etcdKeyAtOnce(shoot))
		case constants.OperationRotateCredentialsComplete:
			authoritySteps(s).complete(&now)
			signingKeySteps(s).complete(&now)
			if !etcdKeyAtOnce(shoot) {
				encryptionKeySteps(s).complete(&now)
			}
		case constants.OperationRotateCAStart:
			authoritySteps(s).begin(&now, nil)
		case constants.OperationRotateCAStartWithoutWorkersRollout:
			authoritySteps(s).begin(&now, pools)
		case constants.OperationRotateCAComplete:
			authoritySteps(s).complete(&now)
		case constants.OperationRotateServiceAccountKeyStart:
			signingKeySteps(s).begin(&now, nil)
		case constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
			signingKeySteps(s).begin(&now, pools)
		case constants.OperationRotateServiceAccountKeyComplete:
			signingKeySteps(s).complete(&now)
		case constants.OperationRotateETCDEncryptionKey:
			startEncryptionKey(shoot, &now, true)
		case constants.OperationRotateETCDEncryptionKeyStart:
			startEncryptionKey(shoot, &now, false)
		case constants.OperationRotateETCDEncryptionKeyComplete:
			encryptionKeySteps(s).complete(&now)
		case constants.ShootOperationRotateSSHKeypair:
			startOneStep(shoot, &now, true, false)
		case constants.OperationRotateObservabilityCredentials:
			startOneStep(shoot, &now, false, true)
		}
		if pools, ok := strings.CutPrefix(requested, constants.OperationRotateRolloutWorkers+"="); ok {
			rollOut(s, strings.Split(pools, ","))
		}
		if pools, ok := strings.CutPrefix(requested, constants.OperationRolloutWorkers+"="); ok {
			startManualRollout(shoot, strings.Split(pools, ","), &now)
		}
	}
	forgetPools(shoot)
	completeEncryptionKey(shoot, &now)
	changeEncryption(shoot, &now)
}

// startOneStep starts the rotation of credentials that are rotated in one step, unless it is in progress.
func startOneStep(shoot *corev1beta1.Shoot, now *metav1.Time, ssh, observability bool) {
	all := rotations(&shoot.Status)
	start := func(initiated **metav1.Time, completed *metav1.Time) {
		if !inProgress(*initiated, completed) {
			*initiated = now
		}
	}
	if ssh && hasSSH(shoot) {
		r := initialized(&all.SSHKeypair)
		start(&r.LastInitiationTime, r.LastCompletionTime)
	}
	if observability {
		r := initialized(&all.Observability)
		start(&r.LastInitiationTime, r.LastCompletionTime)
	}
}

func inProgress(initiated, completed *metav1.Time) bool {
	return initiated != nil && (completed == nil || completed.Before(initiated))
}

func startEncryptionKey(shoot *corev1beta1.Shoot, now *metav1.Time, atOnce bool) {
	encryptionKeySteps(&shoot.Status).begin(now, nil)
	rotations(&shoot.Status).ETCDEncryptionKey.AutoCompleteAfterPrepared = ptr.To(atOnce)
}

// completeEncryptionKey starts the second phase of the etcd encryption key's rotation where users need not request it.
func completeEncryptionKey(shoot *corev1beta1.Shoot, now *metav1.Time) {
	r := rotationsOf(&shoot.Status).ETCDEncryptionKey
	if r != nil && (ptr.Deref(r.AutoCompleteAfterPrepared, false) || etcdKeyAtOnce(shoot)) {
		encryptionKeySteps(&shoot.Status).complete(now)
	}
}

// changeEncryption starts a rotation of the etcd encryption key if the Shoot wants another encryption provider than it
// has.
func changeEncryption(shoot *corev1beta1.Shoot, now *metav1.Time) {
	has, r := encryptionAtRest(&shoot.Status), ptr.Deref(rotationsOf(&shoot.Status).ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{})
	if has != nil && has.Provider.Type != encryptionProvider(shoot) && (r.Phase == "" || r.Phase == corev1beta1.RotationCompleted) {
		startEncryptionKey(shoot, now, true)
	}
}

// rollOut makes pools roll whose rollout was left out of a rotation.
func rollOut(s *corev1beta1.ShootStatus, pools []string) {
	for _, r := range twoStep(s) {
		if r.pending != nil && *r.phase == corev1beta1.RotationWaitingForWorkersRollout {
			r.rolls(func(pool string) bool { return slices.Contains(pools, pool) })
		}
	}
}

// startManualRollout records the pools whose rollout a user requests. It keeps pools that are already recorded, so that
// an annotation which has been read twice does not roll them once more.
func startManualRollout(shoot *corev1beta1.Shoot, pools []string, now *metav1.Time) {
	pending := &initialized(&shoot.Status.ManualWorkerPoolRollout).PendingWorkersRollouts
	for _, pool := range shoot.Spec.Provider.Workers {
		rolls := slices.ContainsFunc(*pending, func(p corev1beta1.PendingWorkersRollout) bool { return p.Name == pool.Name })
		if !rolls && (slices.Contains(pools, pool.Name) || slices.Contains(pools, "*")) {
			*pending = append(*pending, corev1beta1.PendingWorkersRollout{Name: pool.Name, LastInitiationTime: now})
		}
	}
}

// requestedRollouts returns the pools whose rollout a user has requested, with the time of the request.
func requestedRollouts(shoot *corev1beta1.Shoot) map[string]metav1.Time {
	requested := map[string]metav1.Time{}
	if rollout := shoot.Status.ManualWorkerPoolRollout; rollout != nil {
		for _, pool := range rollout.PendingWorkersRollouts {
			requested[pool.Name] = ptr.Deref(pool.LastInitiationTime, metav1.Time{})
		}
	}
	return requested
}

func poolNames(shoot *corev1beta1.Shoot) (names []string) {
	for _, pool := range shoot.Spec.Provider.Workers {
		names = append(names, pool.Name)
	}
	return names
}

// forgetPools drops pending rollouts of pools that do not exist any more or have no machines.
func forgetPools(shoot *corev1beta1.Shoot) {
	gone := func(name string) bool {
		return cluster.IsHibernated(shoot) || !slices.Contains(poolNames(shoot), name)
	}
	for _, r := range twoStep(&shoot.Status) {
		if r.pending != nil {
			r.rolls(gone)
		}
	}
	if rollout := shoot.Status.ManualWorkerPoolRollout; rollout != nil {
		rollout.PendingWorkersRollouts = slices.DeleteFunc(
			rollout.PendingWorkersRollouts, func(p corev1beta1.PendingWorkersRollout) bool { return gone(p.Name) })
	}
}

// endRotations ends the current steps of rotations, except that of the etcd encryption key while a Shoot is asleep:
// nothing is encrypted again then.
func endRotations(shoot *corev1beta1.Shoot, now metav1.Time, asleep bool) {
	for _, r := range twoStep(&shoot.Status) {
		if !asleep || r.pending != nil {
			r.end(&now)
		}
	}
	if manual := shoot.Status.ManualWorkerPoolRollout; manual != nil {
		manual.PendingWorkersRollouts = nil
	}
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return
	}
	all := shoot.Status.Credentials.Rotation
	if r := all.ETCDEncryptionKey; r != nil && r.Phase == corev1beta1.RotationCompleted {
		r.AutoCompleteAfterPrepared = nil
	}
	if !hasSSH(shoot) {
		all.SSHKeypair = nil
	}
	if r := all.SSHKeypair; r != nil && inProgress(r.LastInitiationTime, r.LastCompletionTime) {
		r.LastCompletionTime = &now
	}
	if r := all.Observability; r != nil && inProgress(r.LastInitiationTime, r.LastCompletionTime) {
		r.LastCompletionTime = &now
	}
}

// authorityRotation, signingKeyRotation, encryptionKeyRotation, sshRotation and observabilityRotation return the
// rotations in a status in the form that shootsecrets needs.
func authorityRotation(s *corev1beta1.ShootStatus) shootsecrets.Rotation {
	r := ptr.Deref(rotationsOf(s).CertificateAuthorities, corev1beta1.CARotation{})
	return twoStepRotation(r.LastInitiationTime, r.Phase)
}

func signingKeyRotation(s *corev1beta1.ShootStatus) shootsecrets.Rotation {
	r := ptr.Deref(rotationsOf(s).ServiceAccountKey, corev1beta1.ServiceAccountKeyRotation{})
	return twoStepRotation(r.LastInitiationTime, r.Phase)
}

func encryptionKeyRotation(s *corev1beta1.ShootStatus) shootsecrets.Rotation {
	r := ptr.Deref(rotationsOf(s).ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{})
	return twoStepRotation(r.LastInitiationTime, r.Phase)
}

func twoStepRotation(initiated *metav1.Time, p phase) shootsecrets.Rotation {
	return shootsecrets.Rotation{Initiated: initiated, Completing: p == corev1beta1.RotationCompleting || p == corev1beta1.RotationCompleted}
}

func sshRotation(s *corev1beta1.ShootStatus) shootsecrets.Rotation {
	return shootsecrets.Rotation{
		Initiated: ptr.Deref(rotationsOf(s).SSHKeypair, corev1beta1.ShootSSHKeypairRotation{}).LastInitiationTime}
}

func observabilityRotation(s *corev1beta1.ShootStatus) shootsecrets.Rotation {
	return shootsecrets.Rotation{
		Initiated: ptr.Deref(rotationsOf(s).Observability, corev1beta1.ObservabilityRotation{}).LastInitiationTime}
}
