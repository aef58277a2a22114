package controlplane

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// lateStorage stores an object after the request for it has timed out.
type lateStorage struct{ storage.Interface }

func (lateStorage) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return context.DeadlineExceeded
}

// TestCreationThatTimesOut checks that the controllers of a resource start although the request for its first object timed
// out, because the object may be stored.
func TestCreationThatTimesOut(t *testing.T) {
	var usage occupancy
	use := usage.of(schema.GroupResource{Group: "apps", Resource: "deployments"}, "/registry/deployments/")
	woken := false
	use.waiters = append(use.waiters, &waiter{wake: func() { woken = true }})
	_ = (&recording{lateStorage{}, &usage, use}).Create(t.Context(), "/deployments/default/web", nil, nil, 0)
	if !woken {
		t.Error("the controllers do not start")
	}
}
