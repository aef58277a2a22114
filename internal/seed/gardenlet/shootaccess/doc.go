// Package shootaccess reaches the API server of a shoot from its seed: as the gardenlet, with a client certificate that is
// made from the shoot's own authority and lives for a short time.
//
// It may import client-go and controller-runtime. It promises that no credential is written anywhere, and that what a Cache
// has open is closed when the shoot goes.
package shootaccess
