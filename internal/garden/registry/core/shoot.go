package core

import (
	"context"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

func shoots() resource.Definition[*gardencore.Shoot] {
	return resource.Definition[*gardencore.Shoot]{
		Resource: gardencore.Resource("shoots"), Singular: "shoot", Versions: v1beta1, Namespaced: true,
		New:         func() *gardencore.Shoot { return &gardencore.Shoot{} },
		NewList:     func() runtime.Object { return &gardencore.ShootList{} },
		CopySpec:    func(to, from *gardencore.Shoot) { to.Spec = from.Spec },
		CopyStatus:  func(to, from *gardencore.Shoot) { to.Status = from.Status },
		SpecChanged: shootSpecChanged,
		PrepareForCreate: func(_ context.Context, shoot *gardencore.Shoot) {
			syncCloudProfileFields(nil, shoot)
		},
		PrepareForUpdate: func(_ context.Context, shoot, old *gardencore.Shoot) {
			shoot.Spec.SeedName = old.Spec.SeedName // changed through the binding subresource only
			syncCloudProfileFields(old, shoot)
		},
		PrepareStatus: prepareShootStatus,
		Canonicalize:  canonicalizeShoot,
		Fields: func(shoot *gardencore.Shoot) fields.Set {
			set := fields.Set{
				gardencore.ShootSeedName:         ptr.Deref(shoot.Spec.SeedName, ""),
				gardencore.ShootStatusSeedName:   ptr.Deref(shoot.Status.SeedName, ""),
				gardencore.ShootCloudProfileName: ptr.Deref(shoot.Spec.CloudProfileName, ""),
			}
			if ref := shoot.Spec.CloudProfile; ref != nil {
				set[gardencore.ShootCloudProfileRefName], set[gardencore.ShootCloudProfileRefKind] = ref.Name, ref.Kind
			}
			return set
		},
		Indexed: []string{gardencore.ShootSeedName},
		Columns: shootColumns(),
	}
}

// shootSpecChanged says whether the gardenlet has to look at the Shoot again: its spec changed (unless that waits for the
// maintenance time window), or an operation was asked for.
func shootSpecChanged(shoot, old *gardencore.Shoot) bool {
	if shootSpecRollsOut(shoot, old) || !needsForceDeletion(old) && needsForceDeletion(shoot) {
		return true
	}
	last := shoot.Status.LastOperation
	if last == nil {
		return false
	}
	if last.State == gardencore.LastOperationStateFailed {
		return resource.TakeOperation(shoot, v1beta1constants.ShootOperationRetry)
	}
	if resource.TakeOperation(shoot, v1beta1constants.GardenerOperationReconcile) {
		return true
	}
	if resource.HasOperation(shoot, v1beta1constants.ShootOperationRotateSSHKeypair) && !sshEnabled(shoot) {
		resource.TakeOperation(shoot, v1beta1constants.ShootOperationRotateSSHKeypair)
	}
	// These stay until the gardenlet has done them and takes them away itself.
	for _, operation := range resource.Operations(shoot) {
		if strings.HasPrefix(operation, "rotate-") || strings.HasPrefix(operation, v1beta1constants.OperationRolloutWorkers) {
			return true
		}
	}
	return false
}

func shootSpecRollsOut(shoot, old *gardencore.Shoot) bool {
	if m := shoot.Spec.Maintenance; m != nil && ptr.Deref(m.ConfineSpecUpdateRollout, false) {
		return hibernationEnabled(shoot) != hibernationEnabled(old)
	}
	return !resource.SpecEquality(old.Spec, shoot.Spec)
}

func hibernationEnabled(shoot *gardencore.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

func needsForceDeletion(shoot *gardencore.Shoot) bool {
	value := shoot.Annotations[v1beta1constants.AnnotationConfirmationForceDeletion]
	return value == "true" || value == "1" || value == "t" || value == "T" || value == "True" || value == "TRUE"
}

func sshEnabled(shoot *gardencore.Shoot) bool {
	if len(shoot.Spec.Provider.Workers) == 0 {
		return false
	}
	settings := shoot.Spec.Provider.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}

// syncCloudProfileFields keeps the deprecated spec.cloudProfileName and spec.cloudProfile saying the same, for as long as
// the reference is to a CloudProfile. Which of the two was changed wins.
func syncCloudProfileFields(old, shoot *gardencore.Shoot) {
	if shoot.DeletionTimestamp != nil {
		return
	}
	name, ref := shoot.Spec.CloudProfileName, shoot.Spec.CloudProfile
	nameChanged := old != nil && name != nil && !ptr.Equal(name, old.Spec.CloudProfileName) && resource.SpecEquality(ref, old.Spec.CloudProfile)
	switch {
	case name != nil && *name != "" && (ref == nil || nameChanged):
		shoot.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: v1beta1constants.CloudProfileReferenceKindCloudProfile, Name: *name}
	case ref != nil && ref.Kind == v1beta1constants.CloudProfileReferenceKindCloudProfile:
		shoot.Spec.CloudProfileName = ptr.To(ref.Name)
	case ref != nil:
		shoot.Spec.CloudProfileName = nil
	}
}

func prepareShootStatus(_ context.Context, shoot, old *gardencore.Shoot) {
	last := shoot.Status.LastOperation
	if last != nil && last.Type == gardencore.LastOperationTypeMigrate &&
		(last.State == gardencore.LastOperationStateSucceeded || last.State == gardencore.LastOperationStateAborted) {
		shoot.Generation = old.Generation + 1 // the destination's gardenlet takes over
	}
}

// seedLabelPrefix starts the labels that say which seeds an object has to do with.
const seedLabelPrefix = v1beta1constants.LabelPrefixSeedName

func canonicalizeShoot(shoot *gardencore.Shoot) {
	maintainSeedLabels(&shoot.ObjectMeta, shoot.Spec.SeedName, shoot.Status.SeedName)
	selfHosted := false
	for _, worker := range shoot.Spec.Provider.Workers {
		selfHosted = selfHosted || worker.ControlPlane != nil
	}
	if selfHosted {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, v1beta1constants.ShootIsSelfHosted, "true")
	} else {
		delete(shoot.Labels, v1beta1constants.ShootIsSelfHosted)
	}
}

// maintainSeedLabels sets a label for each of the seeds and takes those of other seeds away.
func maintainSeedLabels(meta *metav1.ObjectMeta, seeds ...*string) {
	for key := range meta.Labels {
		if strings.HasPrefix(key, seedLabelPrefix) {
			delete(meta.Labels, key)
		}
	}
	for _, seed := range seeds {
		if name := ptr.Deref(seed, ""); name != "" {
			metav1.SetMetaDataLabel(meta, seedLabelPrefix+name, "true")
		}
	}
}
