// Package resourcemanager is the resource manager of a seed: it applies the objects in the Secrets that a ManagedResource
// refers to, deletes those that are no longer in them, and reports the health of the objects in its conditions. The objects of
// the class "seed" are the seed's. Without a class, those in the namespace of a shoot are the shoot's, as in Gardener, where each
// shoot has a resource manager of its own; in other namespaces nothing handles them. It also fills the Secrets with which
// components of a control plane reach their shoot.
//
// It records in the status what it is about to apply, so that nothing is left behind after a crash at any point. An object
// is healthy if it exists and its own status does not say otherwise. It may import API types and the seed's packages.
package resourcemanager
