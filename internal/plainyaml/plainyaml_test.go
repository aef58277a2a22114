package plainyaml

import (
	"strings"
	"testing"
)

func TestUnmarshal(t *testing.T) {
	for text, want := range map[string]string{
		"a: {b: [1, 2]}":   "",
		"a: &x [1]\nb: *x": "line 1: anchors and aliases are not allowed",
		"a: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1): "line 1: values are nested more than 100 times",
	} {
		var into map[string]any
		if err := Unmarshal([]byte(text), &into); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%.30s: error %v, want %q", text, err, want)
		}
	}
}
