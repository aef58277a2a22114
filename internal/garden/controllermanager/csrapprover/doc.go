// Package csrapprover approves the certificates that gardenlets ask for: with a bootstrap token or a ServiceAccount when
// they are new, with their last certificate when that is about to expire.
//
// A request is approved if it has the form of a seed's client certificate, if its author is not bound to another seed,
// and if the garden says that the author may create certificatesigningrequests/seedclient. Requests of any other form are
// ignored. It may import API types and internal/authz/bootstraprules.
package csrapprover
