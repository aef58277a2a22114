package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const exampleAdmission = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5",
 "kind":{"group":"","version":"v1","kind":"Secret"},
 "resource":{"group":"","version":"v1","resource":"secrets"},"name":"x","namespace":"garden-dev","operation":"CREATE",
 "userInfo":{"username":"gardener.cloud:system:seed:local","groups":["gardener.cloud:system:seeds"]},
 "object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}}}`

func TestAdmission(t *testing.T) {
	var seen *admissionv1.AdmissionRequest
	answerWith := &admissionv1.AdmissionResponse{}
	s := serve(t, func(c *Config) {
		c.Restriction = restrictionFunc(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { seen = r; return answerWith })
	})
	s.synced.Store(false) // the restriction reads live objects, and does not wait for the graph
	for _, response := range []*admissionv1.AdmissionResponse{
		{Allowed: true, UID: "not the request's"},
		{Allowed: false, Result: &metav1.Status{Code: http.StatusForbidden, Message: `object does not belong to seed "local"`}},
	} {
		answerWith = response
		status, answer := s.post(RestrictionPath+"?timeout=3s", exampleAdmission)
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(answer), &review); err != nil || status != http.StatusOK {
			t.Fatalf("%d %q: %v", status, answer, err)
		}
		if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || review.Request != nil {
			t.Errorf("answer %s", answer)
		}
		if review.Response.UID != "705ab4f5" || review.Response.Allowed != response.Allowed {
			t.Errorf("response %+v", review.Response)
		}
		if response.Result != nil &&
			(review.Response.Result.Code != http.StatusForbidden || review.Response.Result.Message != `object does not belong to seed "local"`) {
			t.Errorf("result %+v", review.Response.Result)
		}
	}
	if seen.Resource.Resource != "secrets" || seen.UserInfo.Username != "gardener.cloud:system:seed:local" ||
		!strings.Contains(string(seen.Object.Raw), `"name":"x"`) {
		t.Errorf("the restriction saw %+v", seen)
	}
	answerWith = nil
	if status, _ := s.post(RestrictionPath, exampleAdmission); status != http.StatusInternalServerError {
		t.Errorf("no answer of the restriction: %d", status)
	}
}

var malformedAdmissions = map[string]string{
	"nothing":         ``,
	"null":            `null`,
	"cut off":         exampleAdmission[:len(exampleAdmission)-1],
	"no request":      `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
	"another kind":    strings.Replace(exampleAdmission, `"AdmissionReview"`, `"Review"`, 1),
	"another version": strings.Replace(exampleAdmission, `k8s.io/v1"`, `k8s.io/v1beta1"`, 1),
	"no uid":          strings.Replace(exampleAdmission, `"uid":"705ab4f5",`, ``, 1),
	"no operation":    strings.Replace(exampleAdmission, `"operation":"CREATE",`, ``, 1),
	"no resource":     strings.Replace(exampleAdmission, `"resource":"secrets"`, `"resource":""`, 1),
	"user twice":      strings.Replace(exampleAdmission, `"groups"`, `"username":"x","groups"`, 1),
	"request twice":   strings.Replace(exampleAdmission, `"request":`, `"request":{},"request":`, 1),
}

func TestMalformedAdmissions(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Restriction = restrictionFunc(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			t.Error("the restriction was asked")
			return &admissionv1.AdmissionResponse{Allowed: true}
		})
	})
	for name, body := range malformedAdmissions {
		if status, answer := s.post(RestrictionPath, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %q", name, status, answer)
		}
	}
}

// FuzzAdmissionReview checks that no body makes the handler panic, or is allowed without a call of the restriction.
func FuzzAdmissionReview(f *testing.F) {
	f.Add([]byte(exampleAdmission))
	for _, body := range malformedAdmissions {
		f.Add([]byte(body))
	}
	asked := false
	s := Server{metrics: NewMetrics(),
		config: Config{Restriction: restrictionFunc(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			asked = r.UID != "" && r.Operation != "" && r.Resource.Resource != ""
			return &admissionv1.AdmissionResponse{Allowed: true}
		})}}
	f.Fuzz(func(t *testing.T, body []byte) {
		asked = false
		request := httptest.NewRequest(http.MethodPost, RestrictionPath, strings.NewReader(string(body)))
		request.Header.Set("Content-Type", mediaTypeJSON)
		recorder := httptest.NewRecorder()
		s.admit(RestrictionPath, s.config.Restriction)(recorder, request)
		if !asked && (recorder.Code < 400 || recorder.Code >= 500) {
			t.Fatalf("status %d although the restriction was not asked", recorder.Code)
		}
	})
}

func TestAdmissionTimeout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": longestAdmission, "?timeout=2s": 2 * time.Second, "?timeout=1h": longestAdmission, "?timeout=-1s": longestAdmission,
		"?timeout=x": longestAdmission,
	} {
		if got := admissionTimeout(httptest.NewRequest(http.MethodPost, RestrictionPath+query, nil)); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}
