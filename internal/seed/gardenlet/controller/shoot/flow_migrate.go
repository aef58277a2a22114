package shoot

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// migrateTasks returns the tasks that release a Shoot for another seed: everything of it leaves this seed, and nothing
// of it is deleted in the infrastructure. The API server's data stays for the other seed because its deletion is not
// confirmed.
func (b *botanist) migrateTasks() []flow.Task {
	const (
		bastions   = "Waiting until Bastions are deleted"
		migrate    = "Migrating extension resources"
		last       = "Migrating Shoot control plane and infrastructure"
		state      = "Persisting ShootState in garden cluster"
		entry      = "Migrating BackupEntry to new seed"
		controlled = "Deleting Kubernetes controller manager"
		server     = "Deleting Kubernetes API server"
		extensions = "Deleting extension resources from the Shoot namespace"
		namespace  = "Deleting Shoot namespace in Seed"
	)
	id := metav1.ObjectMeta{Name: b.namespace()}
	first := []string{
		extensionsv1alpha1.WorkerResource, extensionsv1alpha1.OperatingSystemConfigResource, extensionsv1alpha1.ContainerRuntimeResource,
		extensionsv1alpha1.ExtensionResource, extensionsv1alpha1.NetworkResource, extensionsv1alpha1.DNSRecordResource,
	}
	return []flow.Task{
		b.task(bastions, b.withoutBastions),
		b.task(migrate, b.migrateAll(first...), bastions),
		b.task(last, b.migrateAll(extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource), migrate),
		b.task(state, b.persistState, last),
		b.task(controlled, b.deletePlane(spec.ControllerManager, false), state),
		b.task(server, b.deletePlane(spec.APIServer, false), controlled),
		b.task(entry, b.migrateEntry, server),
		b.task(extensions, b.destroyAll(), server),
		b.task(namespace, removal(b.SeedClient, b.SeedReader, &corev1.Namespace{ObjectMeta: id}), extensions, entry),
		b.task("Deleting Cluster resource from Seed",
			removal(b.SeedClient, b.SeedReader, &extensionsv1alpha1.Cluster{ObjectMeta: id}), namespace),
	}
}

func (b *botanist) migrateAll(kinds ...string) func(context.Context) error {
	return func(ctx context.Context) error { return b.each(ctx, b.migrate, kinds...) }
}

// withoutBastions waits until the Shoot has no Bastions any more. The Bastion controller of the controller-manager
// deletes the Bastions of a Shoot that is deleted or migrated.
func (b *botanist) withoutBastions(ctx context.Context) error {
	bastions, err := b.bastions(ctx)
	if err != nil {
		return err
	}
	if len(bastions) > 0 {
		return flow.Pending("Bastion %s/%s of the Shoot is still there", bastions[0].Namespace, bastions[0].Name)
	}
	return nil
}

func (b *botanist) bastions(ctx context.Context) ([]operationsv1alpha1.Bastion, error) {
	all := &operationsv1alpha1.BastionList{}
	if err := b.GardenClient.List(ctx, all, client.InNamespace(b.shoot.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Bastions of namespace %s: %w", b.shoot.Namespace, err)
	}
	return slices.DeleteFunc(all.Items, func(bastion operationsv1alpha1.Bastion) bool {
		return bastion.Spec.ShootRef.Name != b.shoot.Name
	}), nil
}

// migrationBlocker returns why the migration of a Shoot cannot begin, empty if it can or has already begun.
func migrationBlocker(shoot *corev1beta1.Shoot) string {
	if isMigration(shoot.Status.LastOperation) {
		return ""
	}
	ready := conditions.Get(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
	switch {
	case ready == nil:
		return "the destination does not report yet whether it is ready"
	case ready.Status != corev1beta1.ConditionTrue:
		return "the destination is not ready: " + ready.Message
	}
	return ""
}
