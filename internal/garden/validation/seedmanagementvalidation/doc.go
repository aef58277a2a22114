// Package seedmanagementvalidation validates the objects of the API group seedmanagement.gardener.cloud in their
// internal version.
//
// There is one file per resource, with the functions that the resource's registry strategy calls: ValidateX for a new
// object, ValidateXUpdate for a changed one, and ValidateXStatusUpdate for its status subresource. configuration.go
// and configuration_controllers.go validate the configuration of a gardenlet that is embedded in all of them,
// deployment.go the deployment of a gardenlet.
//
// The functions are pure and never panic; error types and field paths are the same as in Gardener's own API server.
// The package may import the Gardener API types, their scheme, Kubernetes' API machinery and the validation of the
// core group, nothing else of this module.
package seedmanagementvalidation
