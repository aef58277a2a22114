package express

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/warning"

	"github.com/gardenlite/gardenlite/internal/garden/registry/sharedreads"
	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// kubeconfigs answers with the name of who asks and the seconds that are asked for.
type kubeconfigs struct{ err error }

func (kubeconfigs) New() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} }
func (kubeconfigs) Destroy()            {}
func (kubeconfigs) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1alpha1.SchemeGroupVersion.WithKind("AdminKubeconfigRequest")
}

func (k kubeconfigs) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if err := errors.Join(k.err, admit(ctx, obj)); err != nil {
		return nil, err
	}
	who, _ := request.UserFrom(ctx)
	answer := obj.DeepCopyObject().(*authenticationv1alpha1.AdminKubeconfigRequest)
	answer.Status.Kubeconfig = fmt.Appendf(nil, "%s %s/%s %d", who.GetName(), request.NamespaceValue(ctx), name, *answer.Spec.ExpirationSeconds)
	return answer, nil
}

// plugin is an admission plugin.
type plugin struct {
	mutate, validate error
	warn, again      bool
}

func (plugin) Handles(operation admission.Operation) bool { return operation == admission.Create }

func (p plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.warn {
		warning.AddWarning(ctx, "", "careful")
	}
	if p.again {
		a.GetReinvocationContext().SetShouldReinvoke()
	}
	if a.GetResource().Resource+"/"+a.GetSubresource() != "shoots/adminkubeconfig" || a.GetName() != "x" || a.GetNamespace() != "garden-dev" || a.GetUserInfo().GetName() != "alice" || a.GetKind().Kind != "AdminKubeconfigRequest" {
		return fmt.Errorf("this is %+v", a)
	}
	return p.mutate
}

func (p plugin) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return p.validate
}

// forUpdates is a plugin that is not to be asked.
type forUpdates struct{ t *testing.T }

func (forUpdates) Handles(operation admission.Operation) bool { return operation == admission.Update }

func (f forUpdates) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	f.t.Error("a plugin for updates is asked")
	return nil
}

func (f forUpdates) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return f.Admit(ctx, a, o)
}

type sink struct{ audit.Backend }

func plainConfig() *Config {
	cfg := &Config{
		Server: &server.Config{
			RequestTimeout:      time.Minute,
			RequestInfoResolver: &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")},
		},
		Scheme: scheme.Scheme, Resource: corev1beta1.SchemeGroupVersion.WithResource("shoots"),
		Subresources: map[string]Subresource{"adminkubeconfig": kubeconfigs{}},
	}
	cfg.Server.Authentication.APIAudiences = authenticator.Audiences{"api"}
	return cfg
}

