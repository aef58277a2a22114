package core

import (
	"cmp"
	"context"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func shoots(clock clock.PassiveClock) resource.Definition[*gardencore.Shoot] {
	return resource.Definition[*gardencore.Shoot]{
		Resource: gardencore.Resource("shoots"), Singular: "shoot", Categories: all, Versions: v1beta1, Namespaced: true,
		New:        func() *gardencore.Shoot { return &gardencore.Shoot{} },
		NewList:    func() runtime.Object { return &gardencore.ShootList{} },
		CopySpec:   func(to, from *gardencore.Shoot) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencore.Shoot) { to.Status = from.Status },
		PrepareForCreate: func(_ context.Context, shoot *gardencore.Shoot) {
			syncCloudProfileFields(nil, shoot)
			syncDNSCredentials(shoot)
		},
		// A changed spec.seedName is not put back here: the admission plugin ShootValidator says that it belongs to
		// the subresource binding.
		PrepareForUpdate: func(_ context.Context, shoot, _ *gardencore.Shoot) {
			tidyOperations(shoot)
			syncDNSCredentials(shoot)
		},
		SpecChanged: func(shoot, old *gardencore.Shoot) bool {
			// That the user left out one of the cloud profile's fields is a change, though it is filled in again.
			defer syncCloudProfileFields(old, shoot)
			return shootSpecChanged(shoot, old)
		},
		PrepareStatus: prepareShootStatus,
		Validate:      validateNewShoot,
		// The Shoot's status is validated only where it can be changed.
		ValidateUpdate: validation.ValidateShootUpdate,
		ValidateStatusUpdate: func(shoot, old *gardencore.Shoot) field.ErrorList {
			return validation.ValidateShootStatusUpdate(shoot.Status, old.Status)
		},
		Canonicalize: canonicalizeShoot,
		Warnings: func(shoot, old *gardencore.Shoot) []string {
			return shootWarnings(shoot, old, clock.Now())
		},
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

func validateNewShoot(shoot *gardencore.Shoot) field.ErrorList {
	return slices.Concat(
		validation.ValidateShoot(shoot),
		validation.ValidateForceDeletion(shoot, nil),
		validation.ValidateFinalizersOnCreation(shoot.Finalizers, field.NewPath("metadata", "finalizers")),
		validation.ValidateInPlaceUpdateStrategyOnCreation(shoot),
	)
}

// syncCloudProfileFields keeps the deprecated spec.cloudProfileName and spec.cloudProfile saying the same, for as long
// as the reference is to a CloudProfile; the reference wins. From Kubernetes 1.34 the old field is on its way out: it
// is not filled in any more, and goes with the first update if it says nothing new.
func syncCloudProfileFields(old, shoot *gardencore.Shoot) {
	const cloudProfile = v1beta1constants.CloudProfileReferenceKindCloudProfile
	if shoot.DeletionTimestamp != nil {
		return
	}
	spec, version := &shoot.Spec, shoot.Spec.Kubernetes.Version
	name := ptr.Deref(spec.CloudProfileName, "")
	outdated := kubernetesAtLeast(version, 34)
	if spec.CloudProfile == nil && spec.CloudProfileName != nil && !outdated {
		spec.CloudProfile = &gardencore.CloudProfileReference{Name: name}
	}
	ref := spec.CloudProfile
	if ref == nil {
		return
	}
	ref.Kind = cmp.Or(ref.Kind, cloudProfile)
	switch {
	case outdated:
		if old != nil && ref.Kind == cloudProfile && name == ref.Name && name == ptr.Deref(old.Spec.CloudProfileName, "") {
			spec.CloudProfileName = nil
		}
	case ref.Kind != cloudProfile:
		spec.CloudProfileName = nil
	case !kubernetesAtLeast(version, 33), name != "" && name != ref.Name:
		spec.CloudProfileName = ptr.To(ref.Name)
	}
}

// syncDNSCredentials keeps the deprecated secretName of DNS providers and a credentialsRef to a Secret saying the same,
// until Kubernetes 1.35 ends that.
func syncDNSCredentials(shoot *gardencore.Shoot) {
	if shoot.Spec.DNS == nil || kubernetesAtLeast(shoot.Spec.Kubernetes.Version, 35) {
		return
	}
	for i := range shoot.Spec.DNS.Providers {
		provider := &shoot.Spec.DNS.Providers[i]
		switch name, ref := provider.SecretName, provider.CredentialsRef; {
		case name != nil && ref == nil:
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: *name}
		case name == nil && ref != nil && ref.APIVersion == "v1" && ref.Kind == "Secret":
			provider.SecretName = ptr.To(ref.Name)
		}
	}
}

// prepareShootStatus makes the gardenlet look at a Shoot again after what it said of it: the destination's when the
// source has let go in a migration, the same one when a rotation of the etcd encryption key continues without being asked.
func prepareShootStatus(_ context.Context, shoot, old *gardencore.Shoot) {
	last := shoot.Status.LastOperation
	migrated := last != nil && last.Type == gardencore.LastOperationTypeMigrate &&
		(last.State == gardencore.LastOperationStateSucceeded || last.State == gardencore.LastOperationStateAborted)
	rotation, before := etcdKeyRotation(shoot), etcdKeyRotation(old)
	goesOn := rotation.Phase == gardencore.RotationPrepared && before.Phase != gardencore.RotationPrepared &&
		ptr.Deref(rotation.AutoCompleteAfterPrepared, false)
	if migrated || goesOn {
		shoot.Generation = old.Generation + 1
	}
	// Watchers of the object get this event as well.
	syncDNSCredentials(shoot)
}

func etcdKeyRotation(shoot *gardencore.Shoot) gardencore.ETCDEncryptionKeyRotation {
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil {
		return *c.Rotation.ETCDEncryptionKey
	}
	return gardencore.ETCDEncryptionKeyRotation{}
}

// canonicalizeShoot takes away what says nothing, or nothing any more, and keeps the labels that clients select by.
func canonicalizeShoot(shoot *gardencore.Shoot) {
	kubernetes := &shoot.Spec.Kubernetes
	if kubernetes.ClusterAutoscaler != nil {
		kubernetes.ClusterAutoscaler.MaxEmptyBulkDelete = nil
	}
	if server := kubernetes.KubeAPIServer; server != nil && !ptr.Deref(server.EnableAnonymousAuthentication, false) {
		server.EnableAnonymousAuthentication = nil
	}
	if addons := shoot.Spec.Addons; addons != nil && addons.NginxIngress == nil && addons.KubernetesDashboard != nil &&
		!addons.KubernetesDashboard.Enabled {
		shoot.Spec.Addons = nil
	}
	maintainSeedLabels(&shoot.ObjectMeta, shoot.Spec.SeedName, shoot.Status.SeedName)
	if slices.ContainsFunc(shoot.Spec.Provider.Workers, func(w gardencore.Worker) bool { return w.ControlPlane != nil }) {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, v1beta1constants.ShootIsSelfHosted, "true")
	} else {
		delete(shoot.Labels, v1beta1constants.ShootIsSelfHosted)
	}
}

// seedLabelPrefix starts the labels that say which seeds an object has to do with.
const seedLabelPrefix = v1beta1constants.LabelPrefixSeedName

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
