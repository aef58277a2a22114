// Package csrapprover approves the client certificates that gardenlets request: with a bootstrap token or a
// ServiceAccount when they are new, and with their current certificate before it expires.
//
// A request is approved if it has the form of a request for a seed's client certificate, if its author is not bound to
// another seed, and if the author is authorized to create certificatesigningrequests/seedclient. Requests of any other
// form are ignored. The package may import API types and internal/authz/bootstraprules.
package csrapprover
