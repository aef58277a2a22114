package controlplane

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// answer answers as the API machinery does with an error that has no type.
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
				withClientFaults(answer(t, mediaType, c.status)).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
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
		withClientFaults(handler).ServeHTTP(w, httptest.NewRequest(method, "/", strings.NewReader("[]")))
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
