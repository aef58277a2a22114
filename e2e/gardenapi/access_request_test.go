package gardenapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Requests of gardenlets and extensions as they are sent: one HTTP request each, without client-side limits or
// retries, so that exactly the request in the test is sent.

// accessRequest is a request for an object, for the objects of a namespace, or for all objects of a resource.
type accessRequest struct {
	verb, resource, sub string
	namespace, name     string
	selector            string // of fields or labels, for all objects
	body                any    // of create, update and patch
	forReal             bool   // else it is a dry run
}

func (r accessRequest) String() string {
	what := r.verb + " " + r.resource
	if r.sub != "" {
		what += "/" + r.sub
	}
	return strings.TrimSpace(what + " " + strings.TrimPrefix(r.namespace+"/"+r.name, "/") + " " + r.selector)
}

func reading(resource, namespace, name string) accessRequest {
	return accessRequest{verb: "get", resource: resource, namespace: namespace, name: name}
}

func patching(resource, sub, namespace, name, format string, args ...any) accessRequest {
	return accessRequest{verb: "patch", resource: resource, sub: sub, namespace: namespace, name: name,
		body: rawJSON(fmt.Sprintf(format, args...)), forReal: true}
}

func creating(object map[string]any) accessRequest {
	obj := &unstructured.Unstructured{Object: object}
	return accessRequest{verb: "create", resource: resourceOf(obj.GetKind()), namespace: obj.GetNamespace(), body: object, forReal: true}
}

func deleting(resource, namespace, name string) accessRequest {
	return accessRequest{verb: "delete", resource: resource, namespace: namespace, name: name, forReal: true}
}

// rawJSON is a body that is sent as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// accessUser is a user who sends requests.
type accessUser struct{ *suite.User }

func gardenletUser(t *testing.T, dir, seed string) *accessUser {
	t.Helper()
	return &accessUser{suite.GardenletUser(t, dir, seed)}
}

func tokenUser(t *testing.T, w *accessWorld, namespace, account string) *accessUser {
	t.Helper()
	return &accessUser{suite.TokenUser(t, w.kube, w.config, namespace, account)}
}

// do sends a request. It returns an error if there was no answer.
func (u *accessUser) do(ctx context.Context, r accessRequest) (answer, error) {
	method, path := r.target()
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(data)
	}
	return u.Send(ctx, method, path, body, r.verb == "patch", r.verb == "watch")
}

// target returns the method and path of a request.
func (r accessRequest) target() (method, path string) {
	in := accessResources[r.resource]
	path = in.Path
	if in.Namespaced && r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	path += "/" + in.Name
	query := url.Values{}
	if !r.forReal && r.verb != "get" && r.verb != "list" && r.verb != "watch" {
		query.Set("dryRun", "All")
	}
	method = map[string]string{"create": "POST", "get": "GET", "list": "GET", "watch": "GET", "update": "PUT",
		"patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}[r.verb]
	switch r.verb {
	case "list", "watch", "deletecollection":
		if r.name != "" {
			query.Set("fieldSelector", "metadata.name="+r.name)
		}
		if strings.Contains(r.selector, "/") { // labels have a prefix here
			query.Set("labelSelector", r.selector)
		} else if r.selector != "" {
			query.Set("fieldSelector", r.selector)
		}
		if r.verb == "watch" {
			query.Set("watch", "true")
			query.Set("timeoutSeconds", "1")
		}
	case "create":
		if r.sub != "" {
			path += "/" + r.name + "/" + r.sub
		}
	default:
		path += "/" + r.name
		if r.sub != "" {
			path += "/" + r.sub
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return method, path
}

// may asks the API server whether the user is authorized, by a SelfSubjectAccessReview.
func (u *accessUser) may(ctx context.Context, r accessRequest) (bool, string, error) {
	in := accessResources[r.resource]
	return u.May(ctx, authorizationv1.ResourceAttributes{
		Verb: r.verb, Group: in.Group, Resource: in.Name, Subresource: r.sub, Namespace: r.namespace, Name: r.name,
	})
}

// must sends a request that has to be answered.
func (u *accessUser) must(t *testing.T, r accessRequest) answer {
	t.Helper()
	a, err := u.do(t.Context(), r)
	must(t, err)
	return a
}

// isAuthorized returns an error unless a user may make a request.
func (w *accessWorld) isAuthorized(ctx context.Context, who *accessUser, verb, resource, namespace, name string) error {
	r := accessRequest{verb: verb, resource: resource, namespace: namespace, name: name}
	allowed, why, err := who.may(ctx, r)
	if err == nil && !allowed {
		err = fmt.Errorf("%s may not %s: %s", who.Name, r, why)
	}
	return err
}
