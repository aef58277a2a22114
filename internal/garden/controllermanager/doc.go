// Package controllermanager is Gardener's controller-manager: the controllers of the garden's own resources, as one
// component with its own identity.
//
// Each controller has a folder with a Reconciler, which tests call with a client and a clock, and its AddToManager. The
// table in manager.go puts the controllers together. The folders are:
//
//   - of projects: project, projectactivity, projectstale
//   - of seeds and gardenlets: seedsecrets, seedextensionscheck, seedbackupbucketscheck, gardenletlifecycle,
//     csrapprover, managedseedset
//   - of extensions: controllerregistration/installation, controllerregistration/extensionclusterrole
//   - of shoots: shootconditions, shoothibernation, shootmaintenance, shootmigration, shootquota, shootretry,
//     shootstatefinalizer, shootstatuslabel
//   - of objects that must not be deleted while they are in use: finalizers (profiles, bindings, quotas, registrations
//     …), seedreference and shootreference (secrets and other objects that Seeds and Shoots refer to), which share
//     references
//   - of bastions: bastion
//   - of events: eventcleaner
//   - for all controllers: kit, and kittest in it for their tests
//
// It may import the other packages below garden, and reaches the garden only through the client configuration that it
// is given. It promises that Run, when it returns, has left no goroutine behind, and that several managers can run in
// one process.
package controllermanager
