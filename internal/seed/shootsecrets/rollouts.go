package shootsecrets

import (
	"bytes"
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkerPoolRollouts is the name of the Secret that records when a user last requested a rollout of each worker pool. The
// data is not secret, but is part of the ShootState: otherwise a migration would replace the machines again.
const WorkerPoolRollouts = "worker-pool-rollouts"

// Rollouts adds newly requested rollouts to the stored ones, and returns all: the time of the request in seconds since 1970
// by the name of the pool. It drops pools that do not exist any more.
func (m *Manager) Rollouts(ctx context.Context, pools []string, asked map[string]metav1.Time) (map[string]string, error) {
	known, err := m.read(ctx, WorkerPoolRollouts)
	if err != nil || known == nil && len(asked) == 0 {
		return nil, err
	}
	var before map[string][]byte
	if known != nil {
		before = known.Data
	}
	data, all := map[string][]byte{}, map[string]string{}
	for _, pool := range pools {
		if at, is := asked[pool]; is {
			data[pool] = []byte(unix(at))
		} else if at, is := before[pool]; is {
			data[pool] = at
		}
		if at, is := data[pool]; is {
			all[pool] = string(at)
		}
	}
	switch {
	case known != nil && maps.EqualFunc(before, data, bytes.Equal):
		return all, nil
	case len(data) == 0:
		return all, m.remove(ctx, WorkerPoolRollouts)
	}
	_, err = m.write(ctx, WorkerPoolRollouts, data, nil)
	return all, err
}
