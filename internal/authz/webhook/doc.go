// Package webhook implements the HTTPS server of scoped access (design document "Scoped access"): the authorization
// webhook /webhooks/auth/seed, the admission webhook /webhooks/admission/seedrestriction, /metrics, /healthz, /readyz,
// and, if debug handlers are enabled, /debug/resource-dependency-graph.
//
// It may import internal/authz/graph, graphview and seedidentity; it uses the authorizer and the restriction through
// interfaces.
//
// It guarantees: a request is allowed only if it is valid as a whole and the authorizer allows it. A request that is
// malformed, too large or too slow gets an HTTP error, which an API server takes for a failed webhook: no opinion for
// an authorization, a rejection for an admission. Until the graph has synced, and while it is stale, authorizations get
// 503; beyond the limit on concurrent requests, they get 429.
//
// The files: server.go (routes, life cycle, TLS, limit on concurrent requests), clients.go (accepted clients), decode.go
// (bodies), authorization.go and admission.go (the two webhooks), metrics.go, and debug.go (the debug page).
package webhook
