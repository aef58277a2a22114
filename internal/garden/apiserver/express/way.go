package express

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/warning"
	kjson "sigs.k8s.io/json"

	"github.com/gardenlite/gardenlite/internal/garden/registry/sharedreads"
)

// maxBody bounds what is read of a request, in bytes. The requests have some hundred.
const maxBody = 64 << 10

// plainHeaders are what a request may have. What others ask for is not known here.
var plainHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Authorization": true, "Content-Length": true, "Content-Type": true, "User-Agent": true,
}

// browsers are the beginnings of User-Agents that get indented JSON from Kubernetes.
var browsers = []string{"curl", "Wget", "Mozilla/5.0"}

// Subresource is a subresource that requests are for.
type Subresource interface {
	rest.NamedCreater
	rest.GroupVersionKindProvider
}

// Config is what the two ways of a server have in common.
type Config struct {
	// Server is the configuration of the server behind the other way.
	Server *server.Config
	// Admission are the plugins that the server's configuration has, in their order, without its metrics: they take longer than
	// the plugins.
	Admission []admission.Interface
	Scheme    *runtime.Scheme
	// Resource is what the subresources are of.
	Resource     schema.GroupVersionResource
	Subresources map[string]Subresource
}

// way is the short way.
type way struct {
	Config
	plugins   plugins
	objects   admission.ObjectInterfaces
	decisions *sharedreads.Reads[question, authorizer.Decision]
	bodies    sync.Map // *decoded, by kind
	date      atomic.Pointer[date]
}

// New makes what belongs in front of everything else that requests go through.
func New(cfg Config) func(next http.Handler) http.Handler {
	w := newWay(cfg)
	return func(next http.Handler) http.Handler { return newGate(w.answer, next) }
}

func newWay(cfg Config) *way {
	return &way{Config: cfg, plugins: forCreate(cfg.Admission), objects: admission.NewObjectInterfacesFromScheme(cfg.Scheme), decisions: sharedreads.New[question, authorizer.Decision]()}
}

// errOtherWay is for requests that the short way is not open to.
var errOtherWay = errors.New("this takes the other way")

// answer finds the answer for a request, and returns what sends it. If there is none, the request is as before.
func (s *way) answer(r *http.Request) func(http.ResponseWriter) {
	began := time.Now()
	if !s.isPlain(r) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	r.Body = readCloser{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil || len(body) > maxBody {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Server.RequestTimeout)
	defer cancel()
	ctx, answer, err := s.create(ctx, r, body)
	if err != nil {
		return nil
	}
	return func(w http.ResponseWriter) {
		header := w.Header()
		header.Set(auditinternal.HeaderAuditID, uuid.NewString())
		header.Set("Cache-Control", "no-cache, private")
		header.Set("Content-Type", runtime.ContentTypeJSON)
		header.Set("Date", s.today(time.Now()))
		w.WriteHeader(http.StatusCreated)
		size, _ := w.Write(answer) // who is gone gets nothing
		info, _ := request.RequestInfoFrom(ctx)
		metrics.MonitorRequest(r.WithContext(ctx), "POST", info.APIGroup, info.APIVersion, info.Resource, info.Subresource, metrics.CleanScope(info),
			metrics.APIServerComponent, false, "", http.StatusCreated, size, time.Since(began))
	}
}

// date is what the header Date says in a second.
type date struct {
	second int64
	text   string
}

// today is the header Date.
func (s *way) today(now time.Time) string {
	if d := s.date.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
	s.date.Store(d)
	return d.text
}

type readCloser struct {
	io.Reader
	io.Closer
}

// isPlain says whether a request asks for no more than JSON for JSON.
func (s *way) isPlain(r *http.Request) bool {
	if s.Server.AuditBackend != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" || r.ContentLength < 0 || r.ContentLength > maxBody || len(r.Trailer) > 0 {
		return false
	}
	for name, values := range r.Header {
		if !plainHeaders[name] || len(values) != 1 {
			return false
		}
	}
	for _, browser := range browsers {
		if strings.HasPrefix(r.UserAgent(), browser) {
			return false
		}
	}
	accept := r.Header.Get("Accept")
	return r.Header.Get("Content-Type") == runtime.ContentTypeJSON &&
		(accept == "" || accept == "*/*" || accept == runtime.ContentTypeJSON || accept == runtime.ContentTypeJSON+", */*")
}

