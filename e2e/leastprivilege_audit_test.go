package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardenlite/gardenlite/internal/landscape/leastprivilege"
)

// audit has the requests of components in an audit log: those that were allowed, and those that were forbidden.
type audit struct {
	seen      map[leastprivilege.Request]bool
	forbidden map[leastprivilege.Component][]string
}

// readAudit reads an audit log that may still be written to.
func readAudit(t *testing.T, file, cluster string) *audit {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	a := &audit{seen: map[leastprivilege.Request]bool{}, forbidden: map[leastprivilege.Component][]string{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the last line, half written
		}
		if event.Level != auditv1.LevelMetadata || event.RequestObject != nil || event.ResponseObject != nil {
			t.Fatalf("the audit log has more than metadata: %s", lines.Text())
		}
		a.add(cluster, &event)
	}
	must(t, lines.Err())
	return a
}

func (a *audit) add(cluster string, event *auditv1.Event) {
	request, known := leastprivilege.FromAudit(cluster, event)
	c := leastprivilege.Component{Cluster: cluster, User: event.User.Username}
	if known {
		c = request.Component
	}
	status := event.ResponseStatus
	switch refused := status != nil && status.Code == 403; {
	case refused && strings.Contains(status.Message, "because it is being terminated"):
		// A namespace that is being deleted accepts no new objects.
	case refused:
		a.forbidden[c] = append(a.forbidden[c], event.Verb+" "+event.RequestURI+": "+status.Message)
	case known:
		a.seen[request] = true
	}
}
