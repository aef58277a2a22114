// Package webhook is the HTTPS server of scoped access (design document "Scoped access"): the authorization webhook
// /webhooks/auth/seed, the admission webhook /webhooks/admission/seedrestriction, /metrics, /healthz, /readyz, and, where
// debug handlers are enabled, /debug/resource-dependency-graph.
//
// It may import internal/authz/graph, graphview and seedidentity; it reaches the authorizer and the restriction through
// interfaces.
//
// It promises: no answer is an allow unless the whole request was understood and the authorizer said allow. A request
// that is malformed, too large or too slow gets an HTTP error, which an API server takes for a failed webhook: no opinion
// for an authorization, a rejection for an admission. Until the graph has synced, and while it is stale, authorizations get
// 503; beyond a limit on those that are worked on at a time, requests get 429.
//
// The files: server.go (routes, life cycle, how many requests at a time), certificate.go (TLS), clients.go (who may ask),
// decode.go (bodies), authorization.go and admission.go (the two webhooks), metrics.go, and debug.go (the debug page).
package webhook
