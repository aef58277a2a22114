package tokenrequestor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type world struct {
	*testing.T
	target, seed client.Client
	*Reconciler
	clock *clocktesting.FakeClock
	users map[string]string // by token
	asked int64             // expiration in seconds of the last requested token
}

func newWorld(t *testing.T, secrets ...client.Object) *world {
	t.Helper()
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Unix(100000, 0)), users: map[string]string{}}
	w.target = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			token := fmt.Sprintf("token-%d", len(w.users))
			r := request.(*authenticationv1.TokenRequest)
			w.users[token], w.asked = "system:serviceaccount:"+obj.GetNamespace()+":"+obj.GetName(), *r.Spec.ExpirationSeconds
			r.Status.Token = token
			r.Status.ExpirationTimestamp = metav1.NewTime(w.clock.Now().Add(time.Duration(w.asked) * time.Second))
			return nil
		},
	}).Build()
	w.seed = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secrets...).Build()
	target := &Target{Client: w.target, Reader: w.target,
		Config: &rest.Config{Host: "https://garden", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
		User:   func(_ context.Context, token string) (string, error) { return w.users[token], nil }}
	w.Reconciler = &Reconciler{
		SeedClient: w.seed, SeedReader: w.seed, Clock: w.clock, Class: "garden", Namespace: "seed-local",
		Target: func(context.Context, *corev1.Secret) (*Target, error) { return target, nil },
		Jitter: func(d time.Duration, _ float64) time.Duration { return d }}
	return w
}

func asking(name string, annotations ...string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-x", Name: name,
		Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden"},
		Annotations: map[string]string{
			"serviceaccount.resources.gardener.cloud/name":   "extension-x",
			"serviceaccount.resources.gardener.cloud/labels": `{"a":"b"}`,
		}}}
	for i := 0; i < len(annotations); i += 2 {
		secret.Annotations["serviceaccount.resources.gardener.cloud/"+annotations[i]] = annotations[i+1]
	}
	return secret
}

func (w *world) run(name string) time.Duration {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "extension-x", Name: name}})
	w.must(err)
	return result.RequeueAfter
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) secret(name string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{}
	w.must(w.seed.Get(w.Context(), client.ObjectKey{Namespace: "extension-x", Name: name}, secret))
	return secret
}

func (w *world) account() *corev1.ServiceAccount {
	w.Helper()
	account := &corev1.ServiceAccount{}
	err := w.target.Get(w.Context(), client.ObjectKey{Namespace: "seed-local", Name: "extension-x"}, account)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return account
}

func TestFillsAndRenews(t *testing.T) {
	w := newWorld(t, asking("a"))
	due := 12 * time.Hour * 80 / 100
	if wait := w.run("a"); wait != due {
		t.Errorf("renews after %s, not %s", wait, due)
	}
	secret, account := w.secret("a"), w.account()
	if string(secret.Data["token"]) != "token-0" || account == nil || account.Labels["a"] != "b" || *account.AutomountServiceAccountToken {
		t.Fatalf("secret %v, account %+v", secret.Data, account)
	}
	if got, want := secret.Annotations["serviceaccount.resources.gardener.cloud/token-renew-timestamp"],
		w.clock.Now().Add(due).UTC().Format(time.RFC3339); got != want {
		t.Errorf("renewal at %s, not %s", got, want)
	}
	w.clock.Step(due - time.Minute)
	if wait := w.run("a"); wait != time.Minute || string(w.secret("a").Data["token"]) != "token-0" {
		t.Errorf("before it is due: waits %s, has %s", wait, w.secret("a").Data["token"])
	}
	w.clock.Step(time.Minute)
	if w.run("a"); string(w.secret("a").Data["token"]) != "token-1" {
		t.Errorf("when it is due: has %s", w.secret("a").Data["token"])
	}
	// A token that the garden no longer takes, and one of another user.
	for _, user := range []string{"", "system:serviceaccount:seed-local:other"} {
		before := string(w.secret("a").Data["token"])
		w.users[before] = user
		if w.run("a"); string(w.secret("a").Data["token"]) == before {
			t.Errorf("keeps a token of %q", user)
		}
	}
}

