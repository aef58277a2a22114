// Package core provides the storage of the API group core.gardener.cloud. Storage
// returns the storage of all resources.
package core
