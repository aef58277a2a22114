package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const exampleReview = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{
 "resourceAttributes":{"namespace":"garden-dev","verb":"list","group":"core.gardener.cloud","version":"v1beta1",
  "resource":"shoots","subresource":"status","name":"a",
  "fieldSelector":{"requirements":[{"key":"metadata.name","operator":"In","values":["a"]},{"key":"spec.seedName","operator":"NotIn",
   "values":["x"]},
   {"key":"k","operator":"Exists"}]},
  "labelSelector":{"requirements":[{"key":"b","operator":"In","values":["x","y"]},{"key":"c","operator":"NotIn","values":["z"]},
   {"key":"d","operator":"DoesNotExist"},{"key":"e","operator":"Exists"},{"key":"f","operator":"Else"},{"key":"g","operator":"In"}]}},
 "user":"gardener.cloud:system:seed:local","uid":"u","groups":["gardener.cloud:system:seeds","system:authenticated"],
 "extra":{"k":["v","w"]}}}`

func TestAuthorizerSeesTheRequest(t *testing.T) {
	var seen authorizer.AttributesRecord
	s := serve(t, func(c *Config) {
		c.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			seen = a.(authorizer.AttributesRecord)
			return authorizer.DecisionAllow, "because", nil
		})
	})
	status, answer := s.post(AuthorizationPath, exampleReview)
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal([]byte(answer), &review); err != nil || status != http.StatusOK {
		t.Fatalf("%d %q: %v", status, answer, err)
	}
	if review.APIVersion != "authorization.k8s.io/v1" || review.Kind != "SubjectAccessReview" || !review.Status.Allowed ||
		review.Status.Denied || review.Status.Reason != "because" {
		t.Errorf("answer: %s", answer)
	}
	want := authorizer.AttributesRecord{
		User: &user.DefaultInfo{
			Name: "gardener.cloud:system:seed:local", UID: "u",
			Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}, Extra: map[string][]string{"k": {"v", "w"}},
		},
		Verb: "list", Namespace: "garden-dev", APIGroup: "core.gardener.cloud", APIVersion: "v1beta1",
		Resource: "shoots", Subresource: "status", Name: "a", ResourceRequest: true,
		FieldSelectorRequirements: fields.Requirements{
			{Field: "metadata.name", Operator: selection.Equals, Value: "a"},
			{Field: "spec.seedName", Operator: selection.NotEquals, Value: "x"},
		},
	}
	if selected := labels.NewSelector().Add(seen.LabelSelectorRequirements...).String(); selected != "b in (x,y),c notin (z),!d,e" {
		t.Errorf("the authorizer saw the labels %s", selected)
	}
	seen.LabelSelectorRequirements = nil
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("the authorizer saw\n%#v, want\n%#v", seen, want)
	}
}

func TestDecisionsInTheAnswer(t *testing.T) {
	for _, test := range []struct {
		name     string
		decision authorizer.Decision
		reason   string
		err      error
		allowed  bool
		says     string
	}{
		{"allow", authorizer.DecisionAllow, "", nil, true, ""},
		{"no opinion", authorizer.DecisionNoOpinion, "no path", nil, false, "no path"},
		{"no opinion, many lines", authorizer.DecisionNoOpinion, "no\npath\r\x00\u2028here", nil, false, "no path   here"},
		{"an error is not an allow", authorizer.DecisionAllow, "", errors.New("broken"), false, ""},
		{"deny, which there is not, is no opinion", authorizer.DecisionDeny, "no", nil, false, "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(c *Config) {
				c.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
					return test.decision, test.reason, test.err
				})
			})
			_, answer := s.post(AuthorizationPath, exampleReview)
			var review authorizationv1.SubjectAccessReview
			if err := json.Unmarshal([]byte(answer), &review); err != nil {
				t.Fatalf("%q: %v", answer, err)
			}
			if review.Status.Allowed != test.allowed || review.Status.Denied || review.Status.Reason != test.says {
				t.Errorf("status %+v", review.Status)
			}
			if (test.err != nil) != (review.Status.EvaluationError != "") {
				t.Errorf("evaluation error %q", review.Status.EvaluationError)
			}
		})
	}
}

// malformedReviews are reviews that must not reach the authorizer.
var malformedReviews = map[string]string{
	"nothing":            ``,
	"null":               `null`,
	"no JSON":            `kind: SubjectAccessReview`,
	"a list":             `[` + exampleReview + `]`,
	"cut off":            exampleReview[:len(exampleReview)-1],
	"two documents":      exampleReview + exampleReview,
	"something after it": exampleReview + `x`,
	"another kind":       strings.Replace(exampleReview, `"SubjectAccessReview"`, `"LocalSubjectAccessReview"`, 1),
	"another version":    strings.Replace(exampleReview, `authorization.k8s.io/v1"`, `authorization.k8s.io/v1beta1"`, 1),
	"no kind":            strings.Replace(exampleReview, `"kind":"SubjectAccessReview",`, ``, 1),
	"user twice":         strings.Replace(exampleReview, `"uid":"u"`, `"user":"gardener.cloud:system:seed:other"`, 1),
	"spec twice":         strings.Replace(exampleReview, `"metadata":{}`, `"spec":{"user":"x"}`, 1),
	"user is a number":   strings.Replace(exampleReview, `"gardener.cloud:system:seed:local"`, `7`, 1),
	"user in capitals": strings.NewReplacer(`"user"`, `"User"`,
		`"groups":["gardener.cloud:system:seeds","system:authenticated"]`, `"groups":[]`).Replace(exampleReview),
	"groups is a string": strings.Replace(exampleReview, `["gardener.cloud:system:seeds","system:authenticated"]`,
		`"gardener.cloud:system:seeds"`, 1),
	"no spec": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1"}`,
	"no user": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
		`"spec":{"resourceAttributes":{"verb":"get","resource":"shoots"}}}`,
	"nothing asked for": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"x"}}`,
	"both asked for": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"x",` +
		`"resourceAttributes":{"verb":"get","resource":"shoots"},"nonResourceAttributes":{"verb":"get","path":"/"}}}`,
	"no verb": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"x",` +
		`"resourceAttributes":{"resource":"shoots"}}}`,
	"no resource": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"x",` +
		`"resourceAttributes":{"verb":"get"}}}`,
	"no non-resource verb": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"x",` +
		`"nonResourceAttributes":{"path":"/"}}}`,
	"raw and parsed labels": strings.Replace(exampleReview, `"labelSelector":{`, `"labelSelector":{"rawSelector":"a=b",`, 1),
	"raw and parsed":        strings.Replace(exampleReview, `"requirements"`, `"rawSelector":"metadata.name=b","requirements"`, 1),
}

func TestMalformedReviews(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			t.Error("the authorizer was asked")
			return authorizer.DecisionAllow, "", nil
		})
	})
	for name, body := range malformedReviews {
		if status, answer := s.post(AuthorizationPath, body); status != http.StatusBadRequest || strings.Count(answer, "\n") != 1 {
			t.Errorf("%s: %d %q", name, status, answer)
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	s := serve(t, nil)
	body := strings.Replace(exampleReview, `"uid"`, `"fieldOfTheFuture":{"x":1},"uid"`, 1)
	if status, answer := s.post(AuthorizationPath, body); status != http.StatusOK {
		t.Errorf("%d %q", status, answer)
	}
}

// FuzzSubjectAccessReview checks that no body makes the handler panic, and that a body is allowed only if it has a user
// and a verb, and encoding/json can decode it.
func FuzzSubjectAccessReview(f *testing.F) {
	f.Add([]byte(exampleReview))
	for _, body := range malformedReviews {
		f.Add([]byte(body))
	}
	var asked *authorizer.AttributesRecord
	s := Server{metrics: NewMetrics(), config: Config{Synced: func() bool { return true }, Authorizer: authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			record := a.(authorizer.AttributesRecord)
			asked = &record
			return authorizer.DecisionAllow, "", nil
		})}}
	f.Fuzz(func(t *testing.T, body []byte) {
		asked = nil
		request := httptest.NewRequest(http.MethodPost, AuthorizationPath, strings.NewReader(string(body)))
		request.Header.Set("Content-Type", mediaTypeJSON)
		recorder := httptest.NewRecorder()
		s.authorize(recorder, request)
		if asked == nil {
			if recorder.Code < 400 || recorder.Code >= 500 {
				t.Fatalf("status %d although the authorizer was not asked", recorder.Code)
			}
			return
		}
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &review); err != nil {
			t.Fatalf("allowed what encoding/json cannot read: %v", err)
		}
		if asked.User.GetName() == "" && len(asked.User.GetGroups()) == 0 || asked.Verb == "" {
			t.Fatalf("allowed without a user or a verb: %+v", asked)
		}
	})
}
