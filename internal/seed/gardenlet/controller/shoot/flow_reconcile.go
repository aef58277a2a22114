package shoot

import (
	"context"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// Steps of a reconciliation on which other steps depend.
const (
	stepNamespace       = "Deploying Shoot namespace in Seed"
	stepCluster         = "Deploying Cluster resource to Seed"
	stepCloudProvider   = "Deploying cloud provider account secret"
	stepSecrets         = "Initializing secrets management"
	stepSSHKeypair      = "Generating SSH keypair"
	stepObservability   = "Generating observability credentials"
	stepState           = "Persisting ShootState in garden cluster"
	stepSourceEntry     = "Deploying source backup entry"
	stepSourceReady     = "Waiting until the source backup entry has been reconciled"
	stepEntry           = "Deploying backup entry"
	stepEntryReady      = "Waiting until the backup entry has been reconciled"
	stepInfrastructure  = "Deploying Shoot infrastructure"
	stepInfraReady      = "Waiting until Shoot infrastructure has been reconciled"
	stepBefore          = "Deploying extension resources before kube-apiserver"
	stepService         = "Deploying Kubernetes API server service in the Seed cluster"
	stepServer          = "Deploying Kubernetes API server"
	stepServiceReady    = "Waiting until Kubernetes API server service in the Seed cluster has reported readiness"
	stepServerReady     = "Waiting until Kubernetes API server rolled out"
	stepNewKey          = "Waiting until Kubernetes API server encrypts with the new ETCD encryption key"
	stepConnection      = "Initializing connection to Shoot"
	stepControllers     = "Deploying Kubernetes controller manager"
	stepControllersUp   = "Waiting until kube-controller-manager reports readiness"
	stepEncrypt         = "Rewriting resources to encrypt them with the ETCD encryption key"
	stepPlane           = "Deploying Shoot control plane"
	stepPlaneReady      = "Waiting until Shoot control plane has been reconciled"
	stepNetwork         = "Deploying Shoot network plugin"
	stepNetworkReady    = "Waiting until Shoot network plugin has been reconciled"
	stepSystem          = "Deploying Shoot system resources"
	stepOSC             = "Deploying operating system config resources"
	stepOSCReady        = "Waiting until operating system config resources are ready"
	stepNodeAgent       = "Deploying gardener-node-agent secrets"
	stepMachines        = "Deploying machine-controller-manager"
	stepAfter           = "Deploying extension resources after kube-apiserver"
	stepExtensionAccess = "Deploying access of extensions to the Shoot"
	stepRuntimes        = "Deploying container runtime resources"
	stepWorker          = "Configuring Shoot worker pools"
	stepWorkerReady     = "Waiting until Shoot worker nodes have been reconciled"
	stepNodesUpdated    = "Waiting until all shoot worker nodes have updated the operating system config"
	stepHibernate       = "Hibernating control plane"
)

// reconcileTasks returns the tasks of a reconciliation. While the Shoot is asleep, the tasks that need the API server
// are skipped, and those for machines, because there are none.
func (b *botanist) reconcileTasks() []flow.Task {
	noWorkers, asleep := b.workerless(), b.asleep
	return slices.Concat(b.foundationTasks(), b.backupTasks(), []flow.Task{
		unless(noWorkers || asleep || b.hibernates(), b.task(stepNodesUpdated, b.nodesUpdated, stepWorkerReady, stepNodeAgent)),
		unless(asleep, b.task("Deploying generic token kubeconfig", b.deployGenericKubeconfig, stepServiceReady)),
		unless(asleep, b.task(stepExtensionAccess, b.deployExtensionKubeconfig, stepConnection)),
		b.task("Ensuring advertised addresses for the Shoot", b.advertise, stepServiceReady),
		unless(asleep, b.task("Deploying external domain DNS record", b.deployDNSRecord, stepServiceReady)),
		b.task(stepServerReady, b.rolledOut(spec.APIServer), stepServer),
		b.task(stepNewKey, b.encryptWithNewKey, stepServerReady),
		unless(asleep, b.task(stepConnection, b.connect, stepNewKey, stepServiceReady)),
		unless(asleep, b.task(stepEncrypt, b.encryptAll, stepConnection, stepControllers)),
		b.task(stepControllers, b.deployControllerManager, stepSecrets, stepNewKey),
		b.task(stepControllersUp, b.rolledOut(spec.ControllerManager), stepControllers),
		unless(asleep, b.task(stepSystem, b.deployContent, stepConnection)),
		unless(noWorkers, b.task(stepPlane, b.deployOne(b.controlPlaneResource), stepInfraReady)),
		unless(noWorkers, b.task(stepPlaneReady, b.waitOne(b.controlPlaneResource), stepPlane)),
		unless(!b.hasNetwork(), b.task(stepNetwork, b.deployOne(b.networkResource), stepInfraReady)),
		unless(!b.hasNetwork(), b.task(stepNetworkReady, b.waitOne(b.networkResource), stepNetwork)),
		unless(asleep, b.task(stepAfter, b.reconcileExtensions(corev1beta1.AfterKubeAPIServer), stepConnection, stepExtensionAccess, stepInfraReady)),
		unless(noWorkers || asleep, b.task(stepOSC, b.deployOperatingSystemConfigs, stepServiceReady, stepSSHKeypair, stepSecrets, stepCluster)),
		unless(noWorkers || asleep, b.task(stepOSCReady, b.waitOperatingSystemConfigs, stepOSC)),
		unless(noWorkers || asleep, b.task(stepNodeAgent, b.deployNodeSecrets, stepOSCReady, stepSystem)),
		unless(noWorkers || asleep, b.task(stepMachines, b.deployMachineController, stepServiceReady, stepSystem)),
		unless(noWorkers || asleep, b.task(stepRuntimes, b.reconcileRuntimes, stepConnection, stepInfraReady)),
		unless(noWorkers || asleep, b.task(stepWorker, b.deployOne(b.workerResource),
			stepInfraReady, stepPlaneReady, stepNetworkReady, stepNodeAgent, stepMachines, stepControllersUp)),
		unless(noWorkers || asleep, b.task(stepWorkerReady, b.waitOne(b.workerResource), stepWorker)),
		unless(asleep, b.task("Deploying extension resources after workers", b.reconcileExtensions(corev1beta1.AfterWorker),
			stepWorkerReady, stepConnection)),
		unless(asleep, b.task("Deleting stale extension resources", b.deleteStale, stepWorkerReady, stepAfter)),
		unless(noWorkers || asleep, b.task("Deleting stale gardener-node-agent secrets", b.deleteStaleNodeSecrets, stepWorkerReady)),
		unless(!b.hibernates() || asleep, b.task("Deleting nodes", b.deleteNodes, stepWorkerReady, stepConnection)),
		unless(!b.hibernates() || asleep, b.task(stepHibernate, b.scaleDown, "Deleting nodes", "Deleting stale extension resources",
			"Deleting stale gardener-node-agent secrets", stepControllersUp, stepEncrypt)),
		unless(!b.restores(), b.task("Deleting extension states from ShootState", b.cleanState, stepWorkerReady,
			stepPlaneReady, stepNetworkReady, stepAfter, stepRuntimes, stepHibernate, stepEntryReady)),
	})
}

// backupTasks returns the tasks that deploy the Shoot's BackupEntry, if the seed has a bucket for backups. In a
// restoration, the backups can be copied from the bucket of the previous seed.
func (b *botanist) backupTasks() []flow.Task {
	none, moved := !b.backsUp(), b.backsUp() && b.restores()
	return []flow.Task{
		unless(!moved, b.task(stepSourceEntry, b.deploySourceEntry, stepNamespace)),
		unless(!moved, b.task(stepSourceReady, b.entryReady(b.sourceKey), stepSourceEntry)),
		unless(none, b.task(stepEntry, b.deployEntry, stepNamespace, stepSourceReady)),
		unless(none, b.task(stepEntryReady, b.entryReady(b.entryKey), stepEntry)),
		unless(!moved, b.task("Destroying source backup entry", b.destroySourceEntry, stepEntryReady)),
	}
}

// foundationTasks returns the tasks that need no API server.
func (b *botanist) foundationTasks() []flow.Task {
	noWorkers := b.workerless()
	return []flow.Task{
		b.task(stepNamespace, func(ctx context.Context) error { return b.deployNamespace(ctx, &b.gardenData) }),
		b.task(stepCluster, func(ctx context.Context) error { return b.deployCluster(ctx, &b.gardenData) }, stepNamespace),
		b.task(stepCloudProvider, b.deployCloudProviderSecret, stepNamespace),
		b.task(stepSecrets, b.initializeSecrets, stepNamespace),
		b.task(stepSSHKeypair, b.initializeSSHKeypair, stepSecrets),
		b.task(stepObservability, b.initializeObservability, stepSecrets),
		unless(b.restores(), b.task(stepState, b.persistSecrets, stepSSHKeypair, stepObservability)),
		b.task("Publishing certificate authorities in the project", b.deployAuthoritiesInProject, stepSecrets),
		b.task("Publishing SSH keypair in the project", b.deploySSHKeypairInProject, stepSSHKeypair),
		b.task("Publishing observability credentials in the project", b.deployObservabilityInProject, stepObservability),
		unless(noWorkers, b.task(stepInfrastructure, b.deployOne(b.infrastructureResource), stepCluster, stepCloudProvider, stepSSHKeypair)),
		unless(noWorkers, b.task(stepInfraReady, b.waitInfrastructure, stepInfrastructure)),
		unless(b.asleep, b.task(stepBefore, b.reconcileExtensions(corev1beta1.BeforeKubeAPIServer), stepCluster, stepSecrets, stepCloudProvider)),
		b.task(stepService, b.deployService, stepNamespace),
		b.task(stepServer, b.deployAPIServer, stepSecrets, stepService, stepBefore),
		b.task(stepServiceReady, b.readEndpoint, stepServer),
	}
}

func (b *botanist) deployOne(resource func() *extension) func(context.Context) error {
	return func(ctx context.Context) error { return b.deploy(ctx, resource()) }
}

func (b *botanist) waitOne(resource func() *extension) func(context.Context) error {
	return func(ctx context.Context) error { return b.ready(ctx, resource()) }
}

func (b *botanist) reconcileRuntimes(ctx context.Context) error {
	return b.deployAndWait(ctx, b.containerRuntimes()...)
}
