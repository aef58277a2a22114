// Package shootsecrets makes, keeps and rotates what a shoot's identity is made of: its certificate authorities, the
// key that signs the tokens of its service accounts, the one that encrypts its data, the key pair for its machines, the
// password for its observability components; and when users last requested a rollout of its worker pools. They are
// Secrets in the shoot's namespace in the seed, with the names and labels of Gardener's secrets manager, and travel in
// a ShootState. It may import Gardener's and Kubernetes' API types and crypto libraries, and nothing of the project.
//
// It promises that nothing is made anew that is there, that a rotation which was cut off anywhere continues where it
// was and makes one new key only, and that no key stands in an error.
//
// A secret X that is rotated becomes X.old, which is written first; X says by its label for which rotation it was made.
package shootsecrets
