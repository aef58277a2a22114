// Package controlplane is one embedded kube-apiserver: a garden, a seed or a shoot, as many in one process as wanted.
//
// Start makes the datastore, the PKI and the server chain (apiextensions, kube-apiserver, an Extension's own groups,
// aggregator) and returns when /readyz is ok; Stop gives everything back. Nothing in here knows of Gardener. It may
// import datastore and what it has below itself.
package controlplane
