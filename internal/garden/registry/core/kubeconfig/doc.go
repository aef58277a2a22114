// Package kubeconfig is the storage of the subresources adminkubeconfig and viewerkubeconfig of Shoots (GEP-16), which
// store nothing: each call makes a key and a client certificate for the caller, signed by the client authority of the
// Shoot, and puts them into a kubeconfig with a context for each address of the Shoot's API server.
//
// It promises that a certificate is for the user that the garden authenticated (the impersonated one, if there is one) and
// for nobody else, that it is not valid longer than what was asked for, the limit and the authority, and that what it is
// made from was read after the request came. Many calls for one Shoot at a time share what they read, and never a key.
// A gate before the API server's filters has them answered one after the other, not all at the end.
//
// It may import the API types, the scheme and validation. Who may call is up to RBAC.
package kubeconfig
