package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// deletion has what a deletion after a test needs, because the context of the test is canceled by then.
type deletion struct {
	ctx     context.Context
	options metav1.DeleteOptions
}

// forget deletes something when the test is over.
func forget(t *testing.T, remove func(deletion) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		if err := remove(deletion{ctx: ctx}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// awaitRight waits until a user has a right of a new role.
func awaitRight(t *testing.T, client kubernetes.Interface, rule rbacv1.PolicyRule) {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0]},
	}}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, created)
		if err == nil && !answer.Status.Allowed {
			err = errors.New("the garden does not know the role")
		}
		return err
	})
}

func patchSecret(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"stringData": data})
	must(t, err)
	_, err = kube.CoreV1().Secrets(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// TestBootstrapTokenExpires uses a token until it expires: then the garden does not accept it, and deletes it.
func TestBootstrapTokenExpires(t *testing.T) {
	t.Parallel()
	token := newBootstrapToken(t, "boot-expires")
	expiration := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	patchSecret(t, "kube-system", token.secret, map[string]string{"expiration": expiration.Format(time.RFC3339)})
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if err := token.works(ctx); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the token has expired, but: %w", cmpError(err))
		}
		return nil
	})
	if now := time.Now(); now.Before(expiration) {
		t.Errorf("the token was refused %s before it expired", expiration.Sub(now))
	}
	if _, err := ask(t, token.kube, seedRequest(t, token.seed)); !apierrors.IsUnauthorized(err) {
		t.Errorf("a request with a token that has expired: %v", err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error { return gone(ctx, token.secret) })
	// A new token replaces it, and works.
	token = newBootstrapToken(t, "boot-expires")
	expectCertificate(t, asked(t, token.kube, seedRequest(t, token.seed)))
}

func cmpError(err error) error {
	if err == nil {
		return errors.New("it works")
	}
	return err
}

func gone(ctx context.Context, secret string) error {
	_, err := kube.CoreV1().Secrets("kube-system").Get(ctx, secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("Secret kube-system/%s is there: %w", secret, cmpError(err)) //nolint:staticcheck // a kind's name
}

// TestBootstrapTokenGoes: the suite's gardenlet got its certificate with its bootstrap token, and the token is
// deleted.
func TestBootstrapTokenGoes(t *testing.T) {
	secret := bootstrapTokenOf("garden", "local")
	user := "system:bootstrap:" + strings.TrimPrefix(secret, "bootstrap-token-")
	requests, err := kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	used := false
	for _, csr := range requests.Items {
		used = used || csr.Spec.Username == user && len(csr.Status.Certificate) > 0
	}
	if !used {
		t.Errorf("%s has got no certificate", user)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error { return gone(ctx, secret) })
}

// tokenMay has all that a bootstrap token allows. The first line is for bootstrap tokens, the others are for every
// user.
var tokenMay = map[string]string{
	"certificates.k8s.io/certificatesigningrequests": "create get",

	"authentication.k8s.io/selfsubjectreviews":       "create",
	"authentication.k8s.io/tokenreviews":             "create",
	"authorization.k8s.io/selfsubjectaccessreviews":  "create",
	"authorization.k8s.io/selfsubjectrulesreviews":   "create",
	"core.gardener.cloud/cloudprofiles":              "get list watch",
	"core.gardener.cloud/controllerregistrations":    "get list watch",
	"core.gardener.cloud/exposureclasses":            "get list watch",
	"core.gardener.cloud/seeds":                      "get list watch",
	"apiextensions.k8s.io/customresourcedefinitions": "get list watch",
}

// TestBootstrapTokenMayNothingElse sends a request for every verb of every resource of the garden with a bootstrap
// token.
func TestBootstrapTokenMayNothingElse(t *testing.T) {
	token := newBootstrapToken(t, "boot-rights")
	user := suite.NewUser(t, token.seed, token.config)
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	must(t, err)
	count, allowed := 0, map[string][]string{}
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		prefix := "/apis/"
		if !found {
			group, prefix = "", "/api/"
		}
		for _, resource := range list.APIResources {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				if !slices.Contains(resource.Verbs, verb) {
					continue
				}
				a, err := user.Send(t.Context(), methodOf(verb), pathOf(prefix+list.GroupVersion, resource, verb),
					strings.NewReader("{}"), verb == "patch", verb == "watch")
				must(t, err)
				name := group + "/" + resource.Name
				count++
				if a.Code != http.StatusForbidden {
					allowed[name] = append(allowed[name], verb)
				}
				if may := slices.Contains(strings.Fields(tokenMay[name]), verb); may == (a.Code == http.StatusForbidden) {
					t.Errorf("%s %s %s: %s", verb, list.GroupVersion, resource.Name, a)
				}
			}
		}
	}
	if count < 400 {
		t.Errorf("only %d requests", count)
	}
	t.Logf("%d requests; not forbidden: %v", count, allowed)
}

func methodOf(verb string) string {
	return map[string]string{"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}[verb]
}

// pathOf returns the path of a request for a verb of a resource, for an object "x" that does not exist.
func pathOf(path string, resource metav1.APIResource, verb string) string {
	if resource.Namespaced {
		path += "/namespaces/garden"
	}
	name, sub, isSub := strings.Cut(resource.Name, "/")
	path += "/" + name
	if isSub {
		return path + "/x/" + sub
	}
	switch verb {
	case "list", "create", "deletecollection":
		return path
	case "watch":
		return path + "?watch=true&timeoutSeconds=1"
	}
	return path + "/x"
}
