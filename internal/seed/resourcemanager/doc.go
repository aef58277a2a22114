// Package resourcemanager is the resource manager of a seed: it applies the objects in the Secrets that a ManagedResource
// refers to, deletes those that are no longer there, and says in its conditions how they are. Classes "seed" and none are
// its own.
//
// What is about to be applied is in the status before it is, so that nothing is left behind after a crash at any point.
// An object is healthy if it exists, and its own status says nothing else. It may import API types and the seed's packages
// for conditions and finalizers.
package resourcemanager
