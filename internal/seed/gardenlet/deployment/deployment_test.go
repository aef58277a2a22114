package deployment

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func TestConfig(t *testing.T) {
	const kind = `"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration"`
	parent := &gardenletconfigv1alpha1.GardenletConfiguration{
		LogLevel: "debug", LogFormat: "text",
		FeatureGates: map[string]bool{"A": true, "B": true},
		GardenClientConnection: &gardenletconfigv1alpha1.GardenClientConnection{
			GardenClusterAddress: ptr.To("https://garden"), KubeconfigSecret: &corev1.SecretReference{Name: "parents"},
		},
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{},
	}
	parent.SeedConfig.Name, parent.SeedConfig.Spec.Provider.Region = "parent", "parents"
	const own = `{` + kind +
		`,"logLevel":"error","featureGates":{"B":false},"seedConfig":{"metadata":{"labels":{"x":"y"}},"spec":{"provider":{"type":"local"}}}}`

	merged, err := Config("child", raw(own), parent)
	if err != nil {
		t.Fatal(err)
	}
	if merged.LogLevel != "error" || merged.LogFormat != "text" || !merged.FeatureGates["A"] || merged.FeatureGates["B"] {
		t.Errorf("what is inherited: %+v", merged)
	}
	if c := merged.GardenClientConnection; c == nil || *c.GardenClusterAddress != "https://garden" || c.KubeconfigSecret != nil {
		t.Errorf("connection to the garden: %+v", c)
	}
	if s := merged.SeedConfig; s.Name != "child" || s.Labels["x"] != "y" || s.Spec.Provider.Type != "local" || s.Spec.Provider.Region != "" {
		t.Errorf("the seed: %+v", s)
	}
	if merged.LeaderElection.ResourceNamespace != "garden" {
		t.Errorf("leader election: %+v", merged.LeaderElection)
	}
	if parent.SeedConfig.Name != "parent" || parent.GardenClientConnection.KubeconfigSecret == nil {
		t.Error("the parent's configuration was changed")
	}
	alone, err := Config("child", raw(own), nil)
	if err != nil || alone.LogFormat != "" || alone.FeatureGates["A"] {
		t.Errorf("without a parent: %+v, %v", alone, err)
	}
	for text, want := range map[string]string{
		"":                 "seedConfig",
		"{":                "reading the gardenlet configuration of child",
		"{" + kind + "}":   "seedConfig",
		`{"kind":"Other"}`: "reading the gardenlet configuration of child",
	} {
		if _, err := Config("child", raw(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestChecksum(t *testing.T) {
	of := func(change func(*Gardenlet)) string {
		g := &Gardenlet{Config: &gardenletconfigv1alpha1.GardenletConfiguration{}}
		change(g)
		sum, err := g.Checksum()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	same := of(func(*Gardenlet) {})
	if of(func(g *Gardenlet) { g.Bootstrap = []byte("token") }) != same {
		t.Error("another token is not another gardenlet")
	}
	for what, change := range map[string]func(*Gardenlet){
		"config":     func(g *Gardenlet) { g.Config.LogLevel = "debug" },
		"annotation": func(g *Gardenlet) { g.Deployment.PodAnnotations = map[string]string{"a": "b"} },
		"images":     func(g *Gardenlet) { g.ImageVectorOverwrite = ptr.To("x") },
		"components": func(g *Gardenlet) { g.ComponentImageVectorOverwrite = ptr.To("x") },
	} {
		if of(change) == same {
			t.Errorf("%s: the same checksum", what)
		}
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBootstrapToken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clk := clocktesting.NewFakeClock(now)
	garden := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
	b := &Bootstrapper{Base: &controllerutils.Base{GardenClient: garden, GardenReader: garden, Clock: clk}}
	of := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a"}}
	token := func() string {
		t.Helper()
		token, err := b.bootstrapToken(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	secret := func() *corev1.Secret {
		t.Helper()
		secret := &corev1.Secret{}
		if err := garden.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-4c40cb"}, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	first := token()
	made := secret()
	for key, want := range map[string]string{
		"description": "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/a.",
		"expiration":  now.Add(24 * time.Hour).UTC().Format(time.RFC3339), "token-id": "4c40cb",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
	} {
		if got := string(made.Data[key]); got != want {
			t.Errorf("%s is %q, not %q", key, got, want)
		}
	}
	if made.Type != "bootstrap.kubernetes.io/token" || len(made.Data) != 6 ||
		first != "4c40cb."+string(made.Data["token-secret"]) || len(first) != 23 {
		t.Errorf("%s %v: token of %d characters", made.Type, made.Data, len(first))
	}
	clk.SetTime(now.Add(24*time.Hour - time.Second))
	if token() != first {
		t.Error("a valid token was replaced")
	}
	clk.SetTime(now.Add(24 * time.Hour))
	second := token()
	if second == first || string(secret().Data["expiration"]) != now.Add(48*time.Hour).UTC().Format(time.RFC3339) {
		t.Error("a token that has expired was not replaced")
	}
	other := secret()
	other.Data["description"] = []byte("another one's")
	if err := garden.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if token() == second {
		t.Error("a token for another seed is used")
	}
	if _, err := b.bootstrapToken(t.Context(), made); err == nil {
		t.Error("a token for a Secret")
	}
}

func TestKubeconfig(t *testing.T) {
	b := &Bootstrapper{GardenConfig: &rest.Config{Host: "https://inside", BearerToken: "mine",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), KeyData: []byte("key")}}}
	for address, host := range map[string]string{"": "https://inside", "https://outside": "https://outside"} {
		text, err := b.withToken("theirs", &address)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil || config.Host != host || string(config.CAData) != "ca" || config.BearerToken != "theirs" || len(config.KeyData) > 0 {
			t.Errorf("%q: %+v, %v", address, config, err)
		}
	}
}

func TestTarget(t *testing.T) {
	target := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
	expires := func(want *time.Time) {
		t.Helper()
		got, err := IdentityExpires(t.Context(), target)
		if err != nil || (got == nil) != (want == nil) || got != nil && !got.Equal(*want) {
			t.Errorf("the identity expires at %v, not %v: %v", got, want, err)
		}
	}
	put := func(g *Gardenlet) {
		t.Helper()
		if err := PutBootstrap(t.Context(), target, g); err != nil {
			t.Fatal(err)
		}
	}
	has := func(key client.ObjectKey) (text string) {
		secret := &corev1.Secret{}
		if err := target.Get(t.Context(), key, secret); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return string(secret.Data["kubeconfig"])
	}
	expires(nil)
	put(&Gardenlet{Renew: true})
	if has(bootstrap.BootstrapKubeconfigSecret) != "" {
		t.Error("something was written without a bootstrap kubeconfig")
	}
	put(&Gardenlet{Bootstrap: []byte("one")})
	namespace := &corev1.Namespace{}
	if err := target.Get(t.Context(), client.ObjectKey{Name: "garden"}, namespace); err != nil ||
		namespace.Labels[constants.GardenRole] != "garden" {
		t.Errorf("%v: %v", namespace.Labels, err)
	}

	at := time.Unix(1_800_000_000, 0)
	storeIdentity(t.Context(), t, target, at)
	expires(&at)
	put(&Gardenlet{Bootstrap: []byte("two")})
	expires(&at)
	put(&Gardenlet{Bootstrap: []byte("three"), Renew: true})
	expires(nil)
	if got := has(bootstrap.BootstrapKubeconfigSecret); got != "three" {
		t.Errorf("the bootstrap kubeconfig is %q", got)
	}
}

func storeIdentity(ctx context.Context, t *testing.T, target client.Client, expires time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: "https://garden"}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ClientKeyData: []byte("key"),
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig"},
		Data: map[string][]byte{"kubeconfig": text}}
	if err := target.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
}
