package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

var admissionReviewKind = admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")

// Decider decides on admission requests. The response is never nil.
type Decider interface {
	Handle(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

// admit returns the handler that answers AdmissionReviews at a path.
func (s *Server) admit(path string, decider Decider) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := decode(w, r, maxAdmissionBody, admissionReviewKind, &review, &review.TypeMeta)
		if err == nil {
			err = checkRequest(review.Request)
		}
		if err != nil {
			s.fail(w, path, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), admissionTimeout(r))
		defer cancel()
		request := review.Request
		response := decider.Handle(ctx, request)
		if response == nil {
			s.fail(w, path, errors.New("the webhook gave no answer"))
			return
		}
		response.UID = request.UID
		if response.Result != nil {
			response.Result.Message = oneLine(response.Result.Message)
		}
		if path == RestrictionPath {
			s.metrics.admission(request, seedidentity.OfAuthentication(request.UserInfo).Type, response.Allowed)
		}
		writeJSON(w, admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: admissionReviewKind.Kind},
			Response: response,
		})
	}
}

func checkRequest(request *admissionv1.AdmissionRequest) error {
	switch {
	case request == nil:
		return malformed("the review has no request")
	case request.UID == "":
		return malformed("the request has no uid")
	case request.Operation == "":
		return malformed("the request has no operation")
	case request.Resource.Resource == "":
		return malformed("the request has no resource")
	}
	return nil
}

// admissionTimeout returns how long the API server waits, which is in the query.
func admissionTimeout(r *http.Request) time.Duration {
	if timeout, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && timeout > 0 {
		return min(timeout, longestAdmission)
	}
	return longestAdmission
}
