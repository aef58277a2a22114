package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Requests of gardenlets and extensions as they go over the wire: one HTTP request each, no client-side limits or retries,
// so that what is asked is what is written in the test.

// accessResource is where the objects of a resource are.
type accessResource struct {
	path       string // below the server's address, up to the group's version
	group      string
	resource   string
	namespaced bool
}

// accessResources are the document's resources by their names there.
var accessResources = func() map[string]accessResource {
	all := map[string]accessResource{
		"events.events.k8s.io": {"/apis/events.k8s.io/v1", "events.k8s.io", "events", true},
	}
	add := func(path, group, names string, namespaced bool) {
		for name := range strings.FieldsSeq(names) {
			all[name] = accessResource{path, group, name, namespaced}
		}
	}
	const cluster, namespaced = false, true
	add("/api/v1", "", "namespaces", cluster)
	add("/api/v1", "", "configmaps secrets serviceaccounts events", namespaced)
	add("/apis/certificates.k8s.io/v1", "certificates.k8s.io", "certificatesigningrequests", cluster)
	add("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io", "clusterrolebindings clusterroles", cluster)
	add("/apis/coordination.k8s.io/v1", "coordination.k8s.io", "leases", namespaced)
	add("/apis/core.gardener.cloud/v1beta1", "core.gardener.cloud",
		"backupbuckets cloudprofiles controllerinstallations controllerregistrations exposureclasses projects seeds", cluster)
	add("/apis/core.gardener.cloud/v1", "core.gardener.cloud", "controllerdeployments", cluster)
	add("/apis/core.gardener.cloud/v1beta1", "core.gardener.cloud", "backupentries internalsecrets namespacedcloudprofiles secretbindings shoots shootstates quotas", namespaced)
	add("/apis/operations.gardener.cloud/v1alpha1", "operations.gardener.cloud", "bastions", namespaced)
	add("/apis/security.gardener.cloud/v1alpha1", "security.gardener.cloud", "credentialsbindings workloadidentities", namespaced)
	add("/apis/seedmanagement.gardener.cloud/v1alpha1", "seedmanagement.gardener.cloud", "gardenlets managedseeds", namespaced)
	return all
}()

// accessRequest is a request for an object, or for those of a namespace, or all, of a resource.
type accessRequest struct {
	verb, resource, sub string
	namespace, name     string
	body                any  // of create, update and patch
	forReal             bool // else it is a dry run
}

func (r accessRequest) String() string {
	what := r.verb + " " + r.resource
	if r.sub != "" {
		what += "/" + r.sub
	}
	return what + " " + strings.TrimPrefix(r.namespace+"/"+r.name, "/")
}

// accessUser is one who asks.
type accessUser struct {
	name   string
	config *rest.Config
	client *http.Client
}

func newAccessUser(name string, config *rest.Config) (*accessUser, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 30 * time.Second
	client, err := rest.HTTPClientFor(config)
	return &accessUser{name, config, client}, err
}

// certificateUser has a client certificate, made with the command line.
func certificateUser(t *testing.T, dir, user string, groups ...string) *accessUser {
	t.Helper()
	args := []string{"kubeconfig", "--user", user}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(gardenlite(t, dir, args...).ok(t).stdout))
	must(t, err)
	u, err := newAccessUser(user, config)
	must(t, err)
	return u
}

func gardenletUser(t *testing.T, dir, seed string) *accessUser {
	t.Helper()
	return certificateUser(t, dir, "gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
}

// tokenUser is a ServiceAccount, with a token from the subresource.
func tokenUser(t *testing.T, kube kubernetes.Interface, admin *rest.Config, namespace, account string) *accessUser {
	t.Helper()
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, created)
	must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	u, err := newAccessUser(namespace+":"+account, config)
	must(t, err)
	return u
}

// answer is what became of a request.
type answer struct {
	code    int
	message string
	body    []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.code, a.message) }

func (a answer) ok() bool { return a.code/100 == 2 }

// noOpinion says whether no authorizer let it through.
func (a answer) noOpinion() bool {
	return a.code == http.StatusForbidden && strings.Contains(a.message, " cannot ") && strings.Contains(a.message, ` resource "`) && !a.rejected()
}

// rejected says whether the SeedRestriction refused it.
func (a answer) rejected() bool { return strings.Contains(a.message, "denied the request") }

// do sends a request. The error says that there was no answer.
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
	return u.send(ctx, method, path, body, r.verb == "patch", r.verb == "watch")
}

// target is the method and path of a request.
func (r accessRequest) target() (method, path string) {
	in := accessResources[r.resource]
	path = in.path
	if in.namespaced && r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	path += "/" + in.resource
	query := url.Values{}
	if !r.forReal && r.verb != "get" && r.verb != "list" && r.verb != "watch" {
		query.Set("dryRun", "All")
	}
	method = map[string]string{"create": "POST", "get": "GET", "list": "GET", "watch": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}[r.verb]
	switch r.verb {
	case "list", "watch", "deletecollection":
		if r.name != "" {
			query.Set("fieldSelector", "metadata.name="+r.name)
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

func (u *accessUser) send(ctx context.Context, method, path string, body io.Reader, patch, headerOnly bool) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(u.config.Host, "/")+path, body)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if patch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := u.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{code: response.StatusCode}
	if headerOnly && a.ok() {
		return a, nil
	}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return answer{}, err
	}
	if !a.ok() {
		var status metav1.Status
		_ = json.Unmarshal(a.body, &status)
		a.message = status.Message
	}
	return a, nil
}

// may asks the API server whether the user is authorized, by a SelfSubjectAccessReview of his own.
func (u *accessUser) may(ctx context.Context, r accessRequest) (bool, string, error) {
	in := accessResources[r.resource]
	attributes := &authorizationv1.ResourceAttributes{
		Verb: r.verb, Group: in.group, Resource: in.resource, Subresource: r.sub, Namespace: r.namespace, Name: r.name,
	}
	data, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	})
	if err != nil {
		return false, "", err
	}
	a, err := u.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", bytes.NewReader(data), false, false)
	if err != nil {
		return false, "", err
	}
	if !a.ok() {
		return false, "", fmt.Errorf("asking whether %s may %s: %s", u.name, r, a)
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(a.body, &review); err != nil {
		return false, "", err
	}
	if review.Status.EvaluationError != "" {
		return false, "", fmt.Errorf("asking whether %s may %s: %s", u.name, r, review.Status.EvaluationError)
	}
	return review.Status.Allowed, review.Status.Reason, nil
}

// must sends a request that has to be answered.
func (u *accessUser) must(t *testing.T, r accessRequest) answer {
	t.Helper()
	a, err := u.do(t.Context(), r)
	must(t, err)
	return a
}

// graphDelay is how long a change may take until it is in the graph, with room for a busy machine. A path that is gone is
// gone sooner: TestAccessWhileWriting measures that.
const graphDelay = 5 * time.Second

// isAuthorized is an error unless a user may do something.
func (w *accessWorld) isAuthorized(ctx context.Context, who *accessUser, verb, resource, namespace, name string) error {
	r := accessRequest{verb: verb, resource: resource, namespace: namespace, name: name}
	allowed, why, err := who.may(ctx, r)
	if err == nil && !allowed {
		err = fmt.Errorf("%s may not %s: %s", who.name, r, why)
	}
	return err
}
