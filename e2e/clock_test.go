package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// TestClock: after ten years, everything is usable for clients with the real clock, and what has expired says so. What is due happens in
// its order.
func TestClock(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	kubeconfig := gardenlite(t, l.dir, "kubeconfig", "--user", "me", "--group", "system:masters").OK(t).Stdout
	old, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	must(t, err)

	begin := l.clock(t).Now
	gardenlite(t, l.dir, "clock", "advance", "3650d").OK(t)
	if now := l.clock(t); now.Now.Sub(begin) < 3650*24*time.Hour || now.Ahead < 3649*24*time.Hour {
		t.Errorf("it was %s, and is %s, %s ahead", begin, now.Now, now.Ahead)
	}
	l.connect(t)
	for _, project := range []string{"garden", "dev"} { // unused ones would be deleted after three months
		if p, err := l.at("projects", "").Get(t.Context(), project, metav1.GetOptions{}); err != nil || p.GetDeletionTimestamp() != nil {
			t.Errorf("the project %s after ten years: %v", project, err)
		}
	}
	if err := asks(t, old); !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "has expired at") {
		t.Errorf("a kubeconfig of ten years ago: %v", err)
	}

	s := l.newShoot(t, "one", nil)
	s.waitForSucceeded(t)
	s.healthy(t)
	if r := s.ssh(t, "--", "hostname").OK(t); !strings.Contains(r.Stdout, s.id()) {
		t.Errorf("ssh: %s", r.Stdout)
	}
	old = s.admin(t)
	if err := asks(t, old); err != nil {
		t.Errorf("a new kubeconfig of the Shoot: %v", err)
	}
	s.hibernatesAndWakes(t)
	if err := asks(t, old); !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "has expired at") {
		t.Errorf("a kubeconfig of the Shoot, a day later: %v", err)
	}
	s.maintains(t)
	s.healthy(t)
	l.neverGoesBack(t)
}

type clockState struct {
	Now   time.Time
	Ahead time.Duration
	Rate  float64
}

func (l *landscape) clock(t *testing.T) (now clockState) {
	t.Helper()
	must(t, json.Unmarshal([]byte(gardenlite(t, l.dir, "clock", "-o", "json").OK(t).Stdout), &now))
	return now
}

func (l *landscape) setClock(t *testing.T, to time.Time) {
	t.Helper()
	gardenlite(t, l.dir, "clock", "set", to.Format(time.RFC3339)).OK(t)
}

// hibernatesAndWakes: a Bastion ends, its Shoot hibernates, and it wakes up, each at its time.
func (s *shoot) hibernatesAndWakes(t *testing.T) {
	day := s.l.clock(t).Now.Add(24 * time.Hour).Truncate(24 * time.Hour)
	s.l.setClock(t, day.Add(9*time.Hour))
	s.patch(t, `{"spec":{"hibernation":{"schedules":[{"start":"0 12 * * *","end":"0 14 * * *"}]}}}`)
	s.waitForSucceeded(t)
	bastion := s.newBastion(t, "ends", "127.0.0.1/32")
	bastion.ready(t)
	for _, step := range []struct {
		hour       int
		bastion    bool
		hibernated bool
		triggered  string
	}{{9, true, false, ""}, {11, false, false, ""}, {13, false, true, "T12:00"}, {15, false, false, "T14:00"}} {
		s.l.setClock(t, day.Add(time.Duration(step.hour)*time.Hour+30*time.Minute))
		obj := s.must(t)
		hibernated, _, _ := unstructured.NestedBool(obj.Object, "status", "hibernated")
		triggered, _, _ := unstructured.NestedString(obj.Object, "status", "lastHibernationTriggerTime")
		if hibernated != step.hibernated || !strings.Contains(triggered, step.triggered) || (triggered == "") != (step.triggered == "") {
			t.Errorf("at %d:30, hibernated is %v, triggered at %q", step.hour, hibernated, triggered)
		}
		_, err := s.l.at("bastions", shootNamespace).Get(t.Context(), bastion.name, metav1.GetOptions{})
		if gone := apierrors.IsNotFound(err); gone == step.bastion {
			t.Errorf("at %d:30, the Bastion: %v", step.hour, err)
		}
	}
	s.patch(t, `{"spec":{"hibernation":{"schedules":null}}}`)
	s.waitForSucceeded(t)
}

// maintains: the Shoot is reconciled in the maintenance window of each day.
func (s *shoot) maintains(t *testing.T) {
	s.patch(t, `{"spec":{"maintenance":{"timeWindow":{"begin":"200000+0000","end":"210000+0000"}}}}`)
	s.waitForSucceeded(t)
	day := s.l.clock(t).Now.Truncate(24 * time.Hour)
	for i := range 3 {
		day := day.Add(time.Duration(i) * 24 * time.Hour)
		s.l.setClock(t, day.Add(21*time.Hour)) // no other reconciliation is due yet
		at, _, _ := unstructured.NestedString(s.must(t).Object, "status", "lastOperation", "lastUpdateTime")
		if at, err := time.Parse(time.RFC3339, at); err != nil || at.Before(day.Add(20*time.Hour)) || at.After(day.Add(21*time.Hour+5*time.Minute)) {
			t.Errorf("on day %d, the Shoot was reconciled at %s", i, at)
		}
	}
	end := day.Add(71 * time.Hour) // regular reconciliations are due since an hour
	s.l.setClock(t, end)
	at, _, _ := unstructured.NestedString(s.must(t).Object, "status", "lastOperation", "lastUpdateTime")
	if at, err := time.Parse(time.RFC3339, at); err != nil || at.Before(end) {
		t.Errorf("it is %s, and the Shoot was reconciled at %s", end, at)
	}
}

// neverGoesBack: the clock goes on after a kill and can be stopped, and is not set back.
func (l *landscape) neverGoesBack(t *testing.T) {
	before := l.clock(t).Now
	l.kill()
	l.up(t)
	after := l.clock(t).Now
	if after.Before(before) {
		t.Errorf("it was %s, and is %s after a restart", before, after)
	}
	r := gardenlite(t, l.dir, "clock", "set", before.Add(-time.Hour).Format(time.RFC3339))
	if r.Code != 2 || !strings.Contains(r.Stderr, "does not go back") {
		t.Errorf("set back: %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, l.dir, "clock", "freeze").OK(t)
	stands := l.clock(t)
	if now := l.clock(t); !now.Now.Equal(stands.Now) || now.Rate != 0 {
		t.Errorf("it stands at %s, and is %s with the rate %g", stands.Now, now.Now, now.Rate)
	}
	gardenlite(t, l.dir, "clock", "rate", "60").OK(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if passed := l.clock(t).Now.Sub(stands.Now); passed < time.Minute {
			return fmt.Errorf("only %s have passed", passed)
		}
		return nil
	})
	gardenlite(t, l.dir, "clock", "run").OK(t)
}
