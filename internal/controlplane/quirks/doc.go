// Package quirks is every work-around for Kubernetes and its libraries that an embedded control plane needs: what it is for,
// a link to the code or issue upstream, and a test that fails when upstream no longer needs it. It imports nothing of the
// project.
package quirks
