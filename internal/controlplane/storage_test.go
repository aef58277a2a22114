package controlplane

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

// TestBookmarksOnlyOnRequest checks that a watch of a resource without a watch cache, such as Events, receives no
// bookmarks when a consistent list makes the watch cache of another resource request the progress of the datastore.
func TestBookmarksOnlyOnRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	dir := t.TempDir()
	server := start(t, Config{Name: "test", PKIDir: dir + "/pki", DataDir: dir + "/data", Datastore: datastore.Memory})
	config, err := server.ClientConfig("admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	events, configMaps := client.CoreV1().Events("default"), client.CoreV1().ConfigMaps("default")
	watched, err := events.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	for i := range 200 {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", i)}}
		if _, err := configMaps.Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := configMaps.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Name: "e", Namespace: "default"}
	if _, err := events.Create(t.Context(), &corev1.Event{ObjectMeta: meta, InvolvedObject: corev1.ObjectReference{Namespace: "default"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if first := <-watched.ResultChan(); first.Type != watch.Added {
		t.Errorf("the first event is %s", first.Type)
	}
}
