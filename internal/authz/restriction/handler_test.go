package restriction

import (
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestMalformed checks that an invalid request of a gardenlet is never allowed.
func TestMalformed(t *testing.T) {
	for name, spoil := range map[string]func(*admissionv1.AdmissionRequest){
		"unexpected resource":    func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "quotas" },
		"same name, other group": func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "" },
		"other version":          func(r *admissionv1.AdmissionRequest) { r.Resource.Version = "v1" },
		"no version":             func(r *admissionv1.AdmissionRequest) { r.Resource.Version = "" },
		"other kind":             func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Seed" },
		"no kind":                func(r *admissionv1.AdmissionRequest) { r.Kind = metav1.GroupVersionKind{} },
		"unexpected operation":   func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect },
		"no operation":           func(r *admissionv1.AdmissionRequest) { r.Operation = "" },
		"operation in lower case": func(r *admissionv1.AdmissionRequest) {
			r.Operation = "create"
		},
		"subresource": func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" },
		"no object":   func(r *admissionv1.AdmissionRequest) { r.Object = runtime.RawExtension{} },
		"null":        func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("null") },
		"not JSON":    func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("{") },
		"two objects": func(r *admissionv1.AdmissionRequest) { r.Object.Raw = append(r.Object.Raw, r.Object.Raw...) },
		"a list":      func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("[]") },
		"another kind of object": func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"uid-seed-a"},"spec":{"seedName":"a"}}`)
		},
		"object without name": func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"spec":{"seedName":"a"}}`) },
		"other name":          func(r *admissionv1.AdmissionRequest) { r.Name = "other" },
		"other namespace": func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"name":"uid-seed-a","namespace":"x"},"spec":{"seedName":"a"}}`)
		},
		"a number for a name":    func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"metadata":{"name":1}}`) },
		"update without the old": func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update },
	} {
		for _, user := range []authenticationv1.UserInfo{gardenletA} {
			t.Run(name+" of "+user.Username, func(t *testing.T) {
				req := creation(backupBuckets, user, bucket("a"))
				if got := verdict(t, landscape().handle(req)); got != allow {
					t.Fatalf("got %d for what is not spoilt", got)
				}
				spoil(req)
				if response := landscape().handle(req); verdict(t, response) != malformed {
					t.Errorf("got %d: %s", verdict(t, response), message(response))
				}
				req.UserInfo = neither
				if got := verdict(t, landscape().handle(req)); got != allow {
					t.Errorf("got %d for another user", got)
				}
			})
		}
	}
	if response := New(landscape(), nil, nil).Handle(context.Background(), nil); response.Allowed || response.Result.Code != malformed {
		t.Errorf("no request: %v", response)
	}
}

// TestOperationsPerResource checks that operations that are not in the table are refused.
func TestOperationsPerResource(t *testing.T) {
	type ops struct{ create, update, status, delete bool }
	want := map[string]ops{
		"backupbuckets":              {true, true, true, true},
		"backupentries":              {true, true, true, true},
		"bastions":                   {true, true, true, false},
		"certificatesigningrequests": {true, false, false, false},
		"clusterrolebindings":        {true, true, false, false},
		"configmaps":                 {true, true, false, true},
		"controllerinstallations":    {false, true, true, false},
		"gardenlets":                 {true, true, true, false},
		"internalsecrets":            {true, true, false, true},
		"leases":                     {true, false, false, false},
		"managedseeds":               {false, true, true, false},
		"secrets":                    {true, true, false, true},
		"seeds":                      {true, true, true, true},
		"serviceaccounts":            {true, true, false, false},
		"shoots":                     {false, true, true, false},
		"shootstates":                {true, false, false, true},
		"workloadidentities":         {false, true, false, false},
		"workloadidentities/token":   {true, false, false, false},
	}
	registered := map[string]ops{}
	for _, rule := range Rules() {
		if len(rule.APIGroups) != 1 || len(rule.APIVersions) != 1 || len(rule.Operations) != 1 {
			t.Fatalf("%v: one group, version and operation a rule", rule)
		}
		o := registered[rule.Resources[0]]
		switch rule.Operations[0] {
		case admissionregistrationv1.Create:
			o.create = true
		case admissionregistrationv1.Update:
			o.update, o.status = true, len(rule.Resources) == 2 && rule.Resources[1] == rule.Resources[0]+"/status"
		case admissionregistrationv1.Delete:
			o.delete = true
		}
		registered[rule.Resources[0]] = o
	}
	for _, rule := range rules() {
		resource := rule.resource.Resource
		if rule.created != "" {
			continue // TestTokenOfWorkloadIdentity
		}
		if registered[resource] != want[resource] {
			t.Errorf("%s: registered for %+v, want %+v", resource, registered[resource], want[resource])
		}
		for _, check := range []struct {
			operation   admissionv1.Operation
			subresource string
			expected    bool
		}{
			{admissionv1.Create, "", want[resource].create},
			{admissionv1.Create, "status", false},
			{admissionv1.Update, "", want[resource].update},
			{admissionv1.Update, "status", want[resource].status},
			{admissionv1.Update, "binding", false},
			{admissionv1.Delete, "", want[resource].delete},
			{admissionv1.Connect, "", false},
		} {
			_, _, err := ruleFor(requestFor(*rule, check.operation, check.subresource, gardenletA, "", "x"))
			if (err == nil) != check.expected {
				t.Errorf("%s %s/%s: %v", check.operation, resource, check.subresource, err)
			}
		}
	}
	if len(registered) != len(want) {
		t.Errorf("%d resources are registered, want %d", len(registered), len(want))
	}
}

