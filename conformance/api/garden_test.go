package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/bench/harness"
	"github.com/gardenlite/gardenlite/conformance/result"
)

// garden is an API server to which requests are sent.
type garden struct {
	name, host string
	client     *http.Client
}

func newGarden(name string, config *rest.Config) (*garden, error) {
	client, err := rest.HTTPClientFor(config)
	return &garden{name, config.Host, client}, err
}

// user is whose request it is: the administrator impersonates them.
type user struct {
	name   string
	groups []string
}

const gardenlets = "gardener.cloud:system:seeds"

var (
	administrator = user{"alice", []string{"system:masters"}}
	gardenlet     = user{"gardener.cloud:system:seed:diff", []string{gardenlets}}
)

// request is one that both gardens get.
type request struct {
	user
	method, path string
	contentType  string
	body         any
}

// answer is what matters of a response.
type answer struct {
	Code    int
	Reason  metav1.StatusReason
	Message string
	Causes  []string // of an object that is not valid: field and kind of each error
	Object  map[string]any
}

// send sends a request.
func (g *garden) send(ctx context.Context, r request) (answer, error) {
	data, isText := r.body.(string)
	if !isText && r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, err
		}
		data = string(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, g.host+r.path, bytes.NewBufferString(data))
	if err != nil {
		return answer{}, err
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	req.Header.Set("Content-Type", r.contentType)
	req.Header.Set("Impersonate-User", r.name)
	for _, group := range r.groups {
		req.Header.Add("Impersonate-Group", group)
	}
	response, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Code: response.StatusCode}
	if err := json.Unmarshal(body, &a.Object); err != nil {
		a.Message = string(body)
		return a, nil
	}
	if a.Object["kind"] == "Status" {
		status := metav1.Status{}
		if err := json.Unmarshal(body, &status); err != nil {
			return answer{}, err
		}
		a = answer{Code: a.Code, Reason: status.Reason, Message: status.Message}
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				a.Causes = append(a.Causes, fmt.Sprintf("%s: %s", cause.Field, cause.Type))
			}
		}
		slices.Sort(a.Causes)
		a.Causes = slices.Compact(a.Causes)
		return a, nil
	}
	clean(a.Object)
	return a, nil
}

// clean removes what is another value in each garden.
func clean(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			delete(v, field)
		}
		for _, field := range v {
			clean(field)
		}
	case []any:
		for _, item := range v {
			clean(item)
		}
	}
}

// wait is how long the gardens have until they answer alike: admission reads from caches.
const wait = 2 * time.Second

// compare sends a request to both gardens, and returns what differs without a reason. A request without effect is repeated
// until nothing does.
func compare(t *testing.T, about string, r request) (answers [2]answer, differing []string) {
	t.Helper()
	send := func() {
		t.Helper()
		for i, g := range both {
			var err error
			if answers[i], err = g.send(t.Context(), r); err != nil {
				t.Fatalf("%s: %v", g.name, err)
			}
		}
		differing = unexplained(about, changes(answers))
	}
	if !strings.Contains(r.path, "dryRun=All") {
		send()
		return answers, differing
	}
	_ = harness.Poll(t.Context(), wait, func() (bool, error) { send(); return len(differing) == 0, nil })
	return answers, differing
}

// counted are the requests of all tests.
var counted struct{ alike, all int }

// count adds the requests of a test.
func count(t *testing.T, alike, all int) {
	t.Helper()
	t.Logf("%d of %d requests are answered alike, or differently for a reason", alike, all)
	counted.alike += alike
	counted.all += all
	result.Set(t, "%d requests: %.2f %% answered alike, or differently for a reason", counted.all,
		100*float64(counted.alike)/float64(counted.all))
}

// changes returns what differs, one line for each field.
func changes(answers [2]answer) []string {
	a, b := answers[0], answers[1]
	if a.Code < 300 && b.Code < 300 {
		return fieldChanges("", a.Object, b.Object)
	}
	if a.Code == b.Code && a.Reason == b.Reason && slices.Equal(a.Causes, b.Causes) && (a.Message == b.Message || !isWebhooks(a)) {
		return nil
	}
	return []string{fmt.Sprintf("%s | %s", a, b)}
}

// isWebhooks reports whether a webhook refused the request. Its message is Gardener's, those of validation and admission in the
// API server are in gardenlite's own words.
func isWebhooks(a answer) bool { return strings.HasPrefix(a.Message, "admission webhook ") }

func (a answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", a.Code, a.Reason, strings.Join(a.Causes, ", "), a.Message))
}

func fieldChanges(path string, a, b any) (all []string) {
	mapA, okA := a.(map[string]any)
	mapB, okB := b.(map[string]any)
	if !okA || !okB {
		if !reflect.DeepEqual(a, b) {
			textA, _ := json.Marshal(a)
			textB, _ := json.Marshal(b)
			all = append(all, fmt.Sprintf("%s: %s | %s", path, textA, textB))
		}
		return all
	}
	keys := sets.KeySet(mapA).Union(sets.KeySet(mapB))
	for _, key := range sets.List(keys) {
		all = append(all, fieldChanges(path+"."+key, mapA[key], mapB[key])...)
	}
	return all
}
