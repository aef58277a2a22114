// Package httpserver has what the HTTP servers of the process have in common. It imports nothing of the project.
package httpserver

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// drainTimeout is how long the server waits for the rest of a request after its response was sent. A client that
// sends all of its request before it reads the response still gets the response then.
const drainTimeout = time.Second

// WithEarlyResponse makes the server send a response at once if the handler begins it without having read the
// request's body, for example because the client is not authenticated, and close the connection afterwards.
// Otherwise a server of net/http waits for the body of an HTTP/1 request first, for as long as the client announces
// one and does not send it.
func WithEarlyResponse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body := &trackedBody{ReadCloser: r.Body}
		tracked := &trackedWriter{ResponseWriter: w, body: body}
		r = r.WithContext(r.Context()) // a copy
		r.Body = body
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(tracked), r)
		tracked.begin()
	})
}

// trackedBody records whether the body was read.
type trackedBody struct {
	io.ReadCloser
	read atomic.Bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.ReadCloser.Read(p)
}

// trackedWriter checks the body when the response begins.
type trackedWriter struct {
	http.ResponseWriter
	body  *trackedBody
	begun bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *trackedWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

func (w *trackedWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.body.read.Load() {
		return
	}
	w.Header().Set("Connection", "close")
	// A connection without deadlines, or one that was hijacked, is not of concern here.
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(drainTimeout))
}
