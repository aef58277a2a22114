package seedhost

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
)

// TestSeedClusterOfSameName checks that a cluster can be created with the name of one that was removed, and has none of its
// objects and authorities.
func TestSeedClusterOfSameName(t *testing.T) {
	for name, datastore := range map[string]string{"embedded": "sqlite", "external": datastoretest.StartEtcd(t)} {
		t.Run(name, func(t *testing.T) {
			h := &Host{cfg: Config{Name: "x", Dir: t.TempDir(), BindAddress: "127.0.0.1", Datastore: datastore, Status: &control.Store{},
				Clock: clock.RealClock{}}}
			var authority []byte
			for range 2 {
				cluster, err := h.startSeedCluster(t.Context(), "m", 0)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(cluster.AdminConfig().CAData, authority) {
					t.Error("the cluster has the authority of the removed one")
				}
				authority = cluster.AdminConfig().CAData
				c, err := newClient(cluster.AdminConfig())
				if err != nil {
					t.Fatal(err)
				}
				object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "x"}}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
					t.Errorf("reading an object of the removed cluster: %v", err)
				}
				if err := c.Create(t.Context(), object); err != nil {
					t.Error(err)
				}
				if err := h.removeSeedCluster(t.Context(), "m", cluster); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
