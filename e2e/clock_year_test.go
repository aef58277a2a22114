package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestClockYear advances two seeds, five Shoots and a Bastion by a year, or a few days if it does not soak.
func TestClockYear(t *testing.T) {
	t.Parallel()
	days := 2
	if testutil.Soaking() {
		days = 365
	}
	l := newLandscape(t, "--seeds", "2")
	y := &year{l: l, recorded: map[string][]shootState{}}
	for n := range 5 { // the first rotates its keys, the last one sleeps
		var changes []func(spec map[string]any)
		switch n {
		case 0:
			changes = append(changes, rotates("168h"))
		case 4:
			changes = append(changes, sleeps)
		}
		y.newShoot(t, n, changes...)
	}
	for _, s := range y.shoots {
		s.waitForSucceeded(t)
		s.healthy(t)
	}
	bastion := y.shoots[0].newBastion(t, "ends", "127.0.0.0/8")
	day := l.clock(t).Now.Add(48 * time.Hour).Truncate(24 * time.Hour)
	l.setClock(t, day.Add(-11*time.Hour)) // all are awake, as at the end
	for _, s := range y.shoots {
		s.healthy(t)
	}
	y.record(t)
	begin := time.Now()
	var taken []footprint
	for done := 0; done < days; {
		step := min(7, days-done, (days+1)/2) // a command has a limit
		gardenlite(t, l.dir, "clock", "advance", fmt.Sprintf("%dd", step)).OK(t)
		done += step
		taken = append(taken, l.footprint(t))
		t.Logf("%d days after %s, %+v", done, time.Since(begin).Round(time.Second), taken[len(taken)-1])
	}
	t.Logf("%d days in %s", days, time.Since(begin).Round(time.Second))
	y.check(t, day, days)

	if _, err := l.at("bastions", shootNamespace).Get(t.Context(), bastion.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Bastion: %v", err)
	}
	for _, s := range y.shoots {
		s.waitForSucceeded(t)
		s.healthy(t)
		if err := asks(t, s.admin(t)); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if r := y.shoots[0].ssh(t, "--", "hostname").OK(t); !strings.Contains(r.Stdout, y.shoots[0].id()) {
		t.Errorf("ssh: %s", r.Stdout)
	}
	first, last := least(taken[:len(taken)/2]), least(taken[len(taken)/2:])
	if last.goroutines > first.goroutines*11/10 || last.heap > first.heap*5/4 {
		t.Errorf("there were %+v, and are %+v", first, last)
	}
}

type year struct {
	l      *landscape
	shoots []*shoot

	mu       sync.Mutex
	recorded map[string][]shootState // by name
}

// shootState is what a Shoot says of itself at a moment.
type shootState struct {
	operation, state, at     string
	hibernation, keyRotation string
	encryptionRotation       string   // each new Shoot has one every 28 days
	failure                  string   // what an Error says
	ill                      []string // conditions that are not True although nothing goes on
}

// newShoot creates a Shoot with a node, which has its maintenance at an hour of its own.
func (y *year) newShoot(t *testing.T, n int, changes ...func(spec map[string]any)) {
	y.shoots = append(y.shoots, y.l.newShoot(t, string(rune('a'+n)), func(spec map[string]any) {
		spec["seedName"] = y.l.names[n%len(y.l.names)]
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = 1, 1
		spec["maintenance"] = map[string]any{
			"timeWindow": map[string]any{"begin": fmt.Sprintf("%02d0000+0000", 8+n), "end": fmt.Sprintf("%02d0000+0000", 9+n)},
			"autoUpdate": map[string]any{"kubernetesVersion": false, "machineImageVersion": false},
		}
		for _, change := range changes {
			change(spec)
		}
	}))
}

// rotates has the SSH keys of a Shoot rotated in its maintenances.
func rotates(period string) func(spec map[string]any) {
	return func(spec map[string]any) {
		spec["maintenance"].(map[string]any)["autoRotation"] = map[string]any{
			"credentials": map[string]any{"sshKeypair": map[string]any{"rotationPeriod": period}}}
	}
}

// sleeps hibernates a Shoot at night.
func sleeps(spec map[string]any) {
	spec["hibernation"] = map[string]any{"schedules": []any{map[string]any{"start": "0 20 * * *", "end": "0 6 * * *"}}}
}

// statePoll is how often the states are read: an advance leaves each for longer. A watch is slow to come back when the process is killed.
const statePoll = 20 * time.Millisecond

// record records the states of the Shoots from now on.
func (y *year) record(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	look := func() error {
		shoots, err := y.l.at("shoots", shootNamespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range shoots.Items {
				y.keep(&shoots.Items[i])
			}
		}
		return err
	}
	must(t, look())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	group.Go(func() {
		for ctx.Err() == nil {
			_ = look() // it fails while the process is killed
			<-time.After(statePoll)
		}
	})
}

// keep records the state of a Shoot if it is another one.
func (y *year) keep(shoot *unstructured.Unstructured) {
	state := shootState{}
	state.operation, state.state, _ = lastOperation(shoot)
	state.at, _, _ = unstructured.NestedString(shoot.Object, "status", "lastOperation", "lastUpdateTime")
	if state.state == "Error" {
		state.failure, _, _ = unstructured.NestedString(shoot.Object, "status", "lastOperation", "description")
	}
	state.hibernation, _, _ = unstructured.NestedString(shoot.Object, "status", "lastHibernationTriggerTime")
	state.keyRotation, _, _ = unstructured.NestedString(shoot.Object, "status", "credentials", "rotation", "sshKeypair", "lastInitiationTime")
	state.encryptionRotation, _, _ = unstructured.NestedString(shoot.Object,
		"status", "credentials", "rotation", "etcdEncryptionKey", "lastInitiationTime")
	conditions, _, _ := unstructured.NestedSlice(shoot.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["status"] != "True" && state.state == "Succeeded" {
			state.ill = append(state.ill, fmt.Sprint(c["type"], " is ", c["status"], ": ", c["message"]))
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	before := y.recorded[shoot.GetName()]
	if len(before) == 0 || !reflect.DeepEqual(before[len(before)-1], state) {
		y.recorded[shoot.GetName()] = append(before, state)
	}
}

// check checks what has been recorded: what was due has happened once, in its order and in its time.
func (y *year) check(t *testing.T, day time.Time, days int) {
	t.Helper()
	for n, s := range y.shoots {
		y.mu.Lock()
		states := slices.Clone(y.recorded[s.name])
		y.mu.Unlock()
		perDay, rotations := y.maintained(t, s, n, day)
		last := ""
		for _, state := range states {
			if state.at < last {
				t.Errorf("%s: what was done at %s follows what was done at %s", s.name, state.at, last)
			}
			last = state.at
			// A rotation of the encryption key restarts the API server.
			if d, _ := dayOfWindow(parse(t, state.at).Sub(day), n); len(state.ill) > 0 && rotations[d] < ofEncryptionKey {
				t.Errorf("%s, after %s %s at %s: %s", s.name, state.operation, state.state, state.at, strings.Join(state.ill, "; "))
			}
		}
		for d := range days {
			if perDay[d] < 1 || perDay[d] > 1+rotations[d] {
				t.Errorf("%s: %d reconciliations in the maintenance of day %d: %+v", s.name, perDay[d], d, y.onDay(t, s, day, d))
			}
		}
		hibernations, keyRotations := y.triggered(t, s)
		if n == 4 {
			checkNights(t, s, hibernations, day, day.Add(time.Duration(days)*24*time.Hour-11*time.Hour))
		} else if len(hibernations) > 0 {
			t.Errorf("%s has hibernated and woken up: %v", s.name, hibernations)
		}
		if n == 0 {
			checkPeriods(t, s, keyRotations, 7*24*time.Hour)
			if len(keyRotations) < days/8 {
				t.Errorf("the keys of %s have been rotated %d times: %v", s.name, len(keyRotations), keyRotations)
			}
		} else if len(keyRotations) > 0 {
			t.Errorf("the keys of %s have been rotated: %v", s.name, keyRotations)
		}
	}
}

// triggered returns when a Shoot was hibernated or woken up, and when a rotation of its SSH keys was initiated.
func (y *year) triggered(t *testing.T, s *shoot) (hibernations, keyRotations []time.Time) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	add := func(times []time.Time, text string) []time.Time {
		if text == "" {
			return times
		}
		at := parse(t, text)
		if len(times) > 0 && times[len(times)-1].Equal(at) {
			return times
		}
		return append(times, at)
	}
	for _, state := range y.recorded[s.name] {
		hibernations, keyRotations = add(hibernations, state.hibernation), add(keyRotations, state.keyRotation)
	}
	return hibernations, keyRotations
}

// checkNights checks that a Shoot that sleeps was woken up and hibernated once each day.
func checkNights(t *testing.T, s *shoot, hibernations []time.Time, day, end time.Time) {
	t.Helper()
	for due, wait := day.Add(6*time.Hour), 14*time.Hour; due.Before(end); due, wait = due.Add(wait), 24*time.Hour-wait {
		times := 0
		for _, at := range hibernations {
			if late := at.Sub(due); late >= 0 && late < 2*time.Hour { // as long as a schedule is due
				times++
			}
		}
		if times != 1 {
			t.Errorf("%s has hibernated or woken up %d times when it was due at %s: %v", s.name, times, due, hibernations)
		}
	}
}

// checkPeriods checks that each rotation followed the one before in the first maintenance after the period.
func checkPeriods(t *testing.T, s *shoot, rotations []time.Time, period time.Duration) {
	t.Helper()
	for i := range rotations[min(1, len(rotations)):] {
		if after := rotations[i+1].Sub(rotations[i]); after < period || after > period+25*time.Hour {
			t.Errorf("the keys of %s were rotated after %s: %v", s.name, after, rotations)
		}
	}
}

// Rotations are further reconciliations in a maintenance: one of the SSH keys, two of the encryption key of etcd.
const ofKeys, ofEncryptionKey = 1, 2

// maintained returns how many reconciliations have begun in the maintenance of each day, and how many of them rotations may be.
func (y *year) maintained(t *testing.T, s *shoot, n int, day time.Time) (perDay, rotations map[int]int) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	perDay, rotations = map[int]int{}, map[int]int{}
	states := y.recorded[s.name]
	for i := range states[min(1, len(states)):] {
		before, state := states[i], states[i+1]
		at := parse(t, state.at)
		// One that was over between two looks, or of which only the begin or the end was seen, has another time. After an Error the same
		// operation goes on.
		begins := state.operation == "Reconcile" && (at.Sub(parse(t, before.at)) > time.Hour ||
			before.state == "Succeeded" && (state.state == "Processing" || state.at != before.at))
		if d, in := dayOfWindow(at.Sub(day), n); begins && in {
			perDay[d]++
		}
		if state.keyRotation != before.keyRotation {
			d, _ := dayOfWindow(parse(t, state.keyRotation).Sub(day), n)
			rotations[d] += ofKeys
		}
		if state.encryptionRotation != before.encryptionRotation {
			d, _ := dayOfWindow(parse(t, state.encryptionRotation).Sub(day), n)
			rotations[d] += ofEncryptionKey
		}
	}
	return perDay, rotations
}

// onDay returns what was recorded on a day.
func (y *year) onDay(t *testing.T, s *shoot, day time.Time, d int) (states []shootState) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, state := range y.recorded[s.name] {
		if int(parse(t, state.at).Sub(day)/(24*time.Hour)) == d {
			states = append(states, state)
		}
	}
	return states
}

func parse(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return at
}

// dayOfWindow returns the day of a time, and whether it is in the maintenance of a Shoot.
func dayOfWindow(since time.Duration, n int) (day int, in bool) {
	hour := since % (24 * time.Hour)
	return int(since / (24 * time.Hour)), hour >= time.Duration(8+n)*time.Hour && hour < time.Duration(9+n)*time.Hour
}

type footprint struct{ goroutines, heap int }

// least returns the least that was taken: watch caches keep what has changed in the last minutes, more or less of it.
func least(taken []footprint) footprint {
	all := taken[0]
	for _, f := range taken {
		all.goroutines, all.heap = min(all.goroutines, f.goroutines), min(all.heap, f.heap)
	}
	return all
}

// footprint returns what the process takes after a garbage collection.
func (l *landscape) footprint(t *testing.T) footprint {
	t.Helper()
	var status struct {
		Goroutines int
		Memory     struct{ LiveHeap int }
	}
	must(t, json.Unmarshal([]byte(gardenlite(t, l.dir, "status", "--collect-garbage", "-o", "json").OK(t).Stdout), &status))
	return footprint{status.Goroutines, status.Memory.LiveHeap}
}
