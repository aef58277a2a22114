// Package tokenrequestor fills Secrets of the seed with tokens for ServiceAccounts in the garden or in a shoot, and renews
// them in time. Extensions authenticate to the garden with them, and components of a control plane to their shoot. It handles
// Secrets with the labels and annotations of Gardener's token requestor.
//
// In the garden, a ServiceAccount is always in the seed's namespace, and is deleted with the last Secret that refers to it.
// It may import API types and the seed's packages. No token is ever logged.
package tokenrequestor