// TestWay: what is plain and what everybody agrees to is answered; all else is left to the other way as it came.
func TestWay(t *testing.T) {
	const path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots/x/adminkubeconfig"
	const kind = `"kind":"AdminKubeconfigRequest","apiVersion":"authentication.gardener.cloud/v1alpha1"`
	type world struct {
		request *http.Request
		cfg     *Config
		storage *kubeconfigs
		plugin  *plugin
		who     *authenticator.Response
		allow   *authorizer.Decision
	}
	header := func(name string, values ...string) func(*world) {
		return func(w *world) { w.request.Header[name] = values }
	}
	url := func(path string) func(*world) {
		return func(w *world) {
			body, header := w.request.Body, w.request.Header
			w.request = httptest.NewRequest(w.request.Method, path, body)
			w.request.Header, w.request.ContentLength = header, 2
		}
	}
	body := func(text string) func(*world) {
		return func(w *world) {
			header := w.request.Header
			w.request = httptest.NewRequest(w.request.Method, path, strings.NewReader(text))
			w.request.Header = header
		}
	}
	nobody := errors.New("no")
	for name, test := range map[string]struct {
		change func(*world)
		answer string // "" if it takes the other way
	}{
		"plain":                       {func(*world) {}, "alice garden-dev/x 3600"},
		"as client-go asks":           {header("Accept", "application/json, */*"), "alice garden-dev/x 3600"},
		"as Go does":                  {header("Accept-Encoding", "gzip"), "alice garden-dev/x 3600"},
		"with a token":                {header("Authorization", "Bearer x"), "alice garden-dev/x 3600"},
		"kind and time":               {body(`{` + kind + `,"metadata":{"creationTimestamp":null},"spec":{"expirationSeconds":600},"status":{"expirationTimestamp":null}}`), "alice garden-dev/x 600"},
		"impersonation":               {header("Impersonate-User", "bob"), ""},
		"impersonation, odd spelling": {header("impersonate-user", "bob"), ""},
		"front proxy":                 {header("X-Remote-User", "bob"), ""},
		"a header nobody knows":       {header("X-Other", "1"), ""},
		"an audit ID":                 {header("Audit-Id", "1"), ""},
		"two tokens":                  {header("Authorization", "Bearer x", "Bearer y"), ""},
		"origin":                      {header("Origin", "https://example.com"), ""},
		"protobuf wanted":             {header("Accept", "application/vnd.kubernetes.protobuf"), ""},
		"a table wanted":              {header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"), ""},
		"protobuf sent":               {header("Content-Type", "application/vnd.kubernetes.protobuf"), ""},
		"no content type":             {func(w *world) { w.request.Header.Del("Content-Type") }, ""},
		"curl":                        {header("User-Agent", "curl/8"), ""},
		"dry run":                     {url(path + "?dryRun=All"), ""},
		"another subresource":         {url(strings.ReplaceAll(path, "adminkubeconfig", "otherkubeconfig")), ""},
		"another resource":            {url(strings.ReplaceAll(path, "shoots", "seeds")), ""},
		"another group":               {url(strings.ReplaceAll(path, "core.", "other.")), ""},
		"another version":             {url(strings.ReplaceAll(path, "v1beta1", "v1")), ""},
		"no namespace":                {url(strings.ReplaceAll(path, "namespaces/garden-dev/", "")), ""},
		"deeper":                      {url(path + "/adminkubeconfig"), ""},
		"prefix":                      {url("/api" + strings.TrimPrefix(path, "/apis")), ""},
		"another method":              {func(w *world) { w.request.Method = http.MethodPut }, ""},
		"no length":                   {func(w *world) { w.request.ContentLength = -1 }, ""},
		"a trailer":                   {func(w *world) { w.request.Trailer = http.Header{"X": nil} }, ""},
		"more than it says":           {func(w *world) { w.request.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", maxBody+10))) }, ""},
		"large":                       {body("{}" + strings.Repeat(" ", maxBody)), ""},
		"no JSON":                     {body("spec: {}"), ""},
		"two objects":                 {body("{}{}"), ""},
		"unknown field":               {body(`{"spec":{"expires":1}}`), ""},
		"the same field twice":        {body(`{"spec":{"expirationSeconds":600,"expirationSeconds":700}}`), ""},
		"another spelling":            {body(`{"Spec":{"expirationSeconds":600}}`), ""},
		"another kind":                {body(`{"kind":"ViewerKubeconfigRequest","apiVersion":"authentication.gardener.cloud/v1alpha1"}`), ""},
		"half a kind":                 {body(`{"kind":"AdminKubeconfigRequest"}`), ""},
		"metadata":                    {body(`{"metadata":{"name":"y"}}`), ""},
		"not authenticated":           {func(w *world) { w.who = nil }, ""},
		"anonymous": {func(w *world) {
			w.who.User = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
		}, ""},
		"for another audience": {func(w *world) { w.who.Audiences = authenticator.Audiences{"other"} }, ""},
		"for this audience":    {func(w *world) { w.who.Audiences = authenticator.Audiences{"api", "other"} }, "alice garden-dev/x 3600"},
		"denied":               {func(w *world) { *w.allow = authorizer.DecisionDeny }, ""},
		"nobody allows it":     {func(w *world) { *w.allow = authorizer.DecisionNoOpinion }, ""},
		"mutation refuses":     {func(w *world) { w.plugin.mutate = nobody }, ""},
		"validation refuses":   {func(w *world) { w.plugin.validate = nobody }, ""},
		"a warning":            {func(w *world) { w.plugin.warn = true }, ""},
		"mutation once more":   {func(w *world) { w.plugin.again = true }, ""},
		"the storage refuses":  {func(w *world) { w.storage.err = nobody }, ""},
		"audit":                {func(w *world) { w.cfg.Server.AuditBackend = sink{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			allow := authorizer.DecisionAllow
			w := &world{
				request: httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")), storage: &kubeconfigs{}, plugin: &plugin{}, allow: &allow,
				who: &authenticator.Response{User: &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}},
			}
			w.request.Header.Set("Content-Type", "application/json")
			w.cfg = plainConfig()
			w.cfg.Server.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
				r.Header.Del("Authorization") // as that for tokens does
				return w.who, w.who != nil, nil
			})
			w.cfg.Server.Authorization.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetVerb() != "create" || a.GetResource()+"/"+a.GetSubresource() != "shoots/adminkubeconfig" || a.GetNamespace() != "garden-dev" || a.GetName() != "x" || a.GetUser().GetName() != "alice" {
					t.Errorf("to be authorized is %+v", a)
				}
				return allow, "", nil
			})
			test.change(w)
			w.cfg.Admission, w.cfg.Subresources = []admission.Interface{forUpdates{t}, *w.plugin}, map[string]Subresource{"adminkubeconfig": *w.storage}

			before, err := io.ReadAll(w.request.Body)
			if err != nil {
				t.Fatal(err)
			}
			w.request.Body = io.NopCloser(bytes.NewReader(before))
			headers, other := w.request.Header.Clone(), false
			recorder := httptest.NewRecorder()
			New(*w.cfg)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				other = true
				after, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(before, after) || fmt.Sprint(headers) != fmt.Sprint(r.Header) {
					t.Errorf("the other way gets %q with %v, %v; not %q with %v", after, r.Header, err, before, headers)
				}
				if _, ok := request.UserFrom(r.Context()); ok {
					t.Error("the other way is told who asks")
				}
			})).ServeHTTP(recorder, w.request)
			if other != (test.answer == "") {
				t.Fatalf("the other way: %v", other)
			}
			if other {
				if len(recorder.Header()) > 0 || recorder.Body.Len() > 0 {
					t.Errorf("there is an answer: %v %s", recorder.Header(), recorder.Body)
				}
				return
			}
			answer, _, err := scheme.Codecs.UniversalDeserializer().Decode(recorder.Body.Bytes(), nil, nil)
			if got, ok := answer.(*authenticationv1alpha1.AdminKubeconfigRequest); err != nil || !ok || string(got.Status.Kubeconfig) != test.answer || recorder.Code != http.StatusCreated {
				t.Errorf("%d %v: %s", recorder.Code, err, recorder.Body)
			}
			if recorder.Header().Get("Audit-Id") == "" || recorder.Header().Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", recorder.Header())
			}
		})
	}
}

