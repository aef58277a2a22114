// Package controlplane runs an embedded kube-apiserver: a garden, a seed or a shoot, any number of them in one process.
//
// Start creates the datastore, the PKI and the server chain (apiextensions, kube-apiserver, the API groups of an
// Extension, aggregator) and returns when /readyz is ok; Stop releases everything. The package knows nothing of
// Gardener. It may import datastore and the packages below itself.
package controlplane
