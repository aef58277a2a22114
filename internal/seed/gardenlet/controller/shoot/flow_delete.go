package shoot

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// deleteTasks returns the tasks that delete everything of a Shoot, in the order of the dependencies. They need nothing
// of the garden but the Shoot itself, and no API server of the shoot. In the seed, the Cluster resource is deleted
// last, because extensions need it until then. If the user has confirmed a forced deletion, failing extensions do not
// block it.
func (b *botanist) deleteTasks() []flow.Task {
	const (
		bastions    = "Waiting until Bastions are deleted"
		worker      = "Destroying Shoot workers"
		others      = "Deleting extension resources"
		network     = "Destroying Shoot network plugin"
		plane       = "Destroying Shoot control plane"
		controllers = "Deleting Kubernetes controller manager"
		server      = "Deleting Kubernetes API server"
		infra       = "Destroying Shoot infrastructure"
		dns         = "Destroying DNS records"
		project     = "Deleting credentials from the project"
		secrets     = "Releasing Secrets in the Shoot namespace"
		namespace   = "Deleting Shoot namespace in Seed"
		cluster     = "Deleting Cluster resource from Seed"
	)
	id := metav1.ObjectMeta{Name: b.namespace()}
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: b.shoot.Namespace, Name: b.shoot.Name}}
	return []flow.Task{
		unless(!b.needsForceDeletion(), b.task(stepForce, b.announceForce)),
		b.task(bastions, b.withoutBastions, stepForce),
		b.task(worker, b.destroyAll(extensionsv1alpha1.WorkerResource), bastions),
		b.task(others, b.destroyAll(extensionsv1alpha1.OperatingSystemConfigResource, extensionsv1alpha1.ContainerRuntimeResource,
			extensionsv1alpha1.ExtensionResource), worker),
		b.task(network, b.destroyAll(extensionsv1alpha1.NetworkResource), worker),
		b.task(plane, b.destroyAll(extensionsv1alpha1.ControlPlaneResource), worker, network),
		b.task(controllers, b.deletePlane(spec.ControllerManager, false), plane, others),
		b.task(server, b.deletePlane(spec.APIServer, true), controllers),
		b.task(infra, b.destroyAll(extensionsv1alpha1.InfrastructureResource), worker, plane),
		b.task(dns, b.destroyAll(extensionsv1alpha1.DNSRecordResource), server),
		b.task(project, b.deleteFromProject, server),
		unless(!b.needsForceDeletion(), b.task(secrets, b.releaseSecrets, infra, dns, plane, others)),
		b.task(namespace, removal(b.SeedClient, b.SeedReader, &corev1.Namespace{ObjectMeta: id}), infra, dns, project, server, others, secrets),
		b.task(cluster, removal(b.SeedClient, b.SeedReader, &extensionsv1alpha1.Cluster{ObjectMeta: id}), namespace),
		b.task("Deleting Shoot State", removal(b.GardenClient, b.GardenReader, state), cluster),
	}
}

// destroyAll returns a step that deletes the extension resources of some kinds, all if none is given.
func (b *botanist) destroyAll(kinds ...string) func(context.Context) error {
	return func(ctx context.Context) error { return b.each(ctx, b.destroy, kinds...) }
}
