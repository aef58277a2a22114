package leastprivilege

import "maps"

// The reasons why no request for a right was recorded: the other component or the code that makes it, and the test
// of that.
const (
	election  = "sigs.k8s.io/controller-runtime/pkg/leaderelection, where processes share a datastore: TestTwoProcesses of e2e"
	series    = "k8s.io/client-go/tools/events, when an event happens again within minutes"
	admission = "RBAC or admission, when it looks at another request: askWithLess in TestLeastPrivilege of e2e"
	approval  = "internal/garden/controllermanager/csrapprover, by a SubjectAccessReview: TestApproves, TestDenies"
	cleaner   = "internal/garden/controllermanager/eventcleaner, an hour after an event: TestDeletesOldEvents"
	stale     = "internal/garden/controllermanager/projectstale, when a project is unused for months: TestLifeOfStaleProject"
	replicas  = "internal/garden/controllermanager/managedseedset, once a replica's shoot is there: TestScalesOut, TestScalesIn"
	lifecycle = "internal/garden/controllermanager/gardenletlifecycle, when a certificate has expired: TestExpiredCertificate"
	migration = "internal/garden/controllermanager/shootmigration, when a shoot moves: TestMoves"
	forced    = "internal/garden/controllermanager/shootmaintenance, when a shoot has to leave SecretBindings behind: TestForced"
	moved     = "internal/garden/controllermanager/shootstatefinalizer, when a shoot moves: TestKeepsDuringMigration"
	ended     = "internal/garden/controllermanager/bastion, when a Bastion comes to its end: TestDeletes"
	existing  = "internal/authz/restriction, when a creation is refused, to see whether the object exists: TestReadRules"
	bindings  = "internal/authz/gardenwebhooks, for a Secret to which a binding refers: TestProviderLabels"
	projects  = "internal/authz/gardenwebhooks, when a namespace of a Project is deleted: TestNamespaceDeletion"
	domains   = "internal/authz/gardenwebhooks, when a Secret with the internal domain is created: TestInternalDomainSecret"
	referred  = "internal/authz/restriction, when a gardenlet refers to a WorkloadIdentity: TestReferenceToWorkloadIdentity"
	identity  = "internal/seed/gardenlet/controller/seed, in a cluster that is not gardenlite's own: TestInTheSeed"
	restored  = "internal/seed/gardenlet/controller/backupentry, when a shoot has moved here: TestMove"
	arrived   = "internal/seed/gardenlet/controller/shoot, when a shoot has moved here: TestMigration"
	install   = "internal/seed/gardenlet/controller/controllerinstallation, when a user altered it: TestInstallsAndDeletes"
	refreshed = "internal/seed/provider, when the credentials of a bucket have changed: TestLife"
)

// unseenReasons returns for each user the rights for which no request was recorded. Those of a Role begin with its
// namespace.
func unseenReasons() map[string]map[string]string {
	return map[string]map[string]string{
		ControllerManager: elected("gardener-controller-manager-leader-election", map[string]string{
			"approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client": admission,
			"bind clusterroles.rbac.authorization.k8s.io":                             admission,
			"escalate clusterroles.rbac.authorization.k8s.io":                         admission,
			"get quotas.core.gardener.cloud":                                          admission,
			"get events":                                                              cleaner,
			"delete events":                                                           cleaner,
			"patch events.events.k8s.io":                                              series,
			"delete projects.core.gardener.cloud":                                     stale,
			"create managedseeds.seedmanagement.gardener.cloud":                       replicas,
			"delete managedseeds.seedmanagement.gardener.cloud":                       replicas,
			"patch managedseeds.seedmanagement.gardener.cloud":                        lifecycle,
			"patch shoots.core.gardener.cloud/status":                                 migration,
			"create credentialsbindings.security.gardener.cloud":                      forced,
			"patch shootstates.core.gardener.cloud":                                   moved,
			"get shoots.core.gardener.cloud":                                          ended,
			"delete bastions.operations.gardener.cloud":                               ended,
		}),
		Scheduler: elected("gardener-scheduler-leader-election", map[string]string{}),
		Admission: {
			"get credentialsbindings.security.gardener.cloud":    bindings,
			"get secretbindings.core.gardener.cloud":             bindings,
			"get namespaces":                                     projects,
			"get projects.core.gardener.cloud":                   projects,
			"list secrets":                                       domains,
			"get bastions.operations.gardener.cloud":             existing,
			"get certificatesigningrequests.certificates.k8s.io": existing,
			"get clusterrolebindings.rbac.authorization.k8s.io":  existing,
			"get serviceaccounts":                                existing,
			"get workloadidentities.security.gardener.cloud":     referred,
		},
		Bootstrapper: {
			"create certificatesigningrequests.certificates.k8s.io/seedclient": approval,
		},
		GardenletInSeed: {
			"kube-system: create configmaps":                       identity,
			"patch backupentries.extensions.gardener.cloud/status": restored,
			"patch managedresources.resources.gardener.cloud":      install,

			"patch containerruntimes.extensions.gardener.cloud/status":      arrived,
			"patch controlplanes.extensions.gardener.cloud/status":          arrived,
			"patch dnsrecords.extensions.gardener.cloud/status":             arrived,
			"patch extensions.extensions.gardener.cloud/status":             arrived,
			"patch infrastructures.extensions.gardener.cloud/status":        arrived,
			"patch networks.extensions.gardener.cloud/status":               arrived,
			"patch operatingsystemconfigs.extensions.gardener.cloud/status": arrived,
			"patch workers.extensions.gardener.cloud/status":                arrived,
		},
		Provider: {
			"update secrets": refreshed,
		},
	}
}

// elected adds the rights that a component needs for leader election.
func elected(lease string, reasons map[string]string) map[string]string {
	maps.Copy(reasons, map[string]string{
		"garden: create events":                              election,
		"garden: create leases.coordination.k8s.io":          election,
		"garden: get leases.coordination.k8s.io " + lease:    election,
		"garden: update leases.coordination.k8s.io " + lease: election,
	})
	return reasons
}
