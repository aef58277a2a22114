package controllermanager

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func newSeed() *corev1beta1.Seed {
	return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "uid"}}
}

func secret(namespace, name, role string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string][]byte{"k": []byte("v")}, Type: corev1.SecretTypeOpaque}
	if role != "" {
		s.Labels = map[string]string{constants.GardenRole: role}
	}
	return s
}

func TestNamespace(t *testing.T) {
	seed := newSeed()
	namespace := func(change func(*corev1.Namespace)) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-s",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))}}}
		change(n)
		return n
	}
	for name, test := range map[string]struct {
		before *corev1.Namespace
		ok     bool
	}{
		"new":             {nil, true},
		"without label":   {namespace(func(*corev1.Namespace) {}), true},
		"not a seed's":    {namespace(func(n *corev1.Namespace) { n.OwnerReferences = nil }), false},
		"of a former one": {namespace(func(n *corev1.Namespace) { n.OwnerReferences[0].UID = "former" }), false},
	} {
		g := kittest.New(t, newSeed(), secret("garden", "d", "default-domain"))
		if test.before != nil {
			g.Must(g.Create(g.Context(), test.before))
		}
		_, err := g.Reconcile(reconcile.AsReconciler(g, &SeedSecrets{Base: g.Base()}), seed)
		after := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-s"}}
		if !g.Exists(after) || (err == nil) != test.ok || g.Exists(secret("seed-s", "d", "")) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
		if test.ok && (!metav1.IsControlledBy(after, seed) || after.Labels[constants.GardenRole] != "seed") {
			t.Errorf("%s: %+v", name, after.ObjectMeta)
		}
	}
}

func TestSecrets(t *testing.T) {
	typed := secret("garden", "typed", "typed")
	typed.Type = corev1.SecretTypeTLS
	domain := secret("garden", "domain", "default-domain")
	domain.Annotations = map[string]string{"a": "b"}
	g := kittest.New(t, newSeed(), domain, typed,
		secret("garden", "none", ""), secret("garden", "kubeconfig", "kubeconfig"), secret("garden", "pull", "helm-pull-secret"),
		secret("garden", "ca", "oci-ca-bundle"), secret("garden", "ref", "resource-reference"), secret("other", "elsewhere", "default-domain"),
		secret("seed-s", "stale", "alerting"), secret("seed-s", "own", ""), secret("seed-s", "own-kubeconfig", "kubeconfig"),
		secret("seed-s", "typed", "typed"))
	r := &SeedSecrets{Base: g.Base()}
	check := func(when string, want map[string]bool) {
		t.Helper()
		g.MustReconcile(reconcile.AsReconciler(g, r), newSeed())
		for name, exists := range want {
			if g.Exists(secret("seed-s", name, "")) != exists {
				t.Errorf("%s: %s: want %v", when, name, exists)
			}
		}
	}
	check("first", map[string]bool{
		"domain": true, "typed": true, "none": false, "kubeconfig": false, "pull": false, "ca": false, "ref": false, "elsewhere": false,
		"stale": false, "own": true, "own-kubeconfig": true,
	})
	copied := func(name string) *corev1.Secret {
		s := secret("seed-s", name, "")
		g.Exists(s)
		return s
	}
	if c := copied("domain"); c.Annotations["a"] != "b" || c.Labels[constants.GardenRole] != "default-domain" || string(c.Data["k"]) != "v" {
		t.Errorf("%+v", c)
	}
	if c := copied("typed"); c.Type != corev1.SecretTypeTLS {
		t.Errorf("the type is %s", c.Type)
	}
	version := copied("domain").ResourceVersion
	check("nothing new", map[string]bool{"domain": true})
	if copied("domain").ResourceVersion != version {
		t.Error("written again for nothing")
	}
	domain.Data["k"], domain.Annotations = []byte("new"), nil
	g.Must(g.Update(g.Context(), domain))
	check("changed", map[string]bool{"domain": true})
	if c := copied("domain"); string(c.Data["k"]) != "new" || len(c.Annotations) != 0 {
		t.Errorf("changed: %+v", c)
	}
	g.Must(g.Delete(g.Context(), domain))
	check("gone", map[string]bool{"domain": false, "typed": true})
}

func TestOriginals(t *testing.T) {
	p := kit.IsOrWas(isOriginal)
	for name, test := range map[string]struct {
		before, after *corev1.Secret
		want          bool
	}{
		"stays":     {secret("garden", "a", "x"), secret("garden", "a", "x"), true},
		"begins":    {secret("garden", "a", ""), secret("garden", "a", "x"), true},
		"ceases":    {secret("garden", "a", "x"), secret("garden", "a", ""), true},
		"never":     {secret("garden", "a", ""), secret("garden", "a", "kubeconfig"), false},
		"elsewhere": {secret("seed-s", "a", "x"), secret("seed-s", "a", "x"), false},
	} {
		if got := p.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
