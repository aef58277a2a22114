// Package core provides the storage of the API group core.gardener.cloud, with a file for each resource. Storage
// returns the storage of all resources.
package core
