// Package shootaccess gives the gardenlet and the resource manager access to the API server of a shoot from its seed, with
// a short-lived client certificate that is signed by the shoot's own CA.
//
// It may import client-go, controller-runtime and shootsecrets. It promises that no credential is stored anywhere.
package shootaccess
