// Package resourcemanager is the resource manager of a seed: it applies the objects in the Secrets that a ManagedResource
// refers to, deletes those that are no longer in them, and reports the health of the objects in its conditions. It handles
// ManagedResources of the class "seed" and those without a class.
//
// It records in the status what it is about to apply, so that nothing is left behind after a crash at any point. An object
// is healthy if it exists and its own status does not say otherwise. It may import API types and the seed's packages for
// conditions and finalizers.
package resourcemanager
