// Package bastionspec parses what the spec of a Bastion says: who may connect, and with which public key. The garden's API,
// the gardenlet and the provider use the same functions, so that what the API accepts can be applied. It imports nothing of
// the project.
package bastionspec
