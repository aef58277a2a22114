package shootkubeconfig

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/keyutil"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC)

// world is a project with a Shoot x.
type world struct {
	shoot   *gardencore.Shoot
	secret  *gardencore.InternalSecret
	bundle  *corev1.ConfigMap
	roots   *x509.CertPool
	options Options
}

type getter func(name string) (runtime.Object, bool)

func (g getter) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if obj, ok := g(name); ok {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(gardencore.Resource("things"), name)
}

func newWorld(t *testing.T, caLife time.Duration) *world {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: start.Add(-time.Hour), NotAfter: start.Add(caLife)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	w := &world{
		shoot: &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"},
			Status: gardencore.ShootStatus{AdvertisedAddresses: []gardencore.ShootAdvertisedAddress{
				{Name: "external", URL: "https://127.0.0.1:1"}, {Name: "service-account-issuer", URL: "https://issuer"},
				{Name: "internal", URL: "https://127.0.0.1:2"},
			}}},
		secret:  &gardencore.InternalSecret{Data: map[string][]byte{"ca.crt": certPEM, "ca.key": keyPEM}},
		bundle:  &corev1.ConfigMap{Data: map[string]string{"ca.crt": "the bundle"}},
		roots:   x509.NewCertPool(),
		options: Options{Algorithm: ECDSA},
	}
	w.roots.AppendCertsFromPEM(certPEM)
	return w
}

func (w *world) rest(t *testing.T) (admin, viewer *REST) {
	t.Helper()
	admin, viewer = New(Config{
		Options: w.options, Clock: testclock.NewFakePassiveClock(start), Authorizer: seesAllProjects{"operator"},
		Shoots:          getter(func(name string) (runtime.Object, bool) { return w.shoot, name == "x" && w.shoot != nil }),
		InternalSecrets: getter(func(name string) (runtime.Object, bool) { return w.secret, name == "x.ca-client" && w.secret != nil }),
		ConfigMaps: func(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
			if w.bundle == nil || namespace != "garden-dev" || name != "x.ca-cluster" {
				return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
			}
			return w.bundle, nil
		},
	})
	t.Cleanup(admin.Destroy)
	return admin, viewer
}

// seesAllProjects is an authorizer that allows one user to list Projects.
type seesAllProjects struct{ name string }

func (s seesAllProjects) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "broken" {
		return authorizer.DecisionNoOpinion, "", errors.New("the authorizer is broken")
	}
	if a.GetUser().GetName() == s.name && a.GetVerb() == "list" && a.GetAPIGroup() == "core.gardener.cloud/v1beta1" &&
		a.GetResource() == "Project" && a.IsResourceRequest() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// TestSubjects checks the user and the group in a Shoot: administrators have their name, viewers one of their own.
func TestSubjects(t *testing.T) {
	w := newWorld(t, time.Hour)
	admin, viewer := w.rest(t)
	for _, test := range []struct {
		r          *REST
		user, want string
	}{
		{admin, "alice", "CN=alice,O=system:masters"},
		{admin, "operator", "CN=operator,O=system:masters"},
		{viewer, "alice", "CN=gardener.cloud:viewer:alice,O=gardener.cloud:project:viewers"},
		{viewer, "operator", "CN=gardener.cloud:viewer:operator,O=gardener.cloud:system:viewers"},
	} {
		obj := test.r.New()
		scheme.Scheme.Default(obj)
		made, err := test.r.Create(as(t.Context(), test.user), "x", obj, nil, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var kubeconfig []byte
		switch made := made.(type) {
		case *authenticationv1alpha1.AdminKubeconfigRequest:
			kubeconfig = made.Status.Kubeconfig
		case *authenticationv1alpha1.ViewerKubeconfigRequest:
			kubeconfig = made.Status.Kubeconfig
		}
		if _, cert := w.certificate(t, kubeconfig); cert.Subject.String() != test.want {
			t.Errorf("%s of %s is %s, want %s", test.r.gvk.Kind, test.user, cert.Subject, test.want)
		}
	}
	if _, err := viewer.Create(as(t.Context(), "broken"), "x", viewer.New(), nil, &metav1.CreateOptions{}); err == nil {
		t.Error("a viewer gets a kubeconfig although it is not known what they may do")
	}
}

func as(ctx context.Context, name string) context.Context {
	return genericapirequest.WithUser(genericapirequest.WithNamespace(ctx, "garden-dev"),
		&user.DefaultInfo{Name: name, Groups: []string{"some"}})
}

func request(seconds *int64) *authenticationv1alpha1.AdminKubeconfigRequest {
	r := &authenticationv1alpha1.AdminKubeconfigRequest{Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: seconds}}
	scheme.Scheme.Default(r)
	return r
}

