package seedhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// all selects each component.
func all(string) bool { return true }

// TestBootstrapKubeconfigOfAnotherGarden checks that a gardenlet with the certificate of a garden refuses a bootstrap
// kubeconfig of another one.
func TestBootstrapKubeconfigOfAnotherGarden(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const kept, moved, other = "https://192.0.2.1:443", "https://192.0.2.1:6443", "https://192.0.2.2:443"
	h := &Host{cfg: Config{Name: "x", Dir: t.TempDir(), BindAddress: "127.0.0.1", Status: &control.Store{}, Clock: clock.RealClock{},
		Selects: all}}
	cluster, err := h.startSeedCluster(t.Context(), "a", 0, 0)
	must(err)
	defer cluster.Stop()
	c, err := newClient(cluster.AdminConfig())
	must(err)

	bootstrapKubeconfig := filepath.Join(t.TempDir(), "bootstrap.kubeconfig")
	check := func(server string, ca []byte) error {
		data, err := controllerutils.Kubeconfig(&rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, "a",
			&clientcmdapi.AuthInfo{Token: "4c40cb.0123456789abcdef"})
		must(err)
		must(os.WriteFile(bootstrapKubeconfig, data, 0o600))
		return h.checkGarden(t.Context(), cluster, bootstrapKubeconfig)
	}
	gardenCA := cluster.Server().PKI().CAPEM() // the seed's stands for the garden's
	otherCA, _, err := certutil.GenerateSelfSignedCertKey("other", nil, nil)
	must(err)
	must(check(other, otherCA)) // there is no certificate yet

	cert, key, err := cluster.Server().PKI().Issue("gardener.cloud:system:seed:a", []string{"gardener.cloud:system:seeds"}, time.Hour)
	must(err)
	data, err := controllerutils.Kubeconfig(&rest.Config{Host: kept, TLSClientConfig: rest.TLSClientConfig{CAData: gardenCA}}, "a",
		&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	must(err)
	name := bootstrap.KubeconfigSecret
	_ = c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name.Namespace}}) // it may exist
	must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Data: map[string][]byte{"kubeconfig": data}}))

	must(check(moved, gardenCA))
	err = check(other, otherCA)
	for _, part := range []string{bootstrapKubeconfig, other, kept, h.cfg.Dir, "--data-dir"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	h.cfg.Datastore = "etcd://192.0.2.3:2379"
	if err := check(other, otherCA); err == nil || !strings.Contains(err.Error(), "another --datastore") {
		t.Errorf("with the data elsewhere: %v", err)
	}
}