// create is all that stands between a request and its answer. The error says only that there is no answer.
func (s *way) create(ctx context.Context, r *http.Request, body []byte) (context.Context, []byte, error) {
	info, err := s.Server.RequestInfoResolver.NewRequestInfo(r)
	if err != nil {
		return nil, nil, err
	}
	subresource := s.Subresources[info.Subresource]
	if subresource == nil || !info.IsResourceRequest || info.Verb != "create" || info.APIPrefix != "apis" || info.Namespace == "" || info.Name == "" ||
		s.Resource != (schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}) || len(info.Parts) != 3 {
		return nil, nil, errOtherWay
	}
	who, err := s.authenticate(r)
	if err != nil {
		return nil, nil, err
	}
	ctx = request.WithNamespace(request.WithUser(request.WithRequestInfo(ctx, info), who), info.Namespace)
	if err := s.authorize(ctx); err != nil {
		return nil, nil, err
	}
	gvk := subresource.GroupVersionKind(s.Resource.GroupVersion())
	obj, err := s.read(body, gvk, subresource)
	if err != nil {
		return nil, nil, err
	}
	warned := &warned{}
	ctx = warning.WithWarningRecorder(ctx, warned)
	options := &metav1.CreateOptions{TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "CreateOptions"}}
	attributes := admission.NewAttributesRecord(obj, nil, gvk, info.Namespace, info.Name, s.Resource, info.Subresource, admission.Create, options, false, who)
	if err := s.plugins.Admit(ctx, attributes, s.objects); err != nil {
		return nil, nil, err
	}
	created, err := subresource.Create(ctx, info.Name, obj, rest.AdmissionToValidateObjectFunc(s.plugins, attributes, s.objects), options)
	if err != nil {
		return nil, nil, err
	}
	if warned.any {
		return nil, nil, errOtherWay // which has its own answer
	}
	created.GetObjectKind().SetGroupVersionKind(gvk)
	var answer bytes.Buffer
	if err := json.NewEncoder(&answer).Encode(created); err != nil {
		return nil, nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return ctx, answer.Bytes(), nil
}

// authenticate says who asks.
func (s *way) authenticate(r *http.Request) (user.Info, error) {
	audiences := s.Server.Authentication.APIAudiences
	if len(audiences) > 0 {
		r = r.WithContext(authenticator.WithAudiences(r.Context(), audiences))
	}
	if r.Header.Get("Authorization") != "" {
		r = r.Clone(r.Context()) // it does not leave the header there, which the other way may need
	}
	who, ok, err := s.Server.Authentication.Authenticator.AuthenticateRequest(r)
	if err != nil {
		return nil, err
	}
	if !ok || who.User.GetName() == user.Anonymous || slices.Contains(who.User.GetGroups(), user.AllUnauthenticated) {
		return nil, errOtherWay
	}
	if len(audiences) > 0 && len(who.Audiences) > 0 && len(audiences.Intersect(who.Audiences)) == 0 {
		return nil, errOtherWay
	}
	return who.User, nil
}

// authorize fails unless who asks may do so.
func (s *way) authorize(ctx context.Context) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return err
	}
	decision, err := s.decisions.Do(ctx, questionOf(attributes), func(ctx context.Context) (authorizer.Decision, error) {
		decision, _, _ := s.Server.Authorization.Authorizer.Authorize(ctx, attributes)
		return decision, nil
	})
	if err == nil && decision != authorizer.DecisionAllow {
		err = errOtherWay
	}
	return err
}

// decoded is what a request's body was read into.
type decoded struct {
	body []byte
	obj  runtime.Object
}

// read reads a request. Many have the same body, so the last one is remembered.
func (s *way) read(body []byte, gvk schema.GroupVersionKind, subresource Subresource) (runtime.Object, error) {
	if last, ok := s.bodies.Load(gvk); ok && bytes.Equal(last.(*decoded).body, body) {
		return last.(*decoded).obj.DeepCopyObject(), nil
	}
	obj, err := s.decode(body, gvk, subresource.New())
	if err == nil {
		s.bodies.Store(gvk, &decoded{body, obj.DeepCopyObject()})
	}
	return obj, err
}

// decode reads a request into an object, which it returns with its defaults. It takes what has a spec and no more.
func (s *way) decode(body []byte, gvk schema.GroupVersionKind, obj runtime.Object) (runtime.Object, error) {
	strict, err := kjson.UnmarshalStrict(body, obj)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if is := obj.GetObjectKind().GroupVersionKind(); !is.Empty() && is != gvk {
		return nil, errOtherWay
	}
	object, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, errOtherWay
	}
	if m, ok := object.GetObjectMeta().(*metav1.ObjectMeta); !ok || !apiequality.Semantic.DeepEqual(*m, metav1.ObjectMeta{}) {
		return nil, errOtherWay
	}
	s.Scheme.Default(obj)
	return obj, nil
}

// warned notes whether there is any warning.
type warned struct{ any bool }

func (w *warned) AddWarning(string, string) { w.any = true }