// certificate returns a kubeconfig and its client certificate, which must be signed by the world's authority.
func (w *world) certificate(t *testing.T, kubeconfig []byte) (*clientcmdapi.Config, *x509.Certificate) {
	t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	data := config.AuthInfos[config.CurrentContext].ClientCertificateData
	if _, err := keyutil.ParsePrivateKeyPEM(config.AuthInfos[config.CurrentContext].ClientKeyData); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(
		x509.VerifyOptions{Roots: w.roots, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	return config, cert
}

func TestLife(t *testing.T) {
	for name, test := range map[string]struct {
		seconds *int64
		max, ca time.Duration
		want    time.Duration
	}{
		"by default":                 {nil, 0, 1000 * time.Hour, time.Hour},
		"as asked for":               {ptr.To[int64](600), 0, 1000 * time.Hour, 10 * time.Minute},
		"limited":                    {ptr.To[int64](1 << 31), 0, 1000 * time.Hour, 24 * time.Hour},
		"limited by the operator":    {ptr.To[int64](7201), 2 * time.Hour, 1000 * time.Hour, 2 * time.Hour},
		"longest there is":           {ptr.To[int64](1<<32 - 1), 1000 * time.Hour, 1e6 * time.Hour, 1000 * time.Hour},
		"limited by the authority":   {nil, 0, 30 * time.Minute, 30 * time.Minute},
		"shorter than the authority": {ptr.To[int64](1200), 0, 30 * time.Minute, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.ca)
			w.options.MaxAdmin = test.max
			admin, _ := w.rest(t)
			obj, err := admin.Create(as(t.Context(), "alice"), "x", request(test.seconds), nil, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status := obj.(*authenticationv1alpha1.AdminKubeconfigRequest).Status
			_, cert := w.certificate(t, status.Kubeconfig)
			if want := start.Add(test.want).Truncate(time.Second); !cert.NotAfter.Equal(want) ||
				!status.ExpirationTimestamp.Time.Equal(cert.NotAfter) {
				t.Errorf("not after %s, expires %s, want %s", cert.NotAfter, status.ExpirationTimestamp, want)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	w := newWorld(t, time.Hour)
	_, viewer := w.rest(t)
	obj, err := viewer.Create(as(t.Context(), "alice"), "x", &authenticationv1alpha1.ViewerKubeconfigRequest{
		Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data := obj.(*authenticationv1alpha1.ViewerKubeconfigRequest).Status.Kubeconfig
	config, cert := w.certificate(t, data)
	if config.CurrentContext != "garden-dev--x-external" || cert.Subject.CommonName != "gardener.cloud:viewer:alice" ||
		strings.Join(cert.Subject.Organization, ",") != "gardener.cloud:project:viewers" {
		t.Errorf("context %s, subject %s", config.CurrentContext, cert.Subject)
	}
	ordered := clientcmdv1.Config{}
	if err := yaml.Unmarshal(data, &ordered); err != nil {
		t.Fatal(err)
	}
	if len(ordered.Contexts) != 2 || ordered.Contexts[1].Name != "garden-dev--x-internal" ||
		ordered.Clusters[1].Cluster.Server != "https://127.0.0.1:2" ||
		string(ordered.Clusters[0].Cluster.CertificateAuthorityData) != "the bundle" ||
		ordered.Contexts[1].Context.AuthInfo != config.CurrentContext {
		t.Errorf("%+v", ordered)
	}
}

// TestNames: a user has the same name in the garden and in the Shoot.
func TestNames(t *testing.T) {
	w := newWorld(t, time.Hour)
	admin, _ := w.rest(t)
	for name, code := range map[string]int32{
		"alice": 0, "system:serviceaccount:garden-dev:robot": 0, "Åsa Öberg 漢字 🌱": 0, strings.Repeat("a", 256): 0, "o=x,cn=root": 0, " ": 0,
		"": http.StatusBadRequest, "\xff": http.StatusBadRequest, strings.Repeat("a", maxUserName+1): http.StatusBadRequest,
	} {
		obj, err := admin.Create(as(t.Context(), name), "x", request(nil), nil, &metav1.CreateOptions{})
		if code != 0 {
			if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != code {
				t.Errorf("%.20q: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.20q: %v", name, err)
			continue
		}
		_, cert := w.certificate(t, obj.(*authenticationv1alpha1.AdminKubeconfigRequest).Status.Kubeconfig)
		if cert.Subject.CommonName != name || strings.Join(cert.Subject.Organization, ",") != "system:masters" {
			t.Errorf("%.20q: subject %s", name, cert.Subject)
		}
	}
}

// TestKeyForms checks the PEM form of the keys: by default, it is the one that gardenlogin reads.
func TestKeyForms(t *testing.T) {
	for algorithm, test := range map[Algorithm]struct {
		block string
		parse func(der []byte) (crypto.Signer, error)
	}{
		"":    {"RSA PRIVATE KEY", func(der []byte) (crypto.Signer, error) { return x509.ParsePKCS1PrivateKey(der) }},
		RSA:   {"RSA PRIVATE KEY", func(der []byte) (crypto.Signer, error) { return x509.ParsePKCS1PrivateKey(der) }},
		ECDSA: {"EC PRIVATE KEY", func(der []byte) (crypto.Signer, error) { return x509.ParseECPrivateKey(der) }},
	} {
		t.Run("algorithm "+string(algorithm), func(t *testing.T) {
			w := newWorld(t, time.Hour)
			w.options.Algorithm = algorithm
			admin, _ := w.rest(t)
			obj, err := admin.Create(as(t.Context(), "alice"), "x", request(nil), nil, &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			config, cert := w.certificate(t, obj.(*authenticationv1alpha1.AdminKubeconfigRequest).Status.Kubeconfig)
			block, rest := pem.Decode(config.AuthInfos[config.CurrentContext].ClientKeyData)
			if block == nil || block.Type != test.block || len(block.Headers) > 0 || len(rest) > 0 {
				t.Fatalf("the key is not a single PEM block of type %q", test.block)
			}
			key, err := test.parse(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(cert.PublicKey) {
				t.Error("the certificate is for another key")
			}
			if key, ok := key.(*rsa.PrivateKey); ok && key.N.BitLen() != 2048 {
				t.Errorf("the key has %d bits", key.N.BitLen())
			}
		})
	}
}

// TestRefuses checks that the error says what is missing if no kubeconfig can be created.
func TestRefuses(t *testing.T) {
	other := newWorld(t, time.Hour)
	for name, test := range map[string]struct {
		change  func(*world)
		seconds *int64
		code    int32
		says    string
	}{
		"no Shoot": {func(w *world) { w.shoot = nil }, nil, http.StatusNotFound, "x"},
		"no address": {func(w *world) { w.shoot.Status.AdvertisedAddresses = nil }, nil, http.StatusUnprocessableEntity,
			"status.advertisedAddresses"},
		"no API server": {func(w *world) { w.shoot.Status.AdvertisedAddresses = w.shoot.Status.AdvertisedAddresses[1:2] },
			nil, http.StatusUnprocessableEntity, "status.advertisedAddresses"},
		"no client CA":    {func(w *world) { w.secret = nil }, nil, http.StatusUnprocessableEntity, "x.ca-client"},
		"empty client CA": {func(w *world) { w.secret.Data = nil }, nil, http.StatusUnprocessableEntity, "x.ca-client"},
		"half a client CA": {func(w *world) { w.secret.Data["ca.key"] = other.secret.Data["ca.key"] }, nil,
			http.StatusUnprocessableEntity, "do not belong together"},
		"no cluster CA":       {func(w *world) { w.bundle = nil }, nil, http.StatusUnprocessableEntity, "x.ca-cluster"},
		"empty cluster CA":    {func(w *world) { w.bundle.Data = nil }, nil, http.StatusUnprocessableEntity, "x.ca-cluster"},
		"expired client CA":   {func(w *world) { w.secret = expired(t).secret }, nil, http.StatusUnprocessableEntity, "expired"},
		"too short a time":    {func(*world) {}, ptr.To[int64](599), http.StatusUnprocessableEntity, "spec.expirationSeconds"},
		"no Shoot, too short": {func(w *world) { w.shoot = nil }, ptr.To[int64](0), http.StatusUnprocessableEntity, "spec.expirationSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, time.Hour)
			test.change(w)
			admin, _ := w.rest(t)
			_, err := admin.Create(as(t.Context(), "alice"), "x", request(test.seconds), nil, &metav1.CreateOptions{})
			if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != test.code || !strings.Contains(err.Error(), test.says) {
				t.Error(err)
			}
		})
	}
}

func expired(t *testing.T) *world { return newWorld(t, -time.Minute) }

// TestShootBeingDeleted checks that there are kubeconfigs for a Shoot that is being deleted. A user needs one to find
// out what blocks the deletion.
func TestShootBeingDeleted(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.shoot.DeletionTimestamp = ptr.To(metav1.NewTime(start))
	admin, viewer := w.rest(t)
	for name, kind := range map[string]*REST{"admin": admin, "viewer": viewer} {
		if _, err := kind.Create(as(t.Context(), "alice"), "x", request(nil), nil, &metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, time.Hour)
	admin, _ := w.rest(t)
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			name := "user-" + string(rune('a'+i%26))
			obj, err := admin.Create(as(t.Context(), name), "x", request(nil), nil, &metav1.CreateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, cert := w.certificate(t, obj.(*authenticationv1alpha1.AdminKubeconfigRequest).Status.Kubeconfig); cert.Subject.CommonName != name {
				t.Errorf("%s got a certificate for %s", name, cert.Subject.CommonName)
			}
		})
	}
	all.Wait()
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options Options
		says    string
	}{
		{Options{}, ""}, {Options{MaxAdmin: time.Hour, MaxViewer: 1 << 32 * time.Second, Algorithm: RSA}, ""}, {Options{Algorithm: "ecdsa"}, ""},
		{Options{MaxAdmin: time.Hour - 1}, "--shoot-admin-kubeconfig-max-expiration"},
		{Options{MaxViewer: -1}, "--shoot-viewer-kubeconfig-max-expiration"},
		{Options{MaxViewer: 1<<32*time.Second + 1}, "--shoot-viewer-kubeconfig-max-expiration"}, {Options{Algorithm: "dsa"}, "ecdsa or rsa"},
	} {
		if err := test.options.Validate(); (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.options, err)
		}
	}
}