// TestWayDecides: requests share a decision only if it was made after they came, and for the same user, shoot and subresource.
// Whoever may no more gets nothing from what was decided before.
func TestWayDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		allow := true
		cfg := plainConfig()
		cfg.Server.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: r.UserAgent()}}, true, nil
		})
		cfg.Server.Authorization.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			asked = append(asked, a.GetUser().GetName()+" "+a.GetNamespace()+"/"+a.GetName())
			if allow {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
		w := newWay(*cfg)
		came := time.Now()
		answer := func(who, shoot string, came time.Time) string {
			t.Helper()
			time.Sleep(time.Millisecond)
			r := httptest.NewRequest(http.MethodPost, "/apis/core.gardener.cloud/v1beta1/namespaces/"+strings.ReplaceAll(shoot, "/", "/shoots/")+"/adminkubeconfig", strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("User-Agent", who)
			send := w.answer(r.WithContext(sharedreads.WithArrival(r.Context(), came)))
			if send == nil {
				return ""
			}
			recorder := httptest.NewRecorder()
			send(recorder)
			obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(recorder.Body.Bytes(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			return string(obj.(*authenticationv1alpha1.AdminKubeconfigRequest).Status.Kubeconfig)
		}
		expect := func(got, want string, questions ...string) {
			t.Helper()
			if got != want || !slices.Equal(asked, questions) {
				t.Errorf("%q, %q asked; want %q, %q", got, asked, want, questions)
			}
			asked = nil
		}
		expect(answer("alice", "a/x", came), "alice a/x 3600", "alice a/x")
		expect(answer("alice", "a/x", came), "alice a/x 3600")
		expect(answer("bob", "a/x", came), "bob a/x 3600", "bob a/x")
		expect(answer("alice", "a/y", came), "alice a/y 3600", "alice a/y")
		expect(answer("alice", "b/x", came), "alice b/x 3600", "alice b/x")
		expect(answer("bob", "a/x", came), "bob a/x 3600")
		allow = false
		expect(answer("alice", "a/x", time.Now()), "", "alice a/x")
		expect(answer("alice", "a/x", came), "") // the last one is the one that counts
		allow = true
		expect(answer("alice", "a/x", time.Now()), "alice a/x 3600", "alice a/x")
	})
}
