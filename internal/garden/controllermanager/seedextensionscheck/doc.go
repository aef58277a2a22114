// Package seedextensionscheck reports in the condition ExtensionsReady of a Seed whether all extensions that are
// installed in it are valid, installed, healthy and not progressing, according to the conditions of their
// ControllerInstallations.
//
// It may import API types, component/conditions and the kit beside it.
package seedextensionscheck
