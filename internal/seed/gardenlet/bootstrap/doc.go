// Package bootstrap obtains the identity of a gardenlet in the garden, and keeps it valid: the client certificate of
// gardener.cloud:system:seed:<name>. It first uses TLS bootstrapping with a token, and then rotates the certificate.
//
// As in Gardener, the identity is stored in the Secret garden/gardenlet-kubeconfig of the seed. What bootstrapped it is
// deleted only after that. The Secret also has the key of a pending request: a gardenlet that is killed between any two
// steps continues with the same request. Clients that use RESTConfig do not notice a rotation. No key and no token gets
// into a log or an error.
//
// It may import API types, controllerutils, and internal/authz/bootstraprules, the rules that the garden enforces.
package bootstrap
