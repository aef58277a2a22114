package process

import (
	"strings"
	"testing"
)

// TestExpandIsLimited checks that references to references are not expanded without limit.
func TestExpandIsLimited(t *testing.T) {
	values := map[string]string{"A": strings.Repeat("x", 1000)}
	for reference, fits := range map[string]bool{"$(A)": true, strings.Repeat("$(A)", maxExpanded/1000+1): false} {
		value, err := expand(reference, values)
		if fits != (err == nil) || fits && value != values["A"] {
			t.Errorf("%.20s: %d bytes, error %v", reference, len(value), err)
		}
	}
}
