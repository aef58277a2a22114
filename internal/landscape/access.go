package landscape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// The control socket's paths for scoped access (design: scoped access, "explain").
const (
	explainPath   = "/access/explain"
	matrixPath    = "/access/matrix"
	namesPath     = "/access/names"
	graphPath     = "/graph"
	graphPagePath = "/graph/page"
)

// maxAccessBody bounds what is read of a question.
const maxAccessBody = 64 << 10

// AccessUser is for whom access is explained: exactly one of the two.
type AccessUser struct {
	// Seed is the name of the seed whose gardenlet asks.
	Seed string `json:"seed,omitempty"`
	// Extension is NAMESPACE/NAME of the ServiceAccount of an extension on a seed.
	Extension string `json:"extension,omitempty"`
}

// Validate says what is wrong with it, as a UsageError.
func (u AccessUser) Validate() error {
	_, err := u.info()
	return err
}

// info is the user as the garden authenticates it.
func (u AccessUser) info() (*user.DefaultInfo, error) {
	switch {
	case (u.Seed == "") == (u.Extension == ""):
		return nil, &UsageError{errors.New("say for whom, with one of --as-seed NAME and --as-extension NAMESPACE/NAME")}
	case u.Seed != "":
		return &user.DefaultInfo{Name: constants.SeedUserNamePrefix + u.Seed, Groups: []string{constants.SeedsGroup, user.AllAuthenticated}}, nil
	}
	namespace, name, found := strings.Cut(u.Extension, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, &UsageError{fmt.Errorf("--as-extension %q: say NAMESPACE/NAME of the extension's ServiceAccount, such as seed-local/extension-provider-local", u.Extension)}
	}
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(namespace, name),
		Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}, nil
}

// AccessVerbs are the verbs that rules can name, for completion.
func AccessVerbs() []string { return authorizer.AllVerbs() }

// GraphKinds are the kinds of the dependency graph, for completion.
func GraphKinds() []string { return graph.KindNames() }

// AccessNames is what a landscape has to choose from, for completion.
type AccessNames struct {
	Seeds      []string `json:"seeds"`
	Extensions []string `json:"extensions"`
	Resources  []string `json:"resources"`
}

// access answers questions on scoped access. It needs a landscape that is ready.
type access struct {
	graph      *graph.Graph
	authorizer *authorizer.Authorizer
	kube       kubernetes.Interface
	metadata   metadata.Interface
	discovery  discovery.DiscoveryInterface
	page       string // the address of the debug page
}

// errNoAdmissionController says that nobody decides for gardenlets.
var errNoAdmissionController = errors.New("the landscape runs without the " + admissionController + ", so nothing is allowed to gardenlets beyond RBAC: start it without -" + admissionController + " in --controllers")

// access is refused until the landscape is ready: what it is made of is written before that, by another goroutine.
func (l *Landscape) access() (*access, error) {
	l.board.mu.Lock()
	state := l.board.status.State
	l.board.mu.Unlock()
	if state != StateReady {
		return nil, fmt.Errorf("the landscape is not ready: it is %s; wait with \"gardenlite status --wait\"", state)
	}
	if l.admission.controller == nil {
		return nil, errNoAdmissionController
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("reading the landscape's kubeconfig: %w", err)
	}
	return newAccess(config, l.admission.controller.Graph(), l.admission.controller.Authorizer(), l.admission.controller.GraphURL())
}

func newAccess(config *rest.Config, g *graph.Graph, decides *authorizer.Authorizer, page string) (*access, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server limits by itself
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the garden: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the garden: %w", err)
	}
	return &access{graph: g, authorizer: decides, kube: kube, metadata: objects, discovery: kube.Discovery(), page: page}, nil
}

// serveAccess adds the paths of scoped access to the control socket's.
func (l *Landscape) serveAccess(mux *http.ServeMux) {
	mux.HandleFunc("POST "+explainPath, answer(l, (*access).explain))
	mux.HandleFunc("POST "+matrixPath, answer(l, (*access).matrix))
	mux.HandleFunc("GET "+namesPath, func(w http.ResponseWriter, r *http.Request) {
		l.withAccess(w, func(a *access) (any, error) { return a.names(r.Context()) })
	})
	mux.HandleFunc("GET "+graphPagePath, func(w http.ResponseWriter, _ *http.Request) {
		l.withAccess(w, func(a *access) (any, error) { return a.page, nil })
	})
	mux.HandleFunc("GET "+graphPath, func(w http.ResponseWriter, r *http.Request) {
		a, err := l.access()
		var out bytes.Buffer
		if err == nil {
			err = a.writeGraph(&out, r.URL.Query())
		}
		if err != nil {
			writeAccessError(w, err)
			return
		}
		_, _ = out.WriteTo(w)
	})
}

