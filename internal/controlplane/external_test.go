//go:build soak

package controlplane

import (
	"errors"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// TestDatastoresOfClusters runs two clusters at one endpoint, each with its own prefix, and restarts one.
func TestDatastoresOfClusters(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) string{"PostgreSQL": datastoretest.StartPostgreSQL, "etcd": datastoretest.StartEtcd} {
		t.Run(name, func(t *testing.T) {
			endpoint := begin(t)
			dir := t.TempDir()
			config := func(cluster string) Config {
				return Config{Name: cluster, PKIDir: filepath.Join(dir, cluster, "pki"), DataDir: filepath.Join(dir, cluster, "data"),
					Datastore: endpoint, Prefix: "/gardenlite/test/" + cluster}
			}
			one, two := start(t, config("one")), start(t, config("two"))
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
			if _, err := adminClient(t, one).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := adminClient(t, two).CoreV1().ConfigMaps("default").Get(
				t.Context(), cm.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("a ConfigMap of one cluster is seen in the other: %v", err)
			}
			if err := one.Stop(); err != nil {
				t.Fatal(err)
			}
			again := start(t, config("one"))
			if _, err := adminClient(t, again).CoreV1().ConfigMaps("default").Get(t.Context(), cm.Name, metav1.GetOptions{}); err != nil {
				t.Errorf("after a restart: %v", err)
			}
		})
	}
}

// TestDatastoresTwoProcessesAreOneCluster runs a cluster twice on one datastore, as two processes would: each accepts the client
// certificates and the service account tokens of the other one.
func TestDatastoresTwoProcessesAreOneCluster(t *testing.T) {
	endpoint := datastoretest.StartEtcd(t)
	dir := t.TempDir()
	config := func(process string) Config {
		return Config{Name: "one", PKIDir: filepath.Join(dir, process, "pki"), DataDir: filepath.Join(dir, process, "data"),
			Datastore: endpoint, Prefix: "/gardenlite/test/one"}
	}
	first, second := start(t, config("first")), start(t, config("second"))
	if string(first.PKI().CAPEM()) != string(second.PKI().CAPEM()) {
		t.Error("they have different authorities")
	}
	client, err := first.ClientConfig("admin", "alice", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client.Host = second.URL()
	other, err := kubernetes.NewForConfig(client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.CoreV1().ServiceAccounts("default").Create(
		t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("a client of the first at the second: %v", err)
	}
	token, err := other.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "x", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	review, err = adminClient(t, first).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		t.Errorf("a token of the second at the first: %+v, %v", review.Status, err)
	}
}

// TestDatastoresThatEnd checks what clients are told when the database has ended: 503, without its address and user.
func TestDatastoresThatEnd(t *testing.T) {
	endpoint, stop := datastoretest.PostgreSQL(t)
	dir := t.TempDir()
	server := start(t, Config{Name: "one", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"), Datastore: endpoint,
		Prefix: "/gardenlite/test/one"})
	if err := server.CheckDatastore(t.Context()); err != nil {
		t.Error(err)
	}
	stop()
	if err := server.CheckDatastore(t.Context()); !errors.Is(err, datastore.ErrNoAnswer) {
		t.Errorf("CheckDatastore: %v", err)
	}
	client := adminClient(t, server).CoreV1()
	_, getErr := client.Secrets("default").Get(t.Context(), "x", metav1.GetOptions{})
	_, listErr := client.Endpoints("default").List(t.Context(), metav1.ListOptions{})
	_, createErr := client.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{})
	deleteErr := client.Namespaces().Delete(t.Context(), "default", metav1.DeleteOptions{})
	for verb, err := range map[string]error{"get": getErr, "list": listErr, "create": createErr, "delete": deleteErr} {
		if !apierrors.IsServiceUnavailable(err) || err.Error() != "the datastore does not answer" {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
