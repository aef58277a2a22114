// Package finalizers protects objects from deletion while they are in use: cloud profiles, bindings, exposure classes,
// quotas, controller deployments, and controller registrations and seeds while ControllerInstallations refer to them.
//
// Each kind is an entry of a table (kinds.go) with its finalizer, the kinds of its users, and additional functions of
// its controller, such as labelling the credentials that a binding refers to. One Reconciler serves all kinds. It
// removes a finalizer only after it has looked for users with the API server of the garden, not in a cache. The package
// may import API types, validation and the scheme of the garden, and the admission plugin whose merge of cloud profiles
// it uses.
package finalizers
