// Package tokenrequestor fills Secrets of the seed with tokens for ServiceAccounts in the garden, and renews them in time:
// those that extensions act with in the garden. It asks for Secrets with the labels and annotations of Gardener's token
// requestor, class garden.
//
// A ServiceAccount is in the seed's namespace in the garden, whatever the Secret says, and goes with the last Secret
// that asked for it. It may import API types and the seed's package for finalizers. No token is ever logged.
package tokenrequestor
