package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

const (
	// retryPeriod is the delay between two checks whether the Seed has its namespace.
	retryPeriod = 100 * time.Millisecond
	// timeout is how long Register waits for the namespace of the Seed. In Gardener it is 5 s, after which the gardenlet
	// restarts; a garden that starts at the same time as its gardenlets may take longer.
	timeout = time.Minute
)

// Registrar registers a Seed.
type Registrar struct {
	// GardenClient authenticates as the gardenlet, and reads directly from the garden, not from a cache.
	GardenClient client.Client
	// Template is the seedConfig of the gardenlet's configuration.
	Template *corev1beta1.SeedTemplate
	Clock    clock.Clock
}

// Register creates or updates the Seed, and returns when the controller-manager has created its namespace.
func (r *Registrar) Register(ctx context.Context) error {
	if r.Template == nil || r.Template.Name == "" {
		return errors.New("the gardenlet's configuration has no seed: seedConfig.metadata.name must be its name")
	}
	created, err := r.ensure(ctx)
	if err != nil {
		return fmt.Errorf("registering Seed %s in the garden: %w", r.Template.Name, err)
	}
	return r.wait(ctx, created)
}

func (r *Registrar) ensure(ctx context.Context) (created bool, err error) {
	seed := &corev1beta1.Seed{}
	err = r.GardenClient.Get(ctx, client.ObjectKey{Name: r.Template.Name}, seed)
	if apierrors.IsNotFound(err) {
		seed.Name = r.Template.Name
		r.apply(seed)
		return true, r.GardenClient.Create(ctx, seed)
	}
	if err != nil {
		return false, err
	}
	before := seed.DeepCopy()
	r.apply(seed)
	if equality.Semantic.DeepEqual(before, seed) {
		return false, nil
	}
	// The patch removes fields that the template leaves empty. The garden sets their defaults again.
	return false, r.GardenClient.Patch(ctx, seed, client.MergeFrom(before))
}

// apply writes the template into a Seed, as Gardener does: it keeps other annotations, but replaces all labels. It keeps
// the default domains of the Seed if the template has none.
func (r *Registrar) apply(seed *corev1beta1.Seed) {
	template := r.Template.DeepCopy()
	if seed.Annotations == nil && len(template.Annotations) > 0 {
		seed.Annotations = map[string]string{}
	}
	maps.Copy(seed.Annotations, template.Annotations)
	seed.Labels = map[string]string{constants.GardenRole: constants.GardenRoleSeed}
	maps.Copy(seed.Labels, template.Labels)
	defaults := seed.Spec.DNS.Defaults
	seed.Spec = template.Spec
	if seed.Spec.DNS.Defaults == nil {
		seed.Spec.DNS.Defaults = defaults
	}
}

// wait waits until the namespace of the Seed exists.
func (r *Registrar) wait(ctx context.Context, created bool) error {
	namespace := NamespaceOf(r.Template.Name)
	for start := r.Clock.Now(); ; created = false {
		there, err := false, error(nil)
		if !created { // a check right after the creation would be too early
			there, err = HasNamespace(ctx, r.GardenClient, r.GardenClient, r.Template.Name)
		}
		switch {
		case there:
			return nil
		case err != nil:
			return fmt.Errorf("looking for the namespace %s of Seed %s in the garden: %w", namespace, r.Template.Name, err)
		case r.Clock.Since(start) >= timeout:
			return fmt.Errorf("the garden has no namespace %s for Seed %s after %s: see whether the controller-manager runs, which makes it",
				namespace, r.Template.Name, timeout)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the namespace %s of Seed %s in the garden: %w", namespace, r.Template.Name, context.Cause(ctx))
		case <-r.Clock.After(retryPeriod):
		}
	}
}

// HasNamespace reports whether the namespace of a Seed exists. It first checks whether the gardenlet may read the namespace,
// because that is denied until the garden knows that it belongs to the Seed. The reader must not read from a cache.
func HasNamespace(ctx context.Context, garden client.Client, reader client.Reader, seed string) (bool, error) {
	name := NamespaceOf(seed)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "namespaces", Name: name},
	}}
	if err := garden.Create(ctx, review); err != nil || !review.Status.Allowed {
		return false, err
	}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	return err == nil, client.IgnoreNotFound(err)
}

// NamespaceOf returns the name of a Seed's namespace in the garden.
func NamespaceOf(seed string) string { return seedidentity.NamespacePrefix + seed }