// answer makes a handler of a function that answers a question.
func answer[Q, A any](l *Landscape, f func(*access, context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l.withAccess(w, func(a *access) (any, error) {
			var question Q
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAccessBody)).Decode(&question); err != nil {
				return nil, &UsageError{fmt.Errorf("reading the question: %w", err)}
			}
			return f(a, r.Context(), question)
		})
	}
}

func (l *Landscape) withAccess(w http.ResponseWriter, f func(*access) (any, error)) {
	a, err := l.access()
	var value any
	if err == nil {
		value, err = f(a)
	}
	if err != nil {
		writeAccessError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func writeAccessError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	var usage *UsageError
	if errors.As(err, &usage) {
		code = http.StatusBadRequest
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, err.Error())
}

// ExplainAccess asks whether a request would be allowed, and why.
func (c *Client) ExplainAccess(ctx context.Context, q AccessQuestion) (*AccessExplanation, error) {
	e := &AccessExplanation{}
	return e, c.askAccess(ctx, http.MethodPost, explainPath, q, e)
}

// AccessMatrix asks for everything that a user may do.
func (c *Client) AccessMatrix(ctx context.Context, u AccessUser) (*AccessMatrix, error) {
	m := &AccessMatrix{}
	return m, c.askAccess(ctx, http.MethodPost, matrixPath, u, m)
}

// AccessNames asks what there is to choose from.
func (c *Client) AccessNames(ctx context.Context) (*AccessNames, error) {
	n := &AccessNames{}
	return n, c.askAccess(ctx, http.MethodGet, namesPath, nil, n)
}

// GraphPage asks for the address of the debug page, filtered. Whoever has it may see the page.
func (c *Client) GraphPage(ctx context.Context, filter GraphFilter) (string, error) {
	var page string
	if err := c.askAccess(ctx, http.MethodGet, graphPagePath, nil, &page); err != nil {
		return "", err
	}
	address, err := url.Parse(page)
	if err != nil || page == "" {
		return "", errors.New("the landscape does not serve the page with the graph")
	}
	query := address.Query()
	for key, values := range filter.query() {
		query[key] = values
	}
	address.RawQuery = query.Encode()
	return address.String(), nil
}

// Graph writes the dependency graph, or the part that a filter chooses, as text, dot, json or svg.
func (c *Client) Graph(ctx context.Context, w io.Writer, filter GraphFilter, format string) error {
	query := filter.query()
	query.Set("format", format)
	body, err := c.request(ctx, http.MethodGet, graphPath+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

func (c *Client) askAccess(ctx context.Context, method, path string, question, result any) error {
	var data []byte
	if question != nil {
		var err error
		if data, err = json.Marshal(question); err != nil {
			return err
		}
	}
	body, err := c.request(ctx, method, path, data)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(result); err != nil {
		return fmt.Errorf("reading the landscape's answer: %w", err)
	}
	return nil
}

// request is do with a body, and with what is not well as an error.
func (c *Client) request(ctx context.Context, method, path string, data []byte) (io.ReadCloser, error) {
	response, err := c.do(ctx, method, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	message, err := io.ReadAll(io.LimitReader(response.Body, maxAccessBody))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the landscape's answer: %w", err)
	case response.StatusCode == http.StatusBadRequest:
		return nil, &UsageError{errors.New(string(message))}
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("process %d that holds the landscape is of version %s and does not know this yet: restart it with \"gardenlite down\" and \"gardenlite up\"", c.run.PID, c.run.Version)
	}
	return nil, errors.New(string(message))
}

// identityOf is what scoped access takes a user for.
func identityOf(who *user.DefaultInfo) seedidentity.Identity { return seedidentity.OfUser(who) }

// exists says whether the garden has the object; true also where that cannot be found out.
func (a *access) exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) bool {
	_, err := a.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, getOptions)
	return !apierrors.IsNotFound(err)
}

func (f GraphFilter) query() url.Values {
	query := url.Values{}
	for key, value := range map[string]string{"kind": f.Kind, "namespace": f.Namespace, "name": f.Name} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}