// TestGeneratedName checks requests with generateName: the name may have been generated already, or not.
func TestGeneratedName(t *testing.T) {
	for raw, want := range map[string]int32{
		`{"metadata":{"generateName":"uid-"},"spec":{"seedName":"a"}}`:                     refuse,
		`{"metadata":{"generateName":"new-"},"spec":{"seedName":"b"}}`:                     refuse,
		`{"metadata":{"generateName":"uid-","name":"uid-seed-a"},"spec":{"seedName":"a"}}`: allow,
		`{"metadata":{"generateName":"uid-","name":"uid-seed-b"},"spec":{}}`:               exists,
	} {
		req := requestFor(backupBuckets, admissionv1.Create, "", gardenletA, "", "")
		req.Object.Raw = []byte(raw)
		if response := landscape().handle(req); verdict(t, response) != want {
			t.Errorf("%s: got %d, want %d: %s", raw, verdict(t, response), want, message(response))
		}
	}
}

// FuzzHandle sends AdmissionReviews: Handle must not panic, must always answer, and must not allow a request of a
// gardenlet whose resource, kind or operation is not in the table, or whose object has another name than the request.
func FuzzHandle(f *testing.F) {
	for _, req := range []*admissionv1.AdmissionRequest{
		creation(backupBuckets, gardenletA, bucket("a")),
		creation(secrets, gardenletA, token(forManagedSeed+"garden/child.")),
		creation(clusterRoleBindings, gardenletA, binding("garden:gardenlet-bootstrap-child")),
		creation(certificateRequests, gardenletA, csr("gardener.cloud:system:seed:a")),
		creation(seeds, extensionA, newSeed("a", backupFrom("garden", "backup-b"))),
		update(managedSeeds, "", gardenletA, managedSeed("child", "on-a"), managedSeed("child", "on-a")),
		update(gardenlets, "status", gardenletA, gardenletWith("backup-a"), gardenletWith("backup-b")),
		update(shoots, "status", extensionA, shootOn("garden-dev", "on-a", "a"), shootOn("garden-dev", "on-a", "b")),
		requestFor(seeds, admissionv1.Delete, "", gardenletA, "", "leaving"),
		deletion(secrets, gardenletA, secret("garden-dev", "on-a.monitoring")),
		deletion(configMaps, extensionA, ownedBy("Shoot", "gone", "uid-gone", named[corev1.ConfigMap]("garden-dev", "gone.ca-cluster"))),
	} {
		body, err := json.Marshal(&admissionv1.AdmissionReview{Request: req})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"request":null}`))
	f.Add([]byte(`{"request":{"uid":"1","userInfo":{"username":"gardener.cloud:system:seed:a","groups":["gardener.cloud:system:seeds"]}}}`))
	w := landscape()
	f.Fuzz(func(t *testing.T, body []byte) {
		var review admissionv1.AdmissionReview
		if json.Unmarshal(body, &review) != nil {
			return
		}
		for _, user := range []authenticationv1.UserInfo{gardenletA} {
			if review.Request != nil {
				review.Request.UserInfo = user
			}
			response := w.handle(review.Request)
			if response == nil || !response.Allowed && (response.Result == nil || response.Result.Code < 400) {
				t.Fatalf("no answer, or a refusal that says nothing: %v", response)
			}
			if response.Allowed && !wellFormed(review.Request) {
				t.Fatalf("let through: %s", body)
			}
		}
	})
}

// wellFormed is an independent check of a request.
func wellFormed(req *admissionv1.AdmissionRequest) bool {
	if req == nil {
		return false
	}
	names := func(raw []byte) bool {
		var obj struct {
			Metadata struct {
				Name         string `json:"name"`
				GenerateName string `json:"generateName"`
				Namespace    string `json:"namespace"`
			} `json:"metadata"`
		}
		if utiljson.Unmarshal(raw, &obj) != nil {
			return false
		}
		m := obj.Metadata
		return (m.Name != "" || m.GenerateName != "") && (m.Name == req.Name || req.Name == "") &&
			(m.Namespace == "" || m.Namespace == req.Namespace)
	}
	for _, rule := range Rules() {
		matches := rule.APIGroups[0] == req.Resource.Group && rule.APIVersions[0] == req.Resource.Version &&
			string(rule.Operations[0]) == string(req.Operation)
		for _, resource := range rule.Resources {
			asked := req.Resource.Resource
			if req.SubResource != "" {
				asked += "/" + req.SubResource
			}
			if !matches || resource != asked {
				continue
			}
			switch req.Operation {
			case admissionv1.Delete:
				return req.Name != ""
			case admissionv1.Update:
				return names(req.Object.Raw) && names(req.OldObject.Raw)
			}
			return names(req.Object.Raw)
		}
	}
	return false
}
