// Package tokenrequestor fills Secrets of the seed with tokens for ServiceAccounts in the garden, and renews them in time.
// Extensions authenticate to the garden with them. It handles Secrets with the labels and annotations of Gardener's token
// requestor, class garden.
//
// A ServiceAccount is always in the seed's namespace in the garden, and is deleted with the last Secret that refers to it.
// It may import API types and the seed's package for finalizers. No token is ever logged.
package tokenrequestor
