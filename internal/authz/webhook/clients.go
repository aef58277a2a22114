package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// TokenParameter is the query parameter with the debug token.
const TokenParameter = "token"

// shortestToken is the minimum length of a debug token: 80 bits, as rand.Text encodes them.
const shortestToken = 16

// knows reports whether the client has one of the configured certificates, or else the status and message of the
// refusal. Without client authorities, every client is accepted.
func (s *Server) knows(r *http.Request) (known bool, status int, message string) {
	switch names := s.config.ClientNames; {
	case s.config.ClientCAs == nil:
		return true, 0, ""
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		return false, http.StatusUnauthorized, "a client certificate is required"
	case len(names) > 0 && !slices.Contains(names, r.TLS.VerifiedChains[0][0].Subject.CommonName):
		return false, http.StatusForbidden, "this client certificate is not for the webhooks"
	}
	return true, 0, ""
}

// identified passes on only requests of clients that knows accepts.
func (s *Server) identified(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if known, status, message := s.knows(r); !known {
			writeText(w, status, message)
			return
		}
		next(w, r)
	}
}

// shown is like identified for pages for people, who can use the debug token instead of a certificate. A browser sends
// the token once, in the address, and gets a cookie for it, so that the token is neither in the history of the browser
// as the address of a page, nor passed on. With a token but without client authorities, the token is required.
func (s *Server) shown(next http.HandlerFunc) http.HandlerFunc {
	if s.config.DebugToken == "" {
		return s.identified(next)
	}
	key := newDebugKey(s.config.DebugToken)
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Has(TokenParameter) {
			key.exchange(w, query)
			return
		}
		if key.opens(r) {
			next(w, r)
			return
		}
		known, status, message := s.knows(r)
		switch {
		case s.config.ClientCAs == nil:
			known, status, message = false, http.StatusUnauthorized, "the debug token is required"
		case status == http.StatusUnauthorized:
			message += ", or the debug token"
		}
		if !known {
			writeText(w, status, message+": open the whole address of the graph that gardenlite prints, in the address bar of the browser")
			return
		}
		next(w, r)
	}
}

// scraped is like identified for programs, which can use the debug token as a bearer token.
func (s *Server) scraped(next http.HandlerFunc) http.HandlerFunc {
	identified := s.identified(next)
	if s.config.DebugToken == "" {
		return identified
	}
	key := newDebugKey(s.config.DebugToken)
	return func(w http.ResponseWriter, r *http.Request) {
		if key.isBorne(r) {
			next(w, r)
			return
		}
		identified(w, r)
	}
}

// debugKey has a digest of the debug token for comparisons, and the cookie for the token. A browser sends cookies of a
// host to all of its ports, so the cookie does not contain the token, and servers with other tokens have cookies with
// other names.
type debugKey struct {
	digest             [sha256.Size]byte
	cookieName, cookie string
}

func newDebugKey(token string) debugKey {
	derive := func(what string) string {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(what))
		return hex.EncodeToString(mac.Sum(nil))
	}
	return debugKey{sha256.Sum256([]byte(token)), "gardenlite-debug-" + derive("cookie name")[:8], derive("cookie")}
}

// is compares digests, so that the time of the comparison reveals nothing, not even the length.
func (k *debugKey) is(token string) bool {
	digest := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(digest[:], k.digest[:]) == 1
}

// opens reports whether a request has the cookie, or the token as a bearer token.
func (k *debugKey) opens(r *http.Request) bool {
	if k.isBorne(r) {
		return true
	}
	for _, cookie := range r.CookiesNamed(k.cookieName) {
		if subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(k.cookie)) == 1 {
			return true
		}
	}
	return false
}

func (k *debugKey) isBorne(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && k.is(token)
}

// exchange sets the cookie for the token in the address, and redirects the browser to the address without the token.
func (k *debugKey) exchange(w http.ResponseWriter, query url.Values) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	if !k.is(query.Get(TokenParameter)) {
		writeText(w, http.StatusForbidden, "this is not the debug token: it is another one each time the landscape starts")
		return
	}
	query.Del(TokenParameter)
	target := url.URL{Path: GraphPath, RawQuery: query.Encode()}
	http.SetCookie(w, &http.Cookie{
		Name: k.cookieName, Value: k.cookie, Path: GraphPath,
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
	})
	header.Set("Location", target.String())
	w.WriteHeader(http.StatusSeeOther)
}
