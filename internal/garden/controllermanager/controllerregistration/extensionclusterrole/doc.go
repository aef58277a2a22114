// Package extensionclusterrole grants extensions additional permissions in the garden: for each ClusterRole that is
// labelled for it, it binds the service accounts that the ClusterRole's annotation selects.
//
// Only service accounts that nothing but Gardener creates are bound: those in the namespace of a Seed, and, in the
// namespace garden and in namespaces of Projects, those with the name prefix for extensions. The package may import API
// types.
package extensionclusterrole
