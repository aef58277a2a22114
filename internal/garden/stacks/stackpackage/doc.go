// Package stackpackage reads, checks and builds the packages of stacks. A package is a folder .registry with the
// metadata of the app, its custom resource definitions and its controller (Stacks security and isolation, "Allowed
// Resource Access" and "Stack Package Author").
//
// The author of a package is not trusted by the operator of the landscape. The size of a package is limited, its
// content is checked against lists of what is allowed, and a package with anything else is refused with the reason. No
// text of a package becomes a permission: permissions derive from the parsed CustomResourceDefinitions and DependsOn.
//
// It may import API types with their validation, the library of custom resource definitions and an OCI client. Of the
// project it imports small helpers only.
package stackpackage
