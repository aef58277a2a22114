// Package finalizers keeps things from being deleted while they are in use: cloud profiles, bindings, exposure classes,
// quotas, controller deployments, and controller registrations and seeds as long as something is installed.
//
// Each kind is an entry of one table (kinds.go): its finalizer, who uses it, and what else its controller does, such as
// marking the credentials that a binding refers to. One Reconciler does the rest. It promises that a finalizer is removed
// only after the garden itself, not a cache of it, has been asked for users. It may import API types, validation and the
// scheme of the garden, and the admission whose merge of cloud profiles it shares.
package finalizers
