// Package charts pulls the Helm charts of ControllerDeployments from OCI registries, renders them, and gives their
// workloads access to the garden, as Gardener's gardenlet does.
//
// A chart comes from a garden operator and not from the person who runs the landscape. It is rendered in a separate
// process, which gets nothing but the chart and its values on its standard input, and which is killed when it takes too
// much time or memory: a Go template cannot be stopped in another way. Templates can access neither the cluster, files, the
// environment nor the network. The limits are constants of this package.
//
// It may import API types, Helm's engine and an OCI client.
package charts
