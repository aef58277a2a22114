// Package seedcare is the gardenlet's health check of its seed, twice a minute. It checks whether the seed's API server is
// ready and serves the namespaces and custom resources of a seed, and whether the ManagedResources in the namespace garden
// are healthy. It reports the result in the Seed's condition SeedSystemComponentsHealthy. The condition
// EmergencyStopShootReconciliations says that the Seed has the annotation for it. It may import packages conditions and
// probe of the gardenlet, operation of the seed's extensions, and manifests.
//
// It promises to write no other condition, and that a condition that was True is Progressing before it becomes False.
package seedcare
