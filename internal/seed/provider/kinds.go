package provider

import (
	"context"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/bastionsim"
)

// Kinds returns the table of kinds that the simulator reconciles. Without a cloud it omits the kinds that need one.
func Kinds(cfg Config) []Kind {
	kinds := []Kind{
		kindOf(extensionsv1alpha1.BackupBucketResource, &extensionsv1alpha1.BackupBucket{},
			func(b *extensionsv1alpha1.BackupBucket) *corev1.SecretReference { return &b.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.BackupBucket]{Reconcile: reconcileBucket, Delete: deleteBucket}),
		kindOf(extensionsv1alpha1.BackupEntryResource, &extensionsv1alpha1.BackupEntry{},
			func(e *extensionsv1alpha1.BackupEntry) *corev1.SecretReference { return &e.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.BackupEntry]{Reconcile: reconcileEntry, Delete: releaseEntry, Migrate: releaseEntry}),
		kindOf(extensionsv1alpha1.ControlPlaneResource, &extensionsv1alpha1.ControlPlane{},
			func(p *extensionsv1alpha1.ControlPlane) *corev1.SecretReference { return &p.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.ControlPlane]{Reconcile: reconcileControlPlane}),
		kindOf(extensionsv1alpha1.NetworkResource, &extensionsv1alpha1.Network{}, nil,
			Actuator[*extensionsv1alpha1.Network]{Reconcile: reconcileNetwork}),
		kindOf(extensionsv1alpha1.OperatingSystemConfigResource, &extensionsv1alpha1.OperatingSystemConfig{}, nil,
			Actuator[*extensionsv1alpha1.OperatingSystemConfig]{Reconcile: reconcileOSC, Delete: deleteOSC, Migrate: deleteOSC}),
		kindOf(extensionsv1alpha1.ContainerRuntimeResource, &extensionsv1alpha1.ContainerRuntime{}, nil,
			Actuator[*extensionsv1alpha1.ContainerRuntime]{}),
		kindOf(extensionsv1alpha1.ExtensionResource, &extensionsv1alpha1.Extension{}, nil, Actuator[*extensionsv1alpha1.Extension]{}),
		kindOf(extensionsv1alpha1.DNSRecordResource, &extensionsv1alpha1.DNSRecord{},
			func(r *extensionsv1alpha1.DNSRecord) *corev1.SecretReference { return &r.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.DNSRecord]{Reconcile: reconcileDNSRecord}),
	}
	if cfg.Cloud == nil {
		return kinds
	}
	network := infrastructure{cfg.Cloud}
	machines := &workers{cfg.Cloud, cfg.Clock, cfg.guard}
	worker := kindOf(extensionsv1alpha1.WorkerResource, &extensionsv1alpha1.Worker{},
		func(w *extensionsv1alpha1.Worker) *corev1.SecretReference { return &w.Spec.SecretRef },
		Actuator[*extensionsv1alpha1.Worker]{Reconcile: machines.reconcile, Delete: machines.delete, Migrate: machines.migrate,
			Restore: machines.restore})
	worker.watch = watchMachines
	bastions := bastionsim.Provider{Cloud: cfg.Cloud, Clock: cfg.Clock}
	// Bastions have no secret function: they share a Secret, and one Bastion would remove the finalizer of all others from it.
	bastion := kindOf(extensionsv1alpha1.BastionResource, &extensionsv1alpha1.Bastion{}, nil,
		Actuator[*extensionsv1alpha1.Bastion]{Reconcile: bastions.Reconcile, Delete: bastions.Delete})
	bastion.watch, bastion.outOfSync = bastions.Watch, bastions.OutOfSync
	bastion.guard = func(ctx context.Context, obj extensionsv1alpha1.Object) error {
		return bastions.Guard(ctx, obj.(*extensionsv1alpha1.Bastion))
	}
	return append(kinds, worker, bastion,
		kindOf(extensionsv1alpha1.InfrastructureResource, &extensionsv1alpha1.Infrastructure{},
			func(i *extensionsv1alpha1.Infrastructure) *corev1.SecretReference { return &i.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.Infrastructure]{Reconcile: network.reconcile, Delete: network.delete}))
}

// Actuator has the operations of an extension on objects of a kind. They work in the seed, may change the object's status
// (which is written afterwards), and must be idempotent. A missing function does nothing, a missing Restore does the same
// as Reconcile. An error can be an *operation.Error, to give it Gardener's error codes, or an *operation.Wait.
type Actuator[T extensionsv1alpha1.Object] struct {
	Reconcile, Delete, Migrate, Restore func(ctx context.Context, seed client.Client, obj T) error
}

// Kind is an entry of the table of kinds.
type Kind struct {
	// Name is the name of the controller, and of its finalizer.
	Name string
	// Title is the kind's name in the API.
	Title string

	object func() extensionsv1alpha1.Object
	secret func(extensionsv1alpha1.Object) *corev1.SecretReference
	act    map[corev1beta1.LastOperationType]action
	// watch adds watches of other objects that trigger a reconciliation; nil for most kinds.
	watch func(*builder.Builder, manager.Manager) error
	// outOfSync reports whether an object differs from the result of its last, successful operation; nil for most kinds.
	outOfSync func(extensionsv1alpha1.Object) bool
	// guard revokes what a changed spec does not allow any more, even if the operation waits or fails; nil for most kinds.
	guard func(context.Context, extensionsv1alpha1.Object) error
}

type action func(ctx context.Context, seed client.Client, obj extensionsv1alpha1.Object) error

// kindOf returns an entry of the table. The function secret returns the credentials of an object, nil if a kind has none.
func kindOf[T extensionsv1alpha1.Object](title string, empty T, secret func(T) *corev1.SecretReference, a Actuator[T]) Kind {
	typed := func(f func(context.Context, client.Client, T) error) action {
		return func(ctx context.Context, seed client.Client, obj extensionsv1alpha1.Object) error {
			if f == nil {
				return nil
			}
			return f(ctx, seed, obj.(T))
		}
	}
	if a.Restore == nil {
		a.Restore = a.Reconcile
	}
	kind := Kind{
		Name: strings.ToLower(title), Title: title,
		object: func() extensionsv1alpha1.Object { return empty.DeepCopyObject().(extensionsv1alpha1.Object) },
		secret: func(extensionsv1alpha1.Object) *corev1.SecretReference { return nil },
		act: map[corev1beta1.LastOperationType]action{
			corev1beta1.LastOperationTypeCreate:    typed(a.Reconcile),
			corev1beta1.LastOperationTypeReconcile: typed(a.Reconcile),
			corev1beta1.LastOperationTypeRestore:   typed(a.Restore),
			corev1beta1.LastOperationTypeMigrate:   typed(a.Migrate),
			corev1beta1.LastOperationTypeDelete:    typed(a.Delete),
		},
	}
	if secret != nil {
		kind.secret = func(obj extensionsv1alpha1.Object) *corev1.SecretReference { return secret(obj.(T)) }
	}
	return kind
}

// Finalizer returns the finalizer of objects of the kind and of their credentials.
func (k Kind) Finalizer() string { return "extensions.gardener.cloud/" + k.Name }
