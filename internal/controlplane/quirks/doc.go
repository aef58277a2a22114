// Package quirks has all workarounds for Kubernetes and its libraries that an embedded control plane needs. Each has a
// reason, a link to the code or issue upstream, and a test that fails when upstream no longer needs the workaround. The
// package imports nothing of the project.
package quirks
