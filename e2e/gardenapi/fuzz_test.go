package gardenapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	fuzzRequests = 3000
	fuzzWorkers  = 4
	// soakFactor is how many times as many requests are sent with GARDENLITE_SOAK=1.
	soakFactor = 20
	// maxFuzzFailures ends a run in which everything fails.
	maxFuzzFailures = 20
)

// fuzzRequest is a request that no client should send.
type fuzzRequest struct {
	method, path, query string
	contentType, accept string
	body                []byte
}

// fuzzTarget is a resource with an object that exists, so that updates get as far as validation.
type fuzzTarget struct {
	resourceInfo
	fresh, existing *unstructured.Unstructured
	schema          map[string]any
}

// TestFuzz sends mutated manifests and raw garbage to every endpoint of every resource. All of it is the client's fault, so
// no answer may be a server error, unless Kubernetes' own handlers give it anywhere. Everything is a dry run. A request follows
// from the seed and its number alone, whatever the workers do: GARDENLITE_SEED repeats a run.
func TestFuzz(t *testing.T) {
	prepareProject(t, "fuzz")
	targets, schemas := fuzzTargets(t), fuzzSchemas(t)
	for i := range targets {
		targets[i].schema = schemas.ofKind(targets[i].fresh.GroupVersionKind())
		if targets[i].schema == nil {
			t.Fatalf("no schema of %s", targets[i].kind)
		}
	}
	seed, total := int64(testutil.Seed(t)), fuzzRequests
	if testutil.Soaking() {
		total *= soakFactor
	}
	httpClient := fuzzClient(t)
	numbers, codes := make(chan int), fuzzCodes{count: map[int]int{}}
	var workers sync.WaitGroup
	for range fuzzWorkers {
		workers.Go(func() {
			for number := range numbers {
				random := rand.New(rand.NewSource(seed<<20 + int64(number)))
				f := fuzzer{random, schemas}
				target := targets[number%len(targets)] // every resource as often as any other
				request := f.request(target)
				code, err := send(t.Context(), httpClient, request)
				if failed := codes.add(code, err != nil); failed {
					t.Errorf("GARDENLITE_SEED=%d, request %d: %s: %d %v", seed, number, request, code, err)
				}
			}
		})
	}
	for number := range total {
		if codes.failed() >= maxFuzzFailures {
			t.Errorf("ended after %d requests", number)
			break
		}
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	t.Logf("answers by code: %v", codes.count)
	if codes.count[http.StatusCreated] == 0 || codes.count[http.StatusUnprocessableEntity] == 0 {
		t.Error("the requests do not reach both success and validation")
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		return kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// fuzzClient is a plain HTTP client with the administrator's credentials.
func fuzzClient(t *testing.T) *http.Client {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	withTimeout := *httpClient
	withTimeout.Timeout = 30 * time.Second
	return &withTimeout
}

// fuzzTargets creates an object of every resource.
func fuzzTargets(t *testing.T) []fuzzTarget {
	t.Helper()
	var targets []fuzzTarget
	for _, obj := range validObjects(t, "fuzz") {
		r := infoOf(t, obj.GetKind())
		made, err := client(obj, r).Create(t.Context(), obj, created)
		if err != nil {
			t.Fatalf("%s: %v", r.kind, err)
		}
		fresh := obj.DeepCopy()
		fresh.SetName("fuzz2")
		r.gvr.Version = obj.GroupVersionKind().Version
		targets = append(targets, fuzzTarget{resourceInfo: r, fresh: fresh, existing: made})
	}
	return targets
}

// send returns the status code of the answer. It returns an error if the connection broke, for a server error, or if
// there was no answer in time.
func send(ctx context.Context, httpClient *http.Client, r fuzzRequest) (int, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, config.Host+r.path+"?"+r.query, bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", r.contentType)
	request.Header.Set("Accept", r.accept)
	response, err := httpClient.Do(request)
	if err != nil {
		if r.panics() && strings.Contains(err.Error(), "INTERNAL_ERROR; received from peer") {
			return 0, nil
		}
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode < http.StatusInternalServerError || response.StatusCode == http.StatusNotImplemented && r.mayBeMissing() {
		return response.StatusCode, nil
	}
	if response.StatusCode == http.StatusInternalServerError && kubernetesAnswers(answer) {
		return response.StatusCode, nil
	}
	return response.StatusCode, fmt.Errorf("answered %s", abridged(answer))
}

// clientFaults begin the messages that Kubernetes' handlers answer with 500 although the request is at fault.
//
// Upstream: https://github.com/kubernetes/kubernetes/issues/79210
var clientFaults = []string{
	"failed to create typed patch object", "failed to convert new object", "failed to convert to unversioned",
	"resourceVersion: Invalid value", "strconv.Parse",
	// These are about patches (k8s.io/apimachinery, strategicpatch and mergepatch, and decoding the result).
	"The order in patch list", "cannot find merge key", "cannot merge lists", "couldn't get version/kind", "expected ",
	"fail to find unknown prefix", "invalid element type in merging list", "invalid value for special key",
	"list element types are not identical", "map: ", "merging lists cannot yet be specified",
	"no elements in any of the given slices", "unable to find api field", "unable to resolve", "unexpected patch strategy",
	"unexpected slice of slice", "unknown patch type", "unknown type", "value for key",
}

// panics reports whether it is a patch for whose application Kubernetes has libraries that panic on some: the API server
// ends the stream then.
func (r fuzzRequest) panics() bool {
	return r.method == http.MethodPatch &&
		(r.contentType == string(types.JSONPatchType) || r.contentType == string(types.StrategicMergePatchType))
}

// kubernetesAnswers reports whether a 500 is Kubernetes' own answer to a request that is at fault.
func kubernetesAnswers(answer []byte) bool {
	var status metav1.Status
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, &status)
	return err == nil && status.Reason == metav1.StatusReasonUnknown &&
		slices.ContainsFunc(clientFaults, func(fault string) bool { return strings.HasPrefix(status.Message, fault) })
}

// mayBeMissing reports whether the endpoint issues credentials, which some landscapes do not.
func (r fuzzRequest) mayBeMissing() bool {
	for _, subresource := range []string{"/adminkubeconfig", "/viewerkubeconfig", "/token"} {
		if strings.HasSuffix(r.path, subresource) {
			return true
		}
	}
	return false
}

func (r fuzzRequest) String() string {
	return fmt.Sprintf("%s %s?%s, Content-Type %s, Accept %s, body %s", r.method, r.path, r.query, r.contentType, r.accept, abridged(r.body))
}

// abridged shows enough of a body to repeat a request by hand; the seed and the number tell the rest.
func abridged(body []byte) string {
	const limit = 4000
	if len(body) <= limit {
		return strconv.QuoteToGraphic(string(body))
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.QuoteToGraphic(string(body[:limit])), len(body))
}

// fuzzCodes counts the answers.
type fuzzCodes struct {
	sync.Mutex
	count    map[int]int
	failures int
}

// add counts an answer, and returns failed.
func (c *fuzzCodes) add(code int, failed bool) bool {
	c.Lock()
	defer c.Unlock()
	c.count[code]++
	if failed {
		c.failures++
	}
	return failed
}

func (c *fuzzCodes) failed() int {
	c.Lock()
	defer c.Unlock()
	return c.failures
}
