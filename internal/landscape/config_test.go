package landscape

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/usage"
)

func TestBastionTimes(t *testing.T) {
	for name, test := range map[string]struct {
		timeToLive, maxLifetime time.Duration
		wrong                   []string // flags
	}{
		"defaults":  {0, 0, nil},
		"said":      {DefaultBastionTimeToLive, DefaultBastionMaxLifetime, nil},
		"least":     {10 * time.Second, 10 * time.Second, nil},
		"most":      {24 * time.Hour, 720 * time.Hour, nil},
		"too short": {9 * time.Second, 9 * time.Second, []string{"--bastion-time-to-live 9s", "--bastion-max-lifetime 9s"}},
		"too long": {24*time.Hour + time.Second, 720*time.Hour + time.Second,
			[]string{"--bastion-time-to-live", "--bastion-max-lifetime"}},
		"negative":            {-time.Hour, 0, []string{"--bastion-time-to-live -1h0m0s"}},
		"parts of a second":   {0, 2*time.Minute + time.Millisecond, []string{"--bastion-max-lifetime 2m0.001s"}},
		"ends before it ends": {time.Hour, time.Minute, nil},
	} {
		c := Config{Dir: t.TempDir(), Datastore: "memory", BastionTimeToLive: test.timeToLive, BastionMaxLifetime: test.maxLifetime}
		err := c.Complete()
		if len(test.wrong) == 0 && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, flag := range test.wrong {
			if usage := (*usage.Error)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
