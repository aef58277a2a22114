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
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func shoots(clock clock.PassiveClock) resource.Definition[*gardencore.Shoot] {
	return resource.Definition[*gardencore.Shoot]{
		Resource: gardencore.Resource("shoots"), Kind: "Shoot", Categories: all, Versions: v1beta1, Namespaced: true,
		CopySpec:   func(to, from *gardencore.Shoot) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencore.Shoot) { to.Status = from.Status },
		PrepareForCreate: func(_ context.Context, shoot *gardencore.Shoot) {
			syncCloudProfileFields(nil, shoot)
			syncDNSCredentials(shoot)
		},
		// A changed spec.seedName is not reset here: the admission plugin ShootValidator refuses it and points to the
		// subresource binding.
		PrepareForUpdate: func(_ context.Context, shoot, _ *gardencore.Shoot) {
			normalizeOperations(shoot)
			syncDNSCredentials(shoot)
		},
		SpecChanged: func(shoot, old *gardencore.Shoot) bool {
			// An update that leaves out one of the two cloud profile fields counts as a change, although the field is
			// filled in again.
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
		Indexes: map[string]func(*gardencore.Shoot) []string{
			plugin.IndexDomain: func(shoot *gardencore.Shoot) []string {
				if domain := domainOf(shoot); domain != "" {
					return []string{domain}
				}
				return nil
			},
			plugin.IndexParentDomain: func(shoot *gardencore.Shoot) []string { return plugin.ParentDomains(domainOf(shoot)) },
		},
		Columns: shootColumns(),
	}
}

func domainOf(shoot *gardencore.Shoot) string {
	if shoot.Spec.DNS == nil {
		return ""
	}
	return ptr.Deref(shoot.Spec.DNS.Domain, "")
}

func validateNewShoot(shoot *gardencore.Shoot) field.ErrorList {
	return slices.Concat(
		validation.ValidateShoot(shoot),
		validation.ValidateForceDeletion(shoot, nil),
		validation.ValidateFinalizersOnCreation(shoot.Finalizers, field.NewPath("metadata", "finalizers")),
		validation.ValidateInPlaceUpdateStrategyOnCreation(shoot),
	)
}

// syncCloudProfileFields keeps the deprecated spec.cloudProfileName and spec.cloudProfile in sync, if the latter refers
// to a CloudProfile; the reference wins. From Kubernetes 1.33, an empty cloudProfileName is not filled in any more.
// From Kubernetes 1.34, it does not fill in the reference either, and an update that does not change it removes it.
func syncCloudProfileFields(old, shoot *gardencore.Shoot) {
	const cloudProfile = v1beta1constants.CloudProfileReferenceKindCloudProfile
	if shoot.DeletionTimestamp != nil {
		return
	}
	spec, version := &shoot.Spec, shoot.Spec.Kubernetes.Version
	name := ptr.Deref(spec.CloudProfileName, "")
	outdated := validation.VersionAtLeast(version, "1.34")
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
	case !validation.VersionAtLeast(version, "1.33"), name != "" && name != ref.Name:
		spec.CloudProfileName = ptr.To(ref.Name)
	}
}

// syncDNSCredentials keeps the deprecated secretName of DNS providers and a credentialsRef to a Secret in sync, for
// Kubernetes versions before 1.35.
func syncDNSCredentials(shoot *gardencore.Shoot) {
	if shoot.Spec.DNS == nil || validation.VersionAtLeast(shoot.Spec.Kubernetes.Version, "1.35") {
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

// prepareShootStatus increases the generation if a status update requires another reconciliation: by the
// destination's gardenlet after the source's one has finished or aborted a migration, or by the same gardenlet when
// the rotation of the etcd encryption key continues automatically.
func prepareShootStatus(_ context.Context, shoot, old *gardencore.Shoot) {
	last := shoot.Status.LastOperation
	migrated := last != nil && last.Type == gardencore.LastOperationTypeMigrate &&
		(last.State == gardencore.LastOperationStateSucceeded || last.State == gardencore.LastOperationStateAborted)
	rotation, before := etcdKeyRotation(shoot), etcdKeyRotation(old)
	completesAutomatically := rotation.Phase == gardencore.RotationPrepared && before.Phase != gardencore.RotationPrepared &&
		ptr.Deref(rotation.AutoCompleteAfterPrepared, false)
	if migrated || completesAutomatically {
		shoot.Generation = old.Generation + 1
	}
	// Watchers of the Shoot also get the event of this update.
	syncDNSCredentials(shoot)
}

func etcdKeyRotation(shoot *gardencore.Shoot) gardencore.ETCDEncryptionKeyRotation {
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil {
		return *c.Rotation.ETCDEncryptionKey
	}
	return gardencore.ETCDEncryptionKeyRotation{}
}

// canonicalizeShoot removes fields without effect, and maintains the labels by which clients select Shoots.
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
	if validation.IsSelfHosted(shoot.Spec.Provider.Workers) {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, v1beta1constants.ShootIsSelfHosted, "true")
	} else {
		delete(shoot.Labels, v1beta1constants.ShootIsSelfHosted)
	}
}

// seedLabelPrefix is the prefix of the labels that name the seeds of an object.
const seedLabelPrefix = v1beta1constants.LabelPrefixSeedName

// maintainSeedLabels sets a label for each of the seeds and removes the labels of other seeds.
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

func shootStates() resource.Definition[*gardencore.ShootState] {
	return resource.Definition[*gardencore.ShootState]{
		Resource: gardencore.Resource("shootstates"), Kind: "ShootState", Categories: all, Versions: v1beta1, Namespaced: true,
		Validate:       validation.ValidateShootState,
		ValidateUpdate: validation.ValidateShootStateUpdate,
		SpecChanged:    func(s, old *gardencore.ShootState) bool { return !resource.Equal(old.Spec, s.Spec) },
		Columns: []resource.Column[*gardencore.ShootState]{
			{Name: "Gardener Data", Description: "How many entries Gardener's own state has.",
				Value: func(s *gardencore.ShootState) any { return int64(len(s.Spec.Gardener)) }},
			{Name: "Extension States", Description: "How many extension resources have state.",
				Value: func(s *gardencore.ShootState) any { return int64(len(s.Spec.Extensions)) }},
		},
	}
}

// newBinding returns the storage of the subresource binding, which assigns a Shoot to a seed or moves it to another
// one.
func newBinding(shootStore *resource.Store) rest.Storage {
	return resource.NewStatusStore(shootStore.Store, bindingStrategy{shootStore.UpdateStrategy})
}

// bindingStrategy accepts changes of the spec. It validates like the strategy of the Shoot itself; the admission
// plugins ensure that nothing else in the spec changes together with the seed.
type bindingStrategy struct{ rest.RESTUpdateStrategy }

func (bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	shoot, before := obj.(*gardencore.Shoot), old.(*gardencore.Shoot)
	shoot.Status = before.Status
	// The pending Create operation says that the Shoot waits to be scheduled.
	if last := shoot.Status.LastOperation; last != nil && before.Spec.SeedName == nil && shoot.Spec.SeedName != nil &&
		last.Type == gardencore.LastOperationTypeCreate && last.State == gardencore.LastOperationStatePending {
		shoot.Status.LastOperation = nil
	}
	if !resource.Equal(before.Spec, shoot.Spec) {
		shoot.Generation = before.Generation + 1
	}
	syncDNSCredentials(shoot)
}

func (bindingStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (bindingStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gardencore.GroupName + "/v1beta1"): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}
