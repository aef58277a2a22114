// Package result writes the figures of a part of the conformance tests for the table at the end of "make conformance".
package result

import (
	"fmt"
	"os"
	"testing"
)

// file is the environment variable with the name of the file for the figures.
const file = "CONFORMANCE_RESULT"

// Set logs the figures of the part, and writes them to the file that make wants, if any.
func Set(t *testing.T, format string, args ...any) {
	t.Helper()
	figures := fmt.Sprintf(format, args...)
	t.Log(figures)
	if name := os.Getenv(file); name != "" {
		if err := os.WriteFile(name, []byte(figures+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}
