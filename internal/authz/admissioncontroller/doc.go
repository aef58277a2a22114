// Package admissioncontroller puts scoped access together: the graph with what feeds it, the authorizer, the restriction,
// and the HTTPS server of both webhooks; and it says to a kube-apiserver how it uses them.
//
// It runs beside a garden in the same process, or alone against one elsewhere. It reaches the garden only through the
// client configuration it is given. It may import the other packages of authz.
package admissioncontroller
