package seedreference

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

func seed(name string, resources ...corev1beta1.NamedResourceReference) *corev1beta1.Seed {
	return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.SeedSpec{Resources: resources}}
}

func inDeletion(s *corev1beta1.Seed, finalizers ...string) *corev1beta1.Seed {
	s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: kittest.Start}, append(finalizers, "other")
	return s
}

func meta(name string, kept bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "garden", Name: name}
	if kept {
		m.Finalizers = []string{references.Finalizer}
	}
	return m
}

func secretNamed(name string, kept bool) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(name, kept)}
}

func TestReconcile(t *testing.T) {
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
		"secret":     {seed("s", secret), []client.Object{secretNamed("a", false)}, true, true, false},
		"config map": {seed("s", configMap), []client.Object{&corev1.ConfigMap{ObjectMeta: meta("a", false)}}, true, true, false},
		"workload identity": {seed("s", identity),
			[]client.Object{&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta("a", false)}}, true, true, false},
		"another name": {seed("s", resource("v1", "Secret", "b")),
			[]client.Object{secretNamed("a", false), secretNamed("b", false)}, false, true, false},
		"another kind": {seed("s", configMap),
			[]client.Object{secretNamed("a", true), &corev1.ConfigMap{ObjectMeta: meta("a", false)}}, false, true, false},
		"one is missing":  {seed("s", secret, configMap), []client.Object{secretNamed("a", false)}, true, true, true},
		"all are missing": {seed("s", configMap), []client.Object{secretNamed("b", false)}, false, false, true},
		"no reference":    {seed("s"), []client.Object{secretNamed("a", true)}, false, false, false},

		"another seed's":              {seed("s"), []client.Object{secretNamed("a", true), seed("t", secret)}, true, false, false},
		"another seed's that is gone": {seed("s"), []client.Object{secretNamed("a", true), inDeletion(seed("t", secret))}, false, false, false},
		"a shoot's":                   {seed("s"), []client.Object{secretNamed("a", true), ofShoot.DeepCopy()}, true, false, false},
		"a deployment's":              {seed("s"), []client.Object{secretNamed("a", true), ofDeployment}, true, false, false},

		"in deletion": {inDeletion(seed("s", secret), "gardener", references.Finalizer),
			[]client.Object{secretNamed("a", true)}, true, true, false},
		"done with": {inDeletion(seed("s", secret), references.Finalizer), []client.Object{secretNamed("a", true)}, false, false, false},
		"done with, shared": {inDeletion(seed("s", secret), references.Finalizer),
			[]client.Object{secretNamed("a", true), seed("t", secret)}, true, false, false},
	} {
		g := kittest.New(t, append(test.objects, test.seed)...)
		r := &Reconciler{Base: g.Base()}
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

func TestChanged(t *testing.T) {
	a, b := resource("v1", "Secret", "a"), resource("v1", "Secret", "b")
	for name, test := range map[string]struct {
		before, after *corev1beta1.Seed
		want          bool
	}{
		"same":      {seed("s", a), seed("s", a), false},
		"order":     {seed("s", a, b), seed("s", b, a), false},
		"more":      {seed("s", a), seed("s", a, b), true},
		"deletion":  {seed("s", a), inDeletion(seed("s", a), "gardener"), false},
		"done with": {inDeletion(seed("s", a), "gardener"), inDeletion(seed("s", a)), true},
	} {
		if got := changed().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
