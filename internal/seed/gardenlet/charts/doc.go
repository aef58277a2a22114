// Package charts pulls the Helm charts of ControllerDeployments from OCI registries, renders them, and gives their
// workloads access to the garden, as Gardener's gardenlet does.
//
// A chart is data of a garden operator and not of the person who runs the landscape. It is rendered in a process of its
// own, which gets the chart and its values on its standard input and nothing else, and which ends when it takes too long
// or too much memory: a Go template cannot be stopped in another way. Templates reach neither cluster, files, environment
// nor network. The limits are constants of this package.
//
// It may import API types, Helm's engine and an OCI client.
package charts
