package quirks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// answer returns a handler that responds like the API machinery does to an error without a type.
func answer(t *testing.T, mediaType string, status metav1.Status) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), mediaType)
		if !ok {
			t.Fatal("no serializer")
		}
		status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
		body, err := runtime.Encode(info.Serializer, &status)
		if err != nil {
			t.Fatal(err)
		}
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(int(status.Code))
		_, _ = w.Write(body)
	})
}

func TestClientFaults(t *testing.T) {
	fault := metav1.Status{Code: 500, Status: "Failure", Message: `failed to create typed patch object (a/b; c, Kind=D): .x: expected string`}
	typed, other, fine := fault, fault, fault
	typed.Reason = metav1.StatusReasonInternalError
	other.Message = "rpc error: code = Unavailable"
	fine.Code = 409
	for name, c := range map[string]struct {
		method, path string
		status       metav1.Status
		want         int
	}{
		"a patch that cannot be":       {http.MethodPatch, "/", fault, 400},
		"an error with a type":         {http.MethodPatch, "/", typed, 500},
		"the datastore is away":        {http.MethodPatch, "/", other, 500},
		"any other code":               {http.MethodPatch, "/", fine, 409},
		"a get":                        {http.MethodGet, "/", fault, 500},
		"a get at a resource version":  {http.MethodGet, "/?resourceVersion=-1", fault, 400},
		"a deletion without a version": {http.MethodDelete, "/", fault, 500},
	} {
		for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf} {
			t.Run(name+" "+mediaType, func(t *testing.T) {
				w := httptest.NewRecorder()
				WithClientFaults(answer(t, mediaType, c.status)).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
				if w.Code != c.want {
					t.Errorf("code %d, want %d", w.Code, c.want)
				}
				info, _ := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), w.Header().Get("Content-Type"))
				obj, err := runtime.Decode(info.Serializer, w.Body.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				if status := obj.(*metav1.Status); int(status.Code) != c.want || status.Message != c.status.Message {
					t.Errorf("the body says %v", status)
				}
			})
		}
	}
}

func TestPatchPanics(t *testing.T) {
	serve := func(method, reason string) (w *httptest.ResponseRecorder, panicked any) {
		defer func() { panicked = recover() }()
		w = httptest.NewRecorder()
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(reason) })
		WithClientFaults(handler).ServeHTTP(w, httptest.NewRequest(method, "/", strings.NewReader("[]")))
		return w, nil
	}
	library := "runtime error\n goroutine 1\n gopkg.in/evanphx/json-patch%2ev4.Patch.replace(0x1)"
	w, panicked := serve(http.MethodPatch, library)
	var status metav1.Status
	if panicked != nil || w.Code != http.StatusBadRequest || json.Unmarshal(w.Body.Bytes(), &status) != nil ||
		status.Reason != metav1.StatusReasonBadRequest {
		t.Errorf("panicked %v, answered %d %s", panicked, w.Code, w.Body)
	}
	for method, reason := range map[string]string{http.MethodPost: library, http.MethodPatch: "our own"} {
		if _, panicked := serve(method, reason); fmt.Sprint(panicked) != reason {
			t.Errorf("%s: the panic %q became %v", method, reason, panicked)
		}
	}
}

// TestClientFaultsAreNeeded fails if the API machinery no longer answers these patches with 500.
func TestClientFaultsAreNeeded(t *testing.T) {
	pod := []byte(`{"spec":{"containers":[{"name":"a","image":"b"}]}}`)
	for _, patch := range []string{
		`{"spec":{"containers":[{"image":"c"}]}}`,
		`{"spec":{"containers":["c"]}}`,
		`{"spec":{"$patch":"unknown"}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a"}]}}`,
	} {
		_, err := strategicpatch.StrategicMergePatch(pod, []byte(patch), corev1.Pod{})
		if err == nil {
			t.Errorf("%s is accepted", patch)
			continue
		}
		status := responsewriters.ErrorToAPIStatus(err)
		known := slices.ContainsFunc(clientFaults, func(fault string) bool { return strings.HasPrefix(status.Message, fault) })
		if status.Code != http.StatusInternalServerError || !known {
			t.Errorf("%s: upstream answers %d: %s", patch, status.Code, status.Message)
		}
	}
}

// TestPatchPanicsAreNeeded fails if the library no longer panics on this patch.
func TestPatchPanicsAreNeeded(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the library does not panic any more")
		}
	}()
	patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"replace","path":""}]`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = patch.Apply([]byte(`{"a":1}`))
	t.Logf("applied: %v", err)
}
