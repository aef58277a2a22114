// Package extensionclusterrole gives extensions rights of their own in the garden: to a ClusterRole that is labelled for
// it, the service accounts of extensions that its annotation selects are bound.
//
// A selected service account counts only where none but Gardener makes them: in a Seed's namespace, or, by the prefix of
// its name, in garden or in a Project's namespace. It may import API types.
package extensionclusterrole
