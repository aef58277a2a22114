// Package seedextensionscheck says in the condition ExtensionsReady of a Seed whether all extensions that are installed in
// it are valid, installed, healthy and settled, as the conditions of their ControllerInstallations tell.
//
// It may import API types, component/conditions and the kit beside it.
package seedextensionscheck
