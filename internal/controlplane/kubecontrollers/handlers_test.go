package kubecontrollers

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestHandlersWait checks that the handlers of a controller are not called before the controller has been created, even
// if its informers run.
func TestHandlersWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(
		fake.NewClientset(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}), 0)
	defer factory.Shutdown()
	defer cancel()
	real := factory.Apps().V1().ReplicaSets()
	real.Informer()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())

	h := &handlers{}
	informer := hold(h, real)
	isMade := false // no lock: the race detector finds a call that is too early
	called := make(chan bool, 1)
	registered, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { called <- isMade }})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	if _, err := real.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(seen) }}); err != nil {
		t.Fatal(err)
	}
	<-seen
	isMade = true
	if err := h.add(); err != nil {
		t.Fatal(err)
	}
	if !<-called {
		t.Error("the handler was called before its controller was made")
	}
	testutil.EventuallyTrue(t, "the handler has seen all", registered.HasSynced)
	if all, err := informer.Lister().ReplicaSets("default").Get("a"); err != nil || all == nil {
		t.Errorf("the lister: %v, %v", all, err)
	}
}
