// Package shootkubeconfig implements the subresources adminkubeconfig and viewerkubeconfig of Shoots (GEP-16). They
// store nothing: each create request makes a private key and a client certificate for the caller, signed by the client
// authority of the Shoot, and returns them in a kubeconfig with one context for each address of the Shoot's API server.
//
// A certificate is for the user that the garden authenticated (the impersonated one, if the request impersonates). It
// is valid no longer than requested, than the configured limit, and than the authority.
//
// The package may import the API types, the scheme, registry/resource and validation. RBAC decides which users may call
// it.
package shootkubeconfig
