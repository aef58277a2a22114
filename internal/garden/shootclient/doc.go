// Package shootclient implements what users and tests do with Shoots: create one like the sample, wait until it is
// ready, list and describe Shoots, request operations, get a kubeconfig for one, delete one and wait until it is
// gone. It is an ordinary client of the garden: it has only the rights of its configuration.
//
// It may import API types and controller-runtime's client, and the sample in manifests. It has no state, and starts
// no goroutines.
package shootclient
