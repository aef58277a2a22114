package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/sshclient"
)

// TestPrintDescription: an error is printed once and with its code, what comes next is for the same landscape, and
// nothing that a cluster says moves the cursor.
func TestPrintDescription(t *testing.T) {
	var out, errs bytes.Buffer
	g := &globals{streams: streams{out: &out, err: &errs}, name: "other"}
	now := time.Now()
	printDescription(g, &shootDescription{
		Description: &shootclient.Description{
			Summary: shootclient.Summary{Project: "dev", Name: "x", State: "Create Failed (34%)",
				CreatedAt: now.Add(-3 * time.Minute)},
			Operation: &shootclient.Operation{Text: "Create Failed (34%)", Message: "no such\x1b[2J network",
				At:    now.Add(-90 * time.Second),
				Tasks: []string{"Waiting for one", "Waiting for two"}},
			Errors: []corev1beta1.LastError{{Description: "no such\x1b[2J network", TaskID: ptr.To("infrastructure"),
				Codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}}},
			Rotations: []shootclient.Rotation{{Name: "ca", Phase: "Prepared", Started: &metav1.Time{Time: now.Add(-time.Hour)},
				Next: "gardenlite rotate ca dev/x --complete"}},
		},
		Nodes: []sshclient.Node{{Name: "node-1", Address: "10.0.0.1"}},
		Bastions: []bastionSummary{{Name: "cli-a", State: "Ready", Address: "127.0.0.2",
			Expires: &metav1.Time{Time: now.Add(59*time.Minute + 500*time.Millisecond)}}},
	})
	text := out.String()
	for _, want := range []string{"Shoot       dev/x: Create Failed (34%)\n", "Age         3m\n",
		"Operation   Create Failed (34%), 90s ago\n",
		"            - Waiting for two\n", "ERR_CONFIGURATION_PROBLEM   infrastructure   no such\ufffd[2J network\n",
		"node-1   NotReady   10.0.0.1\n", "cli-a     Ready    127.0.0.2   in 59m\n",
		"ca         Prepared   60m ago               gardenlite --name other rotate ca dev/x --complete\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Count(text, "network") != 1 {
		t.Errorf("it is\n%q", text)
	}
	if !strings.HasSuffix(errs.String(), "gardenlite shoot retry --name other dev/x\n") {
		t.Errorf("what to do next: %q", errs.String())
	}
}
