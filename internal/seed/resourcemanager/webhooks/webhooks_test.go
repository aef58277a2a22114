package webhooks

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const crds, deletions = "customresourcedefinitions", "/webhooks/validate-crd-deletion"

func deletion(resource string, labels, annotations map[string]string) *admissionv1.AdmissionRequest {
	old, err := json.Marshal(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: labels, Annotations: annotations}})
	if err != nil {
		panic(err) // it can be marshalled
	}
	return &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: old},
		Resource: metav1.GroupVersionResource{Resource: resource}}
}

func TestAnswers(t *testing.T) {
	protected, confirmed := map[string]string{"gardener.cloud/deletion-protected": "true"},
		map[string]string{"confirmation.gardener.cloud/deletion": "true"}
	for name, test := range map[string]struct {
		path    string
		request *admissionv1.AdmissionRequest
		denied  string
	}{
		"any other webhook":                    {"/webhooks/high-availability-config", deletion(crds, protected, nil), ""},
		"a protected CustomResourceDefinition": {deletions, deletion(crds, protected, nil), "confirmation.gardener.cloud/deletion"},
		"with a confirmation":                  {deletions, deletion(crds, protected, confirmed), ""},
		"another CustomResourceDefinition":     {deletions, deletion(crds, nil, nil), ""},
		"an extension resource":                {deletions, deletion("infrastructures", nil, nil), "must have a"},
		"a Bastion":                            {deletions, deletion("bastions", nil, nil), ""},
		"an extension resource, confirmed":     {deletions, deletion("infrastructures", nil, confirmed), ""},
		"a deletion of what cannot be read":    {deletions, &admissionv1.AdmissionRequest{Operation: admissionv1.Delete}, "reading"},
		"what is not deleted at that webhook":  {deletions, &admissionv1.AdmissionRequest{Operation: admissionv1.Update}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(&admissionv1.AdmissionReview{Request: test.request})
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			serve(w, httptest.NewRequest(http.MethodPost, test.path, bytes.NewReader(body)))
			review := &admissionv1.AdmissionReview{}
			if err := json.Unmarshal(w.Body.Bytes(), review); err != nil || review.Response == nil {
				t.Fatalf("the answer is %s: %v", w.Body, err)
			}
			if review.Response.UID != test.request.UID || review.Response.Allowed != (test.denied == "") ||
				test.denied != "" && !strings.Contains(review.Response.Result.Message, test.denied) {
				t.Errorf("the answer is %+v", review.Response)
			}
		})
	}
}

func TestRefusesWhatIsNoReview(t *testing.T) {
	for _, body := range []string{"", "{", "{}", strings.Repeat("[", 100), `{"request": "` + strings.Repeat("x", maxBody) + `"}`} {
		w := httptest.NewRecorder()
		serve(w, httptest.NewRequest(http.MethodPost, deletions, strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("code %d for %.20q", w.Code, body)
		}
	}
}
