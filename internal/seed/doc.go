// Package seed runs a seed cluster: a control plane with the CustomResourceDefinitions, namespaces and Kubernetes
// controllers that a gardenlet and extensions expect in a seed. It may import controlplane and manifests, and knows neither
// the garden nor gardenlets.
//
// It promises that a started cluster serves every custom resource and lists it in discovery, that a restart keeps existing
// objects and does not write those that are up to date, and that nothing runs any more after Stop.
package seed
