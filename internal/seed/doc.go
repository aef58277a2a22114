// Package seed is a seed cluster: a control plane of its own with the CustomResourceDefinitions, namespaces and
// Kubernetes controllers that a gardenlet and extensions find in a seed. It may import controlplane and manifests, and
// knows neither the garden nor gardenlets.
//
// It promises that a started cluster serves every custom resource and lists it in discovery, that a restart finds what
// was there and writes nothing that is as it should be, and that nothing runs any more after Stop.
package seed
