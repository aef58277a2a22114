package finalizers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/admission/namespacedcloudprofilevalidator"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/scheme"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// settleCloudProfile writes the current lifecycle classification of each version to the status, and requeues the
// CloudProfile for the next lifecycle stage.
func settleCloudProfile(ctx context.Context, r *Reconciler, obj client.Object) (reconcile.Result, error) {
	profile, spec := obj.(*corev1beta1.CloudProfile), &gardencore.CloudProfileSpec{}
	if err := scheme.Scheme.Convert(&profile.Spec, spec, nil); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("reading the CloudProfile's specification: %w", err))
	}
	now := r.Clock.Now()
	err := operation.PatchStatus(ctx, r.Client, profile, func(profile *corev1beta1.CloudProfile) { profile.Status = statusAt(spec, now) })
	return component.RequeueAfter(untilNextStage(spec, now), err)
}

func statusAt(spec *gardencore.CloudProfileSpec, now time.Time) (status corev1beta1.CloudProfileStatus) {
	if len(spec.Kubernetes.Versions) > 0 {
		status.Kubernetes = &corev1beta1.KubernetesStatus{}
		for _, version := range spec.Kubernetes.Versions {
			status.Kubernetes.Versions = append(status.Kubernetes.Versions, versionAt(version, now))
		}
	}
	for _, image := range spec.MachineImages {
		entry := corev1beta1.MachineImageStatus{Name: image.Name}
		for _, version := range image.Versions {
			entry.Versions = append(entry.Versions, versionAt(version.ExpirableVersion, now))
		}
		status.MachineImages = append(status.MachineImages, entry)
	}
	return status
}

func versionAt(version gardencore.ExpirableVersion, now time.Time) corev1beta1.ExpirableVersionStatus {
	return corev1beta1.ExpirableVersionStatus{
		Version:        version.Version,
		Classification: corev1beta1.VersionClassification(validation.ClassificationAt(version, now)),
	}
}

// untilNextStage returns the time until the next lifecycle stage starts, and 0 if there is none.
func untilNextStage(spec *gardencore.CloudProfileSpec, now time.Time) (wait time.Duration) {
	look := func(version gardencore.ExpirableVersion) {
		for _, stage := range validation.LifecycleStages(version) {
			if stage.StartTime == nil || stage.StartTime.Time.Before(now) {
				continue
			}
			// A stage has started only after its start time.
			if until := min(stage.StartTime.Sub(now), math.MaxInt64-1) + 1; wait == 0 || until < wait {
				wait = until
			}
		}
	}
	for _, version := range spec.Kubernetes.Versions {
		look(version)
	}
	for _, image := range spec.MachineImages {
		for _, version := range image.Versions {
			look(version.ExpirableVersion)
		}
	}
	return wait
}

// settleNamespacedCloudProfile writes the merged spec of the profile and its parent to the status.
func settleNamespacedCloudProfile(ctx context.Context, r *Reconciler, obj client.Object) (reconcile.Result, error) {
	profile, parent := obj.(*corev1beta1.NamespacedCloudProfile), &corev1beta1.CloudProfile{}
	for _, name := range parentOf(profile) {
		if err := r.Client.Get(ctx, name, parent); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("reading the parent CloudProfile %s: %w", name.Name, err)
		}
	}
	if parent.Name == "" {
		logf.FromContext(ctx).Info("The parent CloudProfile is not there (yet)", "cloudProfile", profile.Spec.Parent.Name)
		return reconcile.Result{}, nil // the creation of the parent triggers a reconciliation
	}
	merged, err := merge(profile, parent)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return reconcile.Result{}, operation.PatchStatus(ctx, r.Client, profile, func(profile *corev1beta1.NamespacedCloudProfile) {
		profile.Status.CloudProfileSpec, profile.Status.ObservedGeneration = *merged, profile.Generation
	})
}

// merge converts both profiles to the internal version, in which admission merges them, and the result back.
func merge(profile *corev1beta1.NamespacedCloudProfile, parent *corev1beta1.CloudProfile) (*corev1beta1.CloudProfileSpec, error) {
	own, base, merged := &gardencore.NamespacedCloudProfileSpec{}, &gardencore.CloudProfileSpec{}, &corev1beta1.CloudProfileSpec{}
	if err := scheme.Scheme.Convert(&profile.Spec, own, nil); err != nil {
		return nil, fmt.Errorf("reading the NamespacedCloudProfile's specification: %w", err)
	}
	if err := scheme.Scheme.Convert(&parent.Spec, base, nil); err != nil {
		return nil, fmt.Errorf("reading the parent CloudProfile's specification: %w", err)
	}
	if err := scheme.Scheme.Convert(namespacedcloudprofilevalidator.Merge(own, base), merged, nil); err != nil {
		return nil, fmt.Errorf("writing the merged CloudProfile's specification: %w", err)
	}
	return merged, nil
}

// childrenOf returns requests for the NamespacedCloudProfiles whose parent is the CloudProfile.
func childrenOf(ctx context.Context, reader client.Reader, obj client.Object) []reconcile.Request {
	return kit.RequestsIf(ctx, reader, &corev1beta1.NamespacedCloudProfileList{}, func(child *corev1beta1.NamespacedCloudProfile) bool {
		return slices.Contains(parentOf(child), client.ObjectKeyFromObject(obj))
	})
}
