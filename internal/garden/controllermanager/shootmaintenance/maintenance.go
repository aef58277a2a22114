package shootmaintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// maintenance is one maintenance of a Shoot: before is the Shoot before it, and shoot the one that it changes.
type maintenance struct {
	before, shoot *corev1beta1.Shoot
	profile       *gardencore.CloudProfileSpec
	now           time.Time
	// results are the outcomes of the parts that may fail; notes describe the other changes.
	results []result
	notes   []string
}

// result is the outcome of one part of the maintenance.
type result struct {
	// pool is the name of the worker pool, empty for the control plane and the Shoot as a whole.
	pool, subject, reason string
	// done describes the change; failure is why there was none.
	done, failure string
	// event is the reason of the event about the result; no event if it is empty.
	event string
	// operation is the operation annotation that starts a rotation.
	operation string
}

func (m *maintenance) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// plan applies the maintenance to the Shoot in memory. Images come first: they have to fit the current Kubernetes
// version.
func (m *maintenance) plan(ctx context.Context, c client.Client) {
	m.machineImages()
	m.controlPlaneVersion()
	m.rotations()
	m.removeFields()
	m.credentialsBinding(ctx, c)
	m.workerVersions()
	m.removeFeatures()
	m.operations()
	m.tasks()
}

// isNews reports whether the maintenance has results or notes.
func (m *maintenance) isNews() bool { return len(m.results)+len(m.notes) > 0 }

// String describes the result and its reason.
func (r result) String() string {
	where, done := "Control Plane", "updated "+r.done
	if r.pool != "" {
		where = fmt.Sprintf("Worker pool %q", r.pool)
	}
	if r.operation != "" {
		where, done = "Credentials", r.done
	}
	if r.failure != "" {
		done = "could not be maintained"
	}
	return fmt.Sprintf("%s: %s %s. Reason: %s", where, r.subject, done, r.reason)
}

// describe returns the description and the failure reason for status.lastMaintenance; the latter is empty if all parts
// succeeded.
func (m *maintenance) describe() (description, failure string) {
	var parts, failures []string
	for _, r := range m.results {
		parts = append(parts, r.String())
		if r.failure != "" {
			failures = append(failures, fmt.Sprintf("%s: %s", r, r.failure))
		}
	}
	parts = append(parts, m.notes...)
	outcome := "All parts of the maintenance succeeded"
	if len(failures) > 0 {
		outcome = fmt.Sprintf("%d of %d parts of the maintenance succeeded", len(m.results)-len(failures), len(m.results))
	}
	return outcome + ". " + strings.Join(parts, ", "), strings.Join(failures, ", ")
}

// profileOf returns the specification of a Shoot's cloud profile.
func profileOf(ctx context.Context, c client.Client, shoot *corev1beta1.Shoot) (*gardencore.CloudProfileSpec, error) {
	ref := ptr.Deref(shoot.Spec.CloudProfile, corev1beta1.CloudProfileReference{Name: ptr.Deref(shoot.Spec.CloudProfileName, "")})
	if ref.Name == "" {
		return nil, errors.New("it refers to no cloud profile")
	}
	var spec *corev1beta1.CloudProfileSpec
	if ref.Kind == constants.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &corev1beta1.NamespacedCloudProfile{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("reading the NamespacedCloudProfile %s/%s: %w", shoot.Namespace, ref.Name, err)
		}
		spec = &profile.Status.CloudProfileSpec
	} else {
		profile := &corev1beta1.CloudProfile{}
		if err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("reading the CloudProfile %s: %w", ref.Name, err)
		}
		spec = &profile.Spec
	}
	internal := &gardencore.CloudProfileSpec{}
	if err := scheme.Scheme.Convert(spec, internal, nil); err != nil {
		return nil, fmt.Errorf("converting the cloud profile %s: %w", ref.Name, err)
	}
	return internal, nil
}
