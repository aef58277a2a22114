// Package bootstrap gives a gardenlet its identity in the garden, and keeps it valid: the client certificate of
// gardener.cloud:system:seed:<name>, first by TLS bootstrapping with a token, then by rotation with itself.
//
// The identity lives in Secret garden/gardenlet-kubeconfig of the seed, as Gardener's does. What bootstrapped it is
// deleted only after it is there, and the key of a request that is not answered yet waits there too: a gardenlet that
// is killed between any two steps continues with the same request. Clients made of RESTConfig live through a rotation
// without noticing. No key and no token gets into a log or an error.
//
// It may import API types and internal/authz/bootstraprules, the rules of the garden that it has to keep to.
package bootstrap
