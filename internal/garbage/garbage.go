package garbage

import (
	"os"
	"runtime/debug"
)

const (
	// working is the percentage of garbage while a landscape starts: most of what is made then is needed no more at its end,
	// and to collect it often costs time.
	working = 100
	// resting is that of afterwards, when most of the memory is in API servers that change little. What is made in between
	// leaves holes that stay: at 40 a further shoot takes a tenth more.
	resting = 25
	// variable is Go's own. What it says counts.
	variable = "GOGC"
)

// Working is called when much is about to be made.
func Working() { set(working) }

// Resting is called when that is done.
func Resting() { set(resting) }

func set(percent int) {
	if os.Getenv(variable) == "" {
		debug.SetGCPercent(percent)
	}
}
