package quirks

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // Status is known with the first group
)

// clientFaults are the prefixes of messages of the API machinery about an invalid request, in errors without a type,
// which become a 500. A client that retries after a 500 would never stop.
//
// Upstream: https://github.com/kubernetes/kubernetes/issues/79210, ErrorToAPIStatus in
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/status.go
var clientFaults = []string{
	"failed to create typed patch object",
	"failed to convert new object",
	"failed to convert to unversioned",
	"resourceVersion: Invalid value",
	"strconv.Parse",
	// The following messages are about patches (k8s.io/apimachinery, strategicpatch and mergepatch, and decoding the
	// result).
	"The order in patch list",
	"cannot find merge key",
	"cannot merge lists",
	"couldn't get version/kind",
	"expected ",
	"fail to find unknown prefix",
	"invalid element type in merging list",
	"invalid value for special key",
	"list element types are not identical",
	"map: ",
	"merging lists cannot yet be specified",
	"no elements in any of the given slices",
	"unable to find api field",
	"unable to resolve",
	"unexpected patch strategy",
	"unexpected slice of slice",
	"unknown patch type",
	"unknown type",
	"value for key",
}

// WithClientFaults changes the status code from 500 to 400 if the request is invalid. It considers only requests with a
// body or a resource version.
func WithClientFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPatch, http.MethodPost, http.MethodPut:
		default:
			if !strings.Contains(r.URL.RawQuery, "resourceVersion") {
				next.ServeHTTP(w, r)
				return
			}
		}
		held := &heldWriter{ResponseWriter: w}
		defer answerPanic(held, r)
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(held), r)
		held.release()
	})
}

// patchLibraries are libraries that panic on some patches. The value of the panic has the stack of the goroutine that
// applied the patch.
//
// Upstream: Patch.replace in https://github.com/evanphx/json-patch/blob/v4.13.0/patch.go
var patchLibraries = []string{"evanphx/json-patch", "apimachinery/pkg/util/strategicpatch"}

// answerPanic answers with 400 if the library that applies a patch panics. Any other panic continues.
func answerPanic(held *heldWriter, r *http.Request) {
	if held.began || r.Method != http.MethodPatch {
		return // a handler further out recovers from a panic
	}
	reason := recover()
	if reason == nil {
		return
	}
	text := fmt.Sprint(reason)
	if !slices.ContainsFunc(patchLibraries, func(library string) bool { return strings.Contains(text, library) }) {
		panic(reason)
	}
	klog.Background().WithName("controlplane").Info("A patch could not be applied", "path", r.URL.Path, "reason", text)
	status := apierrors.NewBadRequest(
		"the patch cannot be applied: its parts are not what its Content-Type promises, or do not fit the object").Status()
	body, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(metav1.SchemeGroupVersion), &status)
	if err != nil {
		body = []byte(status.Message)
	}
	held.Header().Set("Content-Type", runtime.ContentTypeJSON)
	held.write(http.StatusBadRequest, body)
}

// heldWriter buffers a response with code 500 until it is complete.
type heldWriter struct {
	http.ResponseWriter
	began bool // a part of the response has been sent
	held  *bytes.Buffer
}

func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *heldWriter) WriteHeader(code int) {
	if code == http.StatusInternalServerError && !w.began {
		w.held = &bytes.Buffer{}
		return
	}
	w.began = true
	w.ResponseWriter.WriteHeader(code)
}

func (w *heldWriter) Write(p []byte) (int, error) {
	if w.held != nil {
		return w.held.Write(p)
	}
	w.began = true
	return w.ResponseWriter.Write(p)
}

func (w *heldWriter) release() {
	if w.held == nil {
		return
	}
	code, body := http.StatusInternalServerError, w.held.Bytes()
	if w.Header().Get("Content-Encoding") == "" {
		if corrected := asClientFault(w.Header().Get("Content-Type"), body); corrected != nil {
			code, body = http.StatusBadRequest, corrected
		}
	}
	w.write(code, body)
}

func (w *heldWriter) write(code int, body []byte) {
	w.held, w.began = nil, true
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
	_, _ = w.ResponseWriter.Write(body) // an error means that the client is gone
}

// asClientFault returns the body of the response with 400, nil if the request is not at fault.
func asClientFault(contentType string, body []byte) []byte {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil
	}
	obj, err := runtime.Decode(info.Serializer, body)
	if err != nil {
		return nil
	}
	status, ok := obj.(*metav1.Status)
	if !ok || status.Reason != metav1.StatusReasonUnknown {
		return nil
	}
	for _, fault := range clientFaults {
		if strings.HasPrefix(status.Message, fault) {
			status.Code, status.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
			status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
			corrected, err := runtime.Encode(info.Serializer, status)
			if err != nil {
				return nil
			}
			return corrected
		}
	}
	return nil
}
