package landscape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

// flowHeader is what only the long way answers with: the short one has no queues.
const flowHeader = "X-Kubernetes-Pf-Flowschema-Uid"

// gardenAnswer is what came of a request.
type gardenAnswer struct {
	short  bool
	status int
	header []string
	body   map[string]any
	// user is who has the kubeconfig.
	user string
}

// answerAlike asks for kubeconfigs by both ways: the answers differ in nothing but the credentials, and only who may have one
// gets it.
func answerAlike(t *testing.T, admin *rest.Config, key shootclient.Key) {
	kube := kubernetes.NewForConfigOrDie(admin)
	namespace := "garden-" + key.Project
	post := func(config *rest.Config, path, body string, header map[string]string) gardenAnswer {
		t.Helper()
		transport, err := rest.TransportFor(config)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			r.Header.Set(name, value)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		a := gardenAnswer{short: response.Header.Get(flowHeader) == "" && response.StatusCode == http.StatusCreated, status: response.StatusCode, header: slices.Sorted(maps.Keys(response.Header))}
		a.header = slices.DeleteFunc(a.header, func(name string) bool { return strings.HasPrefix(name, "X-Kubernetes-Pf-") })
		if err := json.Unmarshal(data, &a.body); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if status, ok := a.body["status"].(map[string]any); ok {
			var encoded []byte
			if err := json.Unmarshal(fmt.Appendf(nil, "%q", status["kubeconfig"]), &encoded); err != nil {
				t.Fatal(err)
			}
			if given, err := clientcmd.RESTConfigFromKubeConfig(encoded); err != nil {
				t.Errorf("the kubeconfig: %v", err)
			} else if review, err := kubernetes.NewForConfigOrDie(given).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err != nil {
				t.Errorf("the kubeconfig does not work: %v", err)
			} else {
				a.user = review.Status.UserInfo.Username
			}
			a.body["status"] = slices.Sorted(maps.Keys(status))
		}
		return a
	}
	path := func(subresource string) string {
		return "/apis/core.gardener.cloud/v1beta1/namespaces/" + namespace + "/shoots/" + key.Name + "/" + subresource
	}
	equal := func(a, b gardenAnswer) bool {
		first, errA := json.Marshal([]any{a.status, a.header, a.body})
		second, errB := json.Marshal([]any{b.status, b.header, b.body})
		return errA == nil && errB == nil && bytes.Equal(first, second)
	}

	const longWay = "X-Other"
	for name, body := range map[string]string{
		"adminkubeconfig":  `{}`,
		"viewerkubeconfig": `{"spec":{"expirationSeconds":900}}`,
	} {
		short, long := post(admin, path(name), body, nil), post(admin, path(name), body, map[string]string{longWay: "1"})
		if !short.short || long.short {
			t.Errorf("%s: one is short: %v, the other one: %v", name, short.short, long.short)
		}
		if short.user == "" || short.user != long.user || !equal(short, long) {
			t.Errorf("%s: the short way answers\n%+v, the long one\n%+v", name, short, long)
		}
	}
	if as := post(admin, path("adminkubeconfig"), `{}`, map[string]string{"Impersonate-User": "carol", "Impersonate-Group": "system:masters"}); as.short || as.user != "carol" {
		t.Errorf("as somebody else: %+v", as)
	}
	for _, wrong := range []struct {
		path, body string
		status     int
	}{
		{path("adminkubeconfig"), `{"spec":{"expirationSeconds":599}}`, http.StatusUnprocessableEntity},
		{path("adminkubeconfig"), `{`, http.StatusBadRequest},
		{path("adminkubeconfig"), `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1"}`, http.StatusBadRequest},
		{strings.ReplaceAll(path("adminkubeconfig"), key.Name, "none"), `{}`, http.StatusNotFound},
		{strings.ReplaceAll(path("adminkubeconfig"), namespace, "default"), `{}`, http.StatusNotFound},
	} {
		if got := post(admin, wrong.path, wrong.body, nil); got.status != wrong.status || got.short {
			t.Errorf("%s with %s: %+v", wrong.path, wrong.body, got)
		}
	}

	// A token of a service account without rights, then with them.
	accounts := kube.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), "pipeline", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer, anonymous := rest.AnonymousClientConfig(admin), rest.AnonymousClientConfig(admin)
	header := map[string]string{"Authorization": "Bearer " + token.Status.Token}
	if got := post(bearer, path("adminkubeconfig"), `{}`, header); got.status != http.StatusForbidden || got.short {
		t.Errorf("without the right: %+v", got)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{"shoots/adminkubeconfig"}, Verbs: []string{"create"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pipeline"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "pipeline"}}}
	if _, err := kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var with gardenAnswer
	for with.status != http.StatusCreated && t.Context().Err() == nil { // until the right counts
		with = post(bearer, path("adminkubeconfig"), `{}`, header)
	}
	if !with.short || with.user != "system:serviceaccount:"+namespace+":pipeline" {
		t.Errorf("with the right: %+v", with)
	}
	if got := post(bearer, path("viewerkubeconfig"), `{}`, header); got.status != http.StatusForbidden || got.short {
		t.Errorf("with the right to the other kind: %+v", got)
	}
	for what, header := range map[string]map[string]string{"nobody": nil, "a wrong token": {"Authorization": "Bearer x"}} {
		if got := post(anonymous, path("adminkubeconfig"), `{}`, header); got.short || got.status != http.StatusUnauthorized && got.status != http.StatusForbidden {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