func TestForms(t *testing.T) {
	kubeconfig := asking("k", "inject-ca-bundle", "true", "token-expiration-duration", "6h")
	kubeconfig.Data = map[string][]byte{
		"kubeconfig": []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: l, user: u}}],
		clusters: [{name: l, cluster: {server: "https://garden"}}], users: [{name: u, user: {}}]}`)}
	w := newWorld(t, kubeconfig, asking("t", "inject-ca-bundle", "true"))
	w.run("k")
	data := w.secret("k").Data
	if !strings.Contains(string(data["kubeconfig"]), "token: token-0") ||
		!strings.Contains(string(data["kubeconfig"]), "Y2E=") || data["token"] != nil || w.asked != 6*3600 {
		t.Errorf("kubeconfig, asked for %d s:\n%s", w.asked, data["kubeconfig"])
	}
	w.run("t")
	if data := w.secret("t").Data; string(data["token"]) != "token-1" || string(data["bundle.crt"]) != "ca" {
		t.Errorf("token: %q", data)
	}
}

func TestReleases(t *testing.T) {
	w := newWorld(t, asking("a"), asking("b"))
	w.run("a")
	w.run("b")
	w.must(w.seed.Delete(t.Context(), w.secret("a")))
	w.run("a")
	if w.account() == nil {
		t.Error("the ServiceAccount goes while another Secret needs it")
	}
	b := w.secret("b")
	delete(b.Labels, "resources.gardener.cloud/purpose")
	w.must(w.seed.Update(t.Context(), b))
	w.run("b")
	if w.account() != nil || len(w.secret("b").Finalizers) > 0 {
		t.Errorf("the ServiceAccount stays, or the finalizers: %v", w.secret("b").Finalizers)
	}
}

func TestDeletesFormerAccount(t *testing.T) {
	w := newWorld(t, asking("a"))
	w.run("a")
	a := w.secret("a")
	a.Annotations["serviceaccount.resources.gardener.cloud/name"] = "other"
	w.must(w.seed.Update(t.Context(), a))
	w.run("a")
	if w.account() != nil || w.users[string(w.secret("a").Data["token"])] != "system:serviceaccount:seed-local:other" {
		t.Errorf("the former ServiceAccount is %v, the token %s", w.account(), w.secret("a").Data["token"])
	}
}

func TestRefuses(t *testing.T) {
	target := asking("s")
	target.Annotations["token-requestor.resources.gardener.cloud/target-secret-name"] = "x"
	for name, secret := range map[string]*corev1.Secret{
		"no account": asking("s", "name", ""), "labels": asking("s", "labels", "{"), "duration": asking("s", "token-expiration-duration", "soon"),
		"short": asking("s", "token-expiration-duration", "1m"), "target": target,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, secret)
			_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
			if err == nil || w.account() != nil || w.secret("s").Data["token"] != nil {
				t.Errorf("error %v, account %v", err, w.account())
			}
		})
	}
	other := asking("s")
	other.Labels["resources.gardener.cloud/class"] = "shoot"
	w := newWorld(t, other)
	if w.run("s"); w.account() != nil {
		t.Error("fills a Secret of another class")
	}
}

// TestForShoot: the ServiceAccount is where the Secret says, it stays when the Secret goes, and the token can be written into a
// Secret of the shoot.
func TestForShoot(t *testing.T) {
	for name, toShoot := range map[string]bool{"in the seed": false, "in the shoot": true} {
		t.Run(name, func(t *testing.T) {
			secret := asking("s", "namespace", "kube-system", "inject-ca-bundle", "true")
			secret.Labels["resources.gardener.cloud/class"] = "shoot"
			if toShoot {
				secret.Annotations["token-requestor.resources.gardener.cloud/target-secret-name"] = "to"
				secret.Annotations["token-requestor.resources.gardener.cloud/target-secret-namespace"] = "kube-system"
			}
			w := newWorld(t, secret)
			w.Class, w.Namespace = "shoot", ""
			w.run("s")
			account := &corev1.ServiceAccount{}
			w.must(w.target.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "extension-x"}, account))
			filled := w.secret("s")
			if toShoot {
				if filled.Data["token"] != nil {
					t.Error("the token is in the seed's Secret too")
				}
				w.must(w.target.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "to"}, filled))
			}
			if string(filled.Data["token"]) != "token-0" || string(filled.Data["bundle.crt"]) != "ca" {
				t.Errorf("the data is %q", filled.Data)
			}
			if wait := w.run("s"); wait <= 0 || len(w.users) != 1 {
				t.Errorf("the next run waits %s and has requested %d tokens", wait, len(w.users))
			}
			if len(w.secret("s").Finalizers) > 0 {
				t.Errorf("the Secret has finalizers: %v", w.secret("s").Finalizers)
			}
			w.must(w.seed.Delete(t.Context(), w.secret("s")))
			w.run("s")
			w.must(w.target.Get(t.Context(), client.ObjectKeyFromObject(account), account))
		})
	}
}

// TestWithoutShoot: a Secret waits while its shoot cannot be reached.
func TestWithoutShoot(t *testing.T) {
	secret := asking("s", "namespace", "kube-system")
	secret.Labels["resources.gardener.cloud/class"] = "shoot"
	w := newWorld(t, secret)
	w.Class, w.Target = "shoot", func(context.Context, *corev1.Secret) (*Target, error) { return nil, nil }
	if wait := w.run("s"); wait != targetPoll || w.secret("s").Data["token"] != nil {
		t.Errorf("waits %s", wait)
	}
}
