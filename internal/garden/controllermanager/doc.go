// Package controllermanager is Gardener's controller-manager: the controllers of the garden's own resources,
// as one component with its own identity.
//
// Each controller has a folder, with a Reconciler that can be tried with a client and a clock, and an AddToManager; the
// table in manager.go puts them together. The folders are:
//
//   - of projects: project, projectactivity, projectstale
//   - of seeds and gardenlets: seedsecrets, seedextensionscheck, seedbackupbucketscheck, gardenletlifecycle, csrapprover,
//     managedseedset
//   - of extensions: controllerregistration/installation, controllerregistration/extensionclusterrole
//   - of shoots: shootconditions, shoothibernation, shootmaintenance, shootmigration, shootquota, shootretry,
//     shootstatefinalizer, shootstatuslabel
//   - for what is in use, and must not go before its users: finalizers (profiles, bindings, quotas, registrations …),
//     seedreference and shootreference (secrets and others that Seeds and Shoots refer to), which share references
//   - of bastions: bastion
//   - of events: eventcleaner
//   - for all of them: kit, and kittest in it for their tests
//
// It may import the other packages below garden, and reaches the garden through the client configuration that it is given
// only. It promises that Run, when it returns, has left no goroutine behind, and that several managers can run in one
// process.
package controllermanager
