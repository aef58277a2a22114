// Package shootclient is what people and tests do with Shoots: create one like the sample, wait until it is ready, list
// them, get a kubeconfig for one, delete one and wait until it is gone. It is a client of the garden as any other: it has
// the rights of the configuration that it is given, and no others.
//
// It may import API types and controller-runtime's client, and the sample in manifests. It keeps nothing, and starts no
// goroutines.
package shootclient
