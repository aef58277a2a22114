package component

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type lease struct {
	resourcelock.Interface
	holder string
}

func (*lease) Identity() string { return "own" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

// TestOtherLeads checks that a component hears of another holder of its Lease, and not of itself or of a Lease that was released.
func TestOtherLeads(t *testing.T) {
	for holder, reported := range map[string]bool{"other": true, "own": false, "": false} {
		called := false
		lock := &observedLock{&lease{holder: holder}, func() { called = true }}
		if record, _, err := lock.Get(t.Context()); err != nil || record.HolderIdentity != holder || called != reported {
			t.Errorf("held by %q: reported %t, %+v, %v", holder, called, record, err)
		}
	}
}
