// Package shootsecrets creates, stores and rotates the secrets of a shoot: its CAs, the key that signs the tokens of its
// service accounts, the key that encrypts its data, the key pair for its machines, and the password for its observability
// components. It also stores when users last requested a rollout of its worker pools. All are Secrets in the shoot's
// namespace in the seed, with the names and labels of Gardener's secrets manager, and are part of a ShootState. It may
// import Gardener's and Kubernetes' API types and crypto libraries, and nothing of the project.
//
// It promises that no existing secret is created anew, that an interrupted rotation continues and creates only one new key,
// and that no error contains a key.
//
// When a secret X is rotated, its old value is first written to X.old. A label of X says for which rotation it was created.
package shootsecrets
