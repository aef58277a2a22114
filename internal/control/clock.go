package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gardenlite/gardenlite/internal/usage"
)

// ClockPath is the path of the clock on the control socket.
const ClockPath = "/clock"

// Clock says how the clock of a landscape goes.
type Clock struct {
	Now time.Time `json:"now"`
	// Ahead is how far it is ahead of the real clock, in nanoseconds.
	Ahead time.Duration `json:"ahead"`
	// Rate is how many seconds pass in a real one: 1 as usual, 0 if the clock stands still.
	Rate float64 `json:"rate"`
	// Next is when something is due next: the end of a Bastion, a maintenance, a time of a hibernation schedule, the end of a Shoot.
	Next *time.Time `json:"next,omitempty"`
}

// ClockChange moves a clock to a time or by a duration, step by step or at once, or sets its rate.
type ClockChange struct {
	To     *time.Time    `json:"to,omitempty"`
	By     time.Duration `json:"by,omitempty"`
	AtOnce bool          `json:"atOnce,omitempty"`
	Rate   *float64      `json:"rate,omitempty"`
}

// clockProgress is a line of the answer to a ClockChange: a step, or the end of all.
type clockProgress struct {
	At    *time.Time `json:"at,omitempty"`
	Done  bool       `json:"done,omitempty"`
	Error string     `json:"error,omitempty"`
}

// ClockHandler serves the clock.
func ClockHandler(state func() (Clock, error), change func(context.Context, ClockChange, func(time.Time)) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ClockPath, func(w http.ResponseWriter, _ *http.Request) {
		now, err := state()
		if err != nil {
			refuse(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(now)
	})
	mux.HandleFunc("POST "+ClockPath, func(w http.ResponseWriter, r *http.Request) {
		wanted := ClockChange{}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&wanted); err != nil {
			refuse(w, usage.Errorf("reading the change: %v", err))
			return
		}
		lines, begun := json.NewEncoder(w), false
		err := change(r.Context(), wanted, func(at time.Time) {
			begun = true
			_ = lines.Encode(clockProgress{At: &at})
			_ = http.NewResponseController(w).Flush()
		})
		switch {
		case err == nil:
			_ = lines.Encode(clockProgress{Done: true})
		case begun:
			_ = lines.Encode(clockProgress{Error: err.Error()})
		default:
			refuse(w, err)
		}
	})
	return mux
}

// Clock returns how the clock goes.
func (c *Client) Clock(ctx context.Context) (*Clock, error) {
	body, err := c.Call(ctx, http.MethodGet, ClockPath, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	clock := &Clock{}
	if err := json.NewDecoder(body).Decode(clock); err != nil {
		return nil, fmt.Errorf("reading the landscape's clock: %w", err)
	}
	return clock, nil
}

// ChangeClock changes the clock. It returns when all that became due on the way has happened, and calls passed after each step.
func (c *Client) ChangeClock(ctx context.Context, change ClockChange, passed func(time.Time)) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	body, err := c.Call(ctx, http.MethodPost, ClockPath, data)
	if err != nil {
		return err
	}
	defer body.Close()
	for lines := json.NewDecoder(body); ; {
		line := clockProgress{}
		switch err := lines.Decode(&line); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("the landscape has ended while its clock was advanced: start it again, and the clock goes on where it was")
		case err != nil:
			return fmt.Errorf("reading how far the clock is: %w", err)
		case line.Error != "":
			return errors.New(line.Error)
		case line.Done:
			return nil
		}
		passed(*line.At)
	}
}
