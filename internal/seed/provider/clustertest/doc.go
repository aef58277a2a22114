// Package clustertest tests the provider simulator in the API server of a seed, with the rights that it has there, and with
// Kubernetes' garbage collection. The seed plays the shoot as well. It has nothing but tests.
package clustertest
