package shootsecrets

import (
	"bytes"
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkerPoolRollouts is the name of the Secret that says for which worker pools a user has last requested a rollout, and
// when. There is nothing secret in it: it has to travel with the shoot, or its machines would be made new once more.
const WorkerPoolRollouts = "worker-pool-rollouts"

// Rollouts stores the rollouts that users have requested, with the new ones, and returns all: by
// the names of the pools, when in seconds since 1970. Pools that are not there any more are forgotten.
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
