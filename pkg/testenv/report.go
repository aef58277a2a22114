package testenv

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/control"
)

// reportTimeout is how long a report waits for the garden.
const reportTimeout = 10 * time.Second

// optionNames replaces the flags in errors by the options of this package.
var optionNames = strings.NewReplacer("--seeds", "WithSeeds", "--bare", "WithBareGarden", "--controllers", "WithControllers",
	"--enable-admission-plugins", "WithAdmissionPlugins", "--disable-admission-plugins", "WithAdmissionPlugins",
	"--feature-gates", "WithFeatureGates", "--datastore", "WithDatastore",
	"--run-image", "WithImage", "--ready-timeout", "WithReadyTimeout", "--seed-authorizer-reads", "WithAllReads", "--name", "WithExisting",
	"--data-dir", "the directory for temporary files")

// startError is an error of New, with other words.
type startError struct {
	err  error
	text string
}

func (e *startError) Error() string { return e.text }

func (e *startError) Unwrap() error { return e.err }

// Report describes why a test may have failed: Shoots that are not ready, and the end of the log, which is kept. Start
// prints it, so it is for callers of New.
func (e *Env) Report() string {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	text := "the landscape of the test that failed:"
	shoots, err := e.shoots.List(ctx)
	if err != nil {
		text += "\n" + err.Error()
	}
	for _, s := range shoots {
		if !s.Ready {
			text += fmt.Sprintf("\nShoot %s/%s on seed %q: %s: %s", s.Project, s.Name, s.Seed, s.State, s.Message)
		}
	}
	return text + e.endOfLog()
}

// endOfLog returns the end of the log, and where it is. The log of the test's own landscape is kept.
func (e *Env) endOfLog() string {
	if e.log == "" && e.ownsDir {
		e.log = control.KeepLog(e.dir)
	}
	if e.log == "" {
		return "" // there is none yet, or it is that of a landscape which runs on
	}
	return fmt.Sprintf("\nthe log is kept in %s, the end of it:\n%s", e.log, control.EndOfLog(e.log))
}
