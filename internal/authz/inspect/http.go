package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/gardenlite/gardenlite/internal/authz/graphview"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// Prefix is the prefix of the paths of Handler.
const Prefix = "/access/"

const (
	explainPath = Prefix + "explain"
	matrixPath  = Prefix + "matrix"
	namesPath   = Prefix + "names"
	graphPath   = Prefix + "graph"
	pagePath    = Prefix + "page"
)

const maxBody = 64 << 10

// Handler serves the requests of a Client. The function returns the Inspector, or an error if there is none. A usage
// error is returned with code 400, another error with 500, and the message as text.
func Handler(inspector func() (*Inspector, error)) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(i *Inspector, w io.Writer, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			i, err := inspector()
			var out bytes.Buffer
			if err == nil {
				r.Body = http.MaxBytesReader(w, r.Body, maxBody)
				err = answer(i, &out, r)
			}
			var usageErr *usage.Error
			switch {
			case errors.As(err, &usageErr):
				http.Error(w, err.Error(), http.StatusBadRequest)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			default:
				_, _ = out.WriteTo(w)
			}
		})
	}
	handle("POST "+explainPath, answerTo((*Inspector).Explain))
	handle("POST "+matrixPath, answerTo((*Inspector).Matrix))
	handle("GET "+namesPath, func(i *Inspector, w io.Writer, r *http.Request) error {
		names, err := i.names(r.Context())
		return errors.Join(err, json.NewEncoder(w).Encode(names))
	})
	handle("GET "+pagePath, func(i *Inspector, w io.Writer, _ *http.Request) error { return json.NewEncoder(w).Encode(i.page) })
	handle("GET "+graphPath, func(i *Inspector, w io.Writer, r *http.Request) error {
		query := r.URL.Query()
		return graphview.Write(w, i.graph.Snapshot(), graphview.FilterOf(query), query.Get("format"))
	})
	return mux
}

// answerTo decodes the question from the body of a request, and writes the answer.
func answerTo[Q, A any](f func(*Inspector, context.Context, Q) (A, error)) func(*Inspector, io.Writer, *http.Request) error {
	return func(i *Inspector, w io.Writer, r *http.Request) error {
		var question Q
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			return usage.Errorf("reading the question: %w", err)
		}
		answer, err := f(i, r.Context(), question)
		return errors.Join(err, json.NewEncoder(w).Encode(answer))
	}
}

// Client calls an Inspector through its Handler.
type Client struct {
	// Call sends a request and returns the body of the response. A response other than 200 is an error, 400 a usage
	// error.
	Call func(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error)
}

// Explain returns whether a request would be allowed, and why.
func (c Client) Explain(ctx context.Context, q Question) (*Explanation, error) {
	e := &Explanation{}
	return e, c.do(ctx, http.MethodPost, explainPath, q, e)
}

// Matrix returns everything that a user may do.
func (c Client) Matrix(ctx context.Context, u User) (*Matrix, error) {
	m := &Matrix{}
	return m, c.do(ctx, http.MethodPost, matrixPath, u, m)
}

// Names returns the names for completion.
func (c Client) Names(ctx context.Context) (*Names, error) {
	n := &Names{}
	return n, c.do(ctx, http.MethodGet, namesPath, nil, n)
}

// Page returns the address of the debug page with the filter. It contains the token that opens the page.
func (c Client) Page(ctx context.Context, filter graphview.Filter) (string, error) {
	var page string
	if err := c.do(ctx, http.MethodGet, pagePath, nil, &page); err != nil {
		return "", err
	}
	address, err := url.Parse(page)
	if err != nil || page == "" {
		return "", errors.New("the landscape does not serve the page with the graph")
	}
	query := filter.Values()
	for key, values := range address.Query() {
		query[key] = values
	}
	address.RawQuery = query.Encode()
	return address.String(), nil
}

// Graph writes the part of the graph that the filter selects, in a format of graphview.
func (c Client) Graph(ctx context.Context, w io.Writer, filter graphview.Filter, format string) error {
	query := filter.Values()
	query.Set("format", format)
	body, err := c.Call(ctx, http.MethodGet, graphPath+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

func (c Client) do(ctx context.Context, method, path string, question, answer any) error {
	data, err := json.Marshal(question)
	if err != nil {
		return err
	}
	body, err := c.Call(ctx, method, path, data)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		return fmt.Errorf("reading the landscape's answer: %w", err)
	}
	return nil
}
