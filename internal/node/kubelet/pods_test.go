package kubelet

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
)

// TestReadEventsEndsWithoutReceiver checks that the reader of a watch ends when the Stages have changed, although it holds an
// event that is not received any more.
func TestReadEventsEndsWithoutReceiver(t *testing.T) {
	api := apitest.New(t, clock.RealClock{})
	api.Put(t, podsPath+"/p", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	client, err := (&apiclient.Pool{}).Get(apiclient.Credentials{Server: api.URL, CA: api.CA, Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w, err := client.Watch(t.Context(), podsPath, "metadata.name=p", "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := apiclient.ReadEvents(ctx, w, make(chan apiclient.Event[corev1.Pod])); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
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
