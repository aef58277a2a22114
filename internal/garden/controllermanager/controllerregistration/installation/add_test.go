package installation

import (
	"slices"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

// TestChanges checks which updates the predicates pass.
func TestChanges(t *testing.T) {
	shoots := component.ChangesIf(shootChanged)
	for name, test := range map[string]struct {
		predicate     predicate.Predicate
		before, after client.Object
		want          bool
	}{
		"seed: status": {
			seedChanged(), seed(), seed(func(s *corev1beta1.Seed) { s.Status.Conditions = []corev1beta1.Condition{{}} }), false},
		"seed: label":         {seedChanged(), seed(), seed(func(s *corev1beta1.Seed) { s.Labels = nil }), true},
		"seed: specification": {seedChanged(), seed(), seed(func(s *corev1beta1.Seed) { s.Spec.Provider.Type = "x" }), true},
		"seed: deletion":      {seedChanged(), seed(), seed(seedInDeletion), true},

		"installation: required":     {requirementChanged(), installed("x"), installed("x", required), true},
		"installation: not required": {requirementChanged(), installed("x", required), installed("x"), true},
		"installation: other":        {requirementChanged(), installed("x", required), installed("y", required), false},

		"shoot: nothing":    {shoots, shoot("x"), shoot("x"), false},
		"shoot: network":    {shoots, shoot("x"), shoot("y"), true},
		"shoot: no network": {shoots, shoot("x"), shoot("x", func(s *corev1beta1.Shoot) { s.Spec.Networking = nil }), true},
		"shoot: seed":       {shoots, shoot("x"), shoot("x", elsewhere), true},
		"shoot: moved":      {shoots, shoot("x"), shoot("x", func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("seed") }), true},
		"shoot: workers":    {shoots, shoot("x"), shoot("x", func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Name = "q" }), true},
		"shoot: extensions": {shoots, shoot("x"),
			shoot("x", func(s *corev1beta1.Shoot) { s.Spec.Extensions = []corev1beta1.Extension{{Type: "e"}} }), true},
		"shoot: DNS": {shoots, shoot("x"),
			shoot("x", func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("d")} }), true},
		"shoot: hibernation": {shoots, shoot("x"),
			shoot("x", func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{} }), false},
	} {
		if got := test.predicate.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRequests checks which Seeds are reconciled after a change of another object.
func TestRequests(t *testing.T) {
	resource := gardencorev1.NamedResourceReference{Name: "r"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name = "Secret", "s"
	x := registration("x")
	x.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "d"}}}
	deployment := func(name string) *gardencorev1.ControllerDeployment {
		return &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Resources: []gardencorev1.NamedResourceReference{resource}}
	}
	other := seed(func(s *corev1beta1.Seed) { s.Name = "other" })
	g := kittest.New(t, seed(), other, x, deployment("d"), deployment("unused"))
	r := &Reconciler{Base: g.Base()}
	named := func(name string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	moving := shoot("x", elsewhere, func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("seed") })
	both := []string{"other", "seed"}
	for name, test := range map[string]struct {
		requests []reconcile.Request
		want     []string
	}{
		"registration":      {r.AllSeeds(t.Context(), x), both},
		"deployment":        {r.seedsOfDeployment(t.Context(), deployment("d")), both},
		"unused deployment": {r.seedsOfDeployment(t.Context(), deployment("unused")), nil},
		"secret":            {r.seedsOfResource("Secret")(t.Context(), named("s")), both},
		"config map":        {r.seedsOfResource("ConfigMap")(t.Context(), named("s")), nil},
		"moving shoot":      {kit.SeedsOf(ofShoot)(t.Context(), moving), both},
		"shoot":             {kit.SeedsOf(ofShoot)(t.Context(), shoot("x")), []string{"seed"}},
		"installation":      {kit.SeedsOf(kit.OfInstallation)(t.Context(), installed("x")), []string{"seed"}},
		"a shoot's": {
			kit.SeedsOf(kit.OfInstallation)(t.Context(), installed("x", func(i *corev1beta1.ControllerInstallation) { i.Spec.SeedRef = nil })), nil},
		"bucket without seed": {kit.SeedsOf(kit.OfBucket)(t.Context(), &corev1beta1.BackupBucket{}), nil},
	} {
		var got []string
		for _, request := range test.requests {
			got = append(got, request.Name)
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
