// Package core is the storage of the API group core.gardener.cloud, a file a resource. Storage has it all.
package core
