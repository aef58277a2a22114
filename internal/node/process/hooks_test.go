package process

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

const answerPort = "ANSWER_PORT"

// TestAnswer is the program of TestHTTPHook: it responds with an error, and not at all to /never.
func TestAnswer(t *testing.T) {
	port := os.Getenv(answerPort)
	if port == "" {
		t.Skip("this is a program")
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("asked for " + r.URL.Path)
		if r.URL.Path == "/never" {
			<-r.Context().Done()
		}
		http.Error(w, "no", http.StatusInternalServerError)
	})
	t.Error(http.ListenAndServe("127.0.0.1:"+port, nil))
}

// The status of the response to an HTTP hook is ignored. A hook without a response ends with the grace period.
func TestHTTPHook(t *testing.T) {
	for path, fails := range map[string]bool{"/error": false, "/never": true} {
		t.Run(path, func(t *testing.T) {
			port := testutil.UnusedPort(t)
			w := newWorld(t, fmt.Sprintf("exec %q -test.run '^TestAnswer$' -test.v", os.Args[0]))
			pod := withHooks(nil, &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}})
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: answerPort, Value: strconv.Itoa(port)}}
			p := w.run(pod)
			testutil.EventuallyTrue(t, "the process listens", func() bool { return p.Listens(port) })
			p.Stop(30 * time.Second)
			w.untilLog(t, p, func(log string) bool { return strings.Contains(log, "asked for "+path) })
			testutil.EventuallyTrue(t, "the Pod has ended", func() bool {
				if fails {
					w.clock.Step(30 * time.Second)
				}
				select {
				case <-p.Done():
					return true
				default:
					return false
				}
			})
			w.mu.Lock()
			defer w.mu.Unlock()
			failed := slices.ContainsFunc(w.events, func(event string) bool { return strings.HasPrefix(event, "FailedPreStopHook") })
			if failed != fails {
				t.Errorf("the Events are %q", w.events)
			}
		})
	}
}
