package control

import (
	"context"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

const (
	// FormerTimeout is how long a start waits for the process that held the landscape before.
	FormerTimeout = time.Minute
	// formerSilence is how long that process may not answer until it counts as ending: a new one does not answer at once.
	formerSilence = time.Second
	formerPoll    = 50 * time.Millisecond
	// answerTimeout is how long a process may take to answer.
	answerTimeout = 5 * time.Second
)

// AwaitFormer waits while a process holds the landscape that is stopping, or that does not answer, as one that was
// killed. It reports whether the landscape is free; if not, a process runs it. It calls waiting, once, when it begins
// to wait.
func AwaitFormer(ctx context.Context, dir string, waiting func()) (free bool, err error) {
	begin, waits := time.Now(), false
	ticker := time.NewTicker(formerPoll)
	defer ticker.Stop()
	for {
		if isHeld, err := statedir.IsHeld(dir); err != nil || !isHeld {
			return !isHeld, err
		}
		state := stateOf(ctx, dir)
		switch {
		case state != "" && state != StateStopping:
			return false, nil
		case waits, state == "" && time.Since(begin) < formerSilence:
		default:
			waits = true
			waiting()
		}
		if time.Since(begin) > FormerTimeout {
			return false, fmt.Errorf("the former process of this landscape has not ended within %s: end it, and start again",
				FormerTimeout)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-ticker.C:
		}
	}
}

// stateOf returns the state that the process tells that holds a landscape, "" if it does not answer.
func stateOf(ctx context.Context, dir string) string {
	run, err := statedir.ReadRun(dir)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client := clientOf(run)
	defer client.http.CloseIdleConnections()
	status, err := client.Status(ctx, false)
	if err != nil {
		return ""
	}
	return status.State
}
