package extensions

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds is the table of the extension resources that are looked after.
func Kinds() []Kind {
	return []Kind{
		kindOf("backupbucket", "BackupBucket", func() *extensionsv1alpha1.BackupBucket { return &extensionsv1alpha1.BackupBucket{} },
			func(b *extensionsv1alpha1.BackupBucket) *corev1.SecretReference { return &b.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.BackupBucket]{Reconcile: reconcileBucket, Delete: deleteBucket}),
		kindOf("backupentry", "BackupEntry", func() *extensionsv1alpha1.BackupEntry { return &extensionsv1alpha1.BackupEntry{} },
			func(e *extensionsv1alpha1.BackupEntry) *corev1.SecretReference { return &e.Spec.SecretRef },
			Actuator[*extensionsv1alpha1.BackupEntry]{Reconcile: reconcileEntry, Delete: releaseEntry, Migrate: releaseEntry}),
	}
}

// Actuator is what an extension does with an object of a kind. It works in the seed, may change the object's status (which
// is written after it), and may be called again at any time. Nothing is done where a function is missing; for Restore,
// what Reconcile does. An error can be an *Error, to give it Gardener's error codes, or a *Wait.
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
}

type action func(ctx context.Context, seed client.Client, obj extensionsv1alpha1.Object) error

// kindOf makes an entry of the table. secret is what credentials an object uses, nil where a kind has none.
func kindOf[T extensionsv1alpha1.Object](name, title string, object func() T, secret func(T) *corev1.SecretReference, a Actuator[T]) Kind {
	typed := func(f func(context.Context, client.Client, T) error) action {
		if f == nil {
			return func(context.Context, client.Client, extensionsv1alpha1.Object) error { return nil }
		}
		return func(ctx context.Context, seed client.Client, obj extensionsv1alpha1.Object) error {
			return f(ctx, seed, obj.(T))
		}
	}
	if a.Restore == nil {
		a.Restore = a.Reconcile
	}
	kind := Kind{
		Name: name, Title: title,
		object: func() extensionsv1alpha1.Object { return object() },
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

// Finalizer is what keeps objects of the kind, and their credentials, while the extension has something to undo.
func (k Kind) Finalizer() string { return "extensions.gardener.cloud/" + k.Name }
