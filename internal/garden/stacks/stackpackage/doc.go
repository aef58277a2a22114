// Package stackpackage reads, checks and builds the packages of stacks: a folder .registry with the app's metadata, its
// custom resource definitions and its controller (Stacks security and isolation, "Allowed Resource Access" and "Stack
// Package Author").
//
// A package is data of its author and not of the person who runs the landscape. What is read of it is bounded, what is
// in it is compared with lists of what is allowed, and a package with anything else is refused with the reason. No word
// of a package becomes a permission: those follow from the parsed CustomResourceDefinitions and DependsOn.
//
// It may import API types, the library of custom resource definitions and an OCI client. It imports nothing of the
// project.
package stackpackage
