package suite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// Verbs are the verbs of the Kubernetes API.
var Verbs = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}

// User sends requests as they are: one HTTP request each, without limits or retries of a client, so that exactly the
// request in the test is sent.
type User struct {
	Name   string
	Config *rest.Config
	client *http.Client
}

// NewUser returns the user of a client configuration.
func NewUser(t *testing.T, name string, config *rest.Config) *User {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Timeout = time.Minute
	client, err := rest.HTTPClientFor(config)
	Must(t, err)
	return &User{name, config, client}
}

// CertificateUser returns a user with a client certificate of "gardenlite kubeconfig".
func CertificateUser(t *testing.T, dir, user string, groups ...string) *User {
	t.Helper()
	args := []string{"kubeconfig", "--user", user}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(Gardenlite(t, dir, args...).OK(t).Stdout))
	Must(t, err)
	return NewUser(t, user, config)
}

// GardenletUser returns a user with the identity of a seed's gardenlet.
func GardenletUser(t *testing.T, dir, seed string) *User {
	t.Helper()
	return CertificateUser(t, dir, "gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
}

// TokenUser returns a ServiceAccount as a user, with a token from the subresource.
func TokenUser(t *testing.T, kube kubernetes.Interface, admin *rest.Config, namespace, account string) *User {
	t.Helper()
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(
		t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return NewUser(t, namespace+":"+account, config)
}

// Answer is the response to a request.
type Answer struct {
	Code    int
	Message string
	Body    []byte
}

func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Code, a.Message) }

// OK reports whether the request succeeded.
func (a Answer) OK() bool { return a.Code/100 == 2 }

// NoOpinion reports whether no authorizer allowed the request.
func (a Answer) NoOpinion() bool {
	return a.Code == http.StatusForbidden && strings.Contains(a.Message, " cannot ") &&
		strings.Contains(a.Message, ` resource "`) && !a.Rejected()
}

// Rejected reports whether the SeedRestriction refused the request.
func (a Answer) Rejected() bool { return strings.Contains(a.Message, "denied the request") }

// Send sends a request. It returns an error if there was no answer.
func (u *User) Send(ctx context.Context, method, path string, body io.Reader, patch, headerOnly bool) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(u.Config.Host, "/")+path, body)
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if patch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := u.client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	a := Answer{Code: response.StatusCode}
	if headerOnly && a.OK() {
		return a, nil
	}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return Answer{}, err
	}
	if !a.OK() {
		var status metav1.Status
		_ = json.Unmarshal(a.Body, &status)
		a.Message = cmp.Or(status.Message, strings.TrimSpace(string(a.Body))) // an authorizer's error is no Status
	}
	return a, nil
}

// May asks the API server whether the user is authorized, by a SelfSubjectAccessReview.
func (u *User) May(ctx context.Context, attributes authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	data, err := json.Marshal(review)
	if err != nil {
		return false, "", err
	}
	a, err := u.Send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", bytes.NewReader(data), false, false)
	if err == nil && !a.OK() {
		err = fmt.Errorf("asking whether %s may %+v: %s", u.Name, attributes, a)
	}
	if err == nil {
		err = json.Unmarshal(a.Body, &review)
	}
	if err == nil && review.Status.EvaluationError != "" {
		err = fmt.Errorf("asking whether %s may %+v: %s", u.Name, attributes, review.Status.EvaluationError)
	}
	return review.Status.Allowed, review.Status.Reason, err
}
