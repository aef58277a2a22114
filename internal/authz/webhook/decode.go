package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/gardenlite/gardenlite/internal/authz/graphview"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// requestError is an error of the client, with its HTTP status code.
type requestError struct {
	status int
	err    error
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

func malformed(format string, args ...any) error {
	return &requestError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// decode decodes the body, an object of the wanted kind, into object.
//
// Field names are case-sensitive, and a field may occur only once, so that no proxy or API server in between can have
// decoded another value. Unknown fields are ignored: a newer API server may send more, and by the conventions of the
// API, a field that an older webhook ignores can only narrow a request.
func decode(w http.ResponseWriter, r *http.Request, limit int64, want schema.GroupVersionKind, object any, meta *metav1.TypeMeta) error {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != mediaTypeJSON {
		return &requestError{http.StatusUnsupportedMediaType, fmt.Errorf("the content type must be %s", mediaTypeJSON)}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return &requestError{http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d bytes", limit)}
		}
		return malformed("reading the body: %w", err)
	}
	duplicates, err := kjson.UnmarshalStrict(body, object, kjson.DisallowDuplicateFields)
	if err != nil {
		return malformed("decoding the body: %w", err)
	}
	if len(duplicates) > 0 {
		return malformed("decoding the body: %w", errors.Join(duplicates...))
	}
	if got := meta.GroupVersionKind(); got != want {
		return malformed("the body is a %q of %q, not a %q of %q", got.Kind, got.GroupVersion(), want.Kind, want.GroupVersion())
	}
	return nil
}

func statusOf(err error) int {
	if requestErr := (*requestError)(nil); errors.As(err, &requestErr) {
		return requestErr.status
	}
	if usageErr := (*usage.Error)(nil); errors.As(err, &usageErr) {
		return http.StatusBadRequest
	}
	if errors.Is(err, graphview.ErrNoMatch) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

func writeError(w http.ResponseWriter, err error) { writeText(w, statusOf(err), oneLine(err.Error())) }

// fail counts and answers a request to a webhook that has failed.
func (s *Server) fail(w http.ResponseWriter, path string, err error) {
	s.metrics.failure(path, statusOf(err))
	writeError(w, err)
}

func writeJSON(w http.ResponseWriter, object any) {
	body, err := json.Marshal(object)
	if err != nil {
		writeError(w, fmt.Errorf("encoding the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", mediaTypeJSON)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body)
}

// oneLine makes text, which may quote a request, fit into a line of a log or a reason: without control characters, and
// not too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + "…"
	}
	return text
}
