package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestWatchEndsWithoutReceiver checks that the reader of a watch ends when the Stages have changed, although it holds
// an event that is not received any more.
func TestWatchEndsWithoutReceiver(t *testing.T) {
	api := apitest.New(t, clock.RealClock{})
	api.Put(t, "/api/v1/pods/p", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	client, err := apiclient.New(apiclient.Credentials{Server: api.URL, CA: api.CA, Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pods := client.Core.Pods(metav1.NamespaceAll)
	if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	ended := testutil.Goroutines(t) // besides those of the connection
	w, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=p"})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	ended(testutil.Timeout)
}

// TestKeepEndsMissingPods checks that a Pod that was deleted while the kubelet did not watch has ended, so that the requests
// that follow its log end as well.
func TestKeepEndsMissingPods(t *testing.T) {
	stays, goes := pod("stays"), pod("goes")
	running := &runningPods{}
	running.set(keyOf(stays), true)
	running.set(keyOf(goes), true)
	ended, runs := running.ended(keyOf(goes)), running.ended(keyOf(stays))
	running.keep([]corev1.Pod{*stays})
	select {
	case <-ended:
	default:
		t.Error("the Pod that is gone has not ended")
	}
	select {
	case <-runs:
		t.Error("the Pod that stays has ended")
	default:
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}
