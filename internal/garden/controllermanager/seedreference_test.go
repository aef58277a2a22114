package controllermanager

import (
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

func resource(apiVersion, kind, name string) corev1beta1.NamedResourceReference {
	return corev1beta1.NamedResourceReference{
		Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}}
}

func referringSeed(name string, resources ...corev1beta1.NamedResourceReference) *corev1beta1.Seed {
	return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.SeedSpec{Resources: resources}}
}

func inDeletion(s *corev1beta1.Seed, finalizers ...string) *corev1beta1.Seed {
	s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: kittest.Start}, append(finalizers, "other")
	return s
}

func inGarden(name string, kept bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "garden", Name: name}
	if kept {
		m.Finalizers = []string{references.Finalizer}
	}
	return m
}

func secretNamed(name string, kept bool) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: inGarden(name, kept)}
}

func TestReconcileSeedReference(t *testing.T) {
	secret, configMap, identity := resource("v1", "Secret", "a"), resource("v1", "ConfigMap", "a"),
		resource("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "a")
	ofShoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "x"},
		Spec: corev1beta1.ShootSpec{Resources: []corev1beta1.NamedResourceReference{secret}}}
	ofDeployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "a"}},
	}}
	for name, test := range map[string]struct {
		seed    *corev1beta1.Seed
		objects []client.Object
		// kept is whether the first object has the finalizer afterwards, keeps whether the Seed has it.
		kept, keeps bool
		fails       bool
	}{
		"secret":     {referringSeed("s", secret), []client.Object{secretNamed("a", false)}, true, true, false},
		"config map": {referringSeed("s", configMap), []client.Object{&corev1.ConfigMap{ObjectMeta: inGarden("a", false)}}, true, true, false},
		"workload identity": {referringSeed("s", identity),
			[]client.Object{&securityv1alpha1.WorkloadIdentity{ObjectMeta: inGarden("a", false)}}, true, true, false},
		"another name": {referringSeed("s", resource("v1", "Secret", "b")),
			[]client.Object{secretNamed("a", false), secretNamed("b", false)}, false, true, false},
		"another kind": {referringSeed("s", configMap),
			[]client.Object{secretNamed("a", true), &corev1.ConfigMap{ObjectMeta: inGarden("a", false)}}, false, true, false},
		"one is missing":  {referringSeed("s", secret, configMap), []client.Object{secretNamed("a", false)}, true, true, true},
		"all are missing": {referringSeed("s", configMap), []client.Object{secretNamed("b", false)}, false, false, true},
		"no reference":    {referringSeed("s"), []client.Object{secretNamed("a", true)}, false, false, false},

		"another seed's": {referringSeed("s"), []client.Object{secretNamed("a", true), referringSeed("t", secret)}, true,
			false, false},
		"another seed's that is gone": {referringSeed("s"), []client.Object{secretNamed("a", true), inDeletion(referringSeed("t",
			secret))}, false, false, false},
		"a shoot's":      {referringSeed("s"), []client.Object{secretNamed("a", true), ofShoot.DeepCopy()}, true, false, false},
		"a deployment's": {referringSeed("s"), []client.Object{secretNamed("a", true), ofDeployment}, true, false, false},

		"in deletion": {inDeletion(referringSeed("s", secret), "gardener", references.Finalizer),
			[]client.Object{secretNamed("a", true)}, true, true, false},
		"done with": {inDeletion(referringSeed("s", secret), references.Finalizer), []client.Object{secretNamed("a", true)}, false, false, false},
		"done with, shared": {inDeletion(referringSeed("s", secret), references.Finalizer),
			[]client.Object{secretNamed("a", true), referringSeed("t", secret)}, true, false, false},
	} {
		g := kittest.New(t, append(test.objects, test.seed)...)
		r := &SeedReference{Base: g.Base()}
		if _, err := g.Reconcile(reconcile.AsReconciler(g, r), test.seed); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		g.Exists(test.seed)
		g.Exists(test.objects[0])
		kept, keeps := controllerutil.ContainsFinalizer(test.objects[0], references.Finalizer),
			controllerutil.ContainsFinalizer(test.seed, references.Finalizer)
		if kept != test.kept || keeps != test.keeps {
			t.Errorf("%s: kept %v, the seed keeps %v", name, kept, keeps)
		}
	}
}

func TestChangedSeedReference(t *testing.T) {
	a, b := resource("v1", "Secret", "a"), resource("v1", "Secret", "b")
	for name, test := range map[string]struct {
		before, after *corev1beta1.Seed
		want          bool
	}{
		"same":      {referringSeed("s", a), referringSeed("s", a), false},
		"order":     {referringSeed("s", a, b), referringSeed("s", b, a), false},
		"more":      {referringSeed("s", a), referringSeed("s", a, b), true},
		"deletion":  {referringSeed("s", a), inDeletion(referringSeed("s", a), "gardener"), false},
		"done with": {inDeletion(referringSeed("s", a), "gardener"), inDeletion(referringSeed("s", a)), true},
	} {
		if got := seedReferencesChanged().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
