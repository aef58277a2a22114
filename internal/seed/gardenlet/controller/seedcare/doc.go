// Package seedcare is the gardenlet's look at its seed, twice a minute: whether the seed's API server is ready, and has the
// namespaces and custom resources that it was set up with, and whether the ManagedResources in the namespace garden are
// well. What it sees is in the Seed's condition SeedSystemComponentsHealthy; EmergencyStopShootReconciliations says that
// the Seed's annotation of that kind is there. It may import packages conditions, probe of the gardenlet, operation of the
// seed's extensions, and manifests.
//
// It promises to write no other condition, and that one which was True is Progressing before it is False.
package seedcare
