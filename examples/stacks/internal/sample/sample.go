// Package sample holds what the sample controllers of stacks have in common. They need what every stack is given, and no more:
// ConfigMaps, Secrets, Events, and the custom resources that the stack owns or depends on.
package sample

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// DatabaseGroup is the API group of the MySQLInstance claims.
var DatabaseGroup = schema.GroupVersion{Group: "database.example.org", Version: "v1alpha1"}

// Pending is the reason why an object is not ready yet. It becomes the object's status.message.
type Pending string

func (p Pending) Error() string { return string(p) }

// Pendingf formats a Pending.
func Pendingf(format string, args ...any) error { return Pending(fmt.Sprintf(format, args...)) }

// Run runs controllers until the process is asked to end, in one namespace, or in all if it is empty. The cluster is that of
// KUBECONFIG, or the one that the process runs in.
func Run(namespace string, add func(manager.Manager) error) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		// Secrets are read when they are needed, and not cached.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := add(m); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

// Object returns an empty object of a kind.
func Object(group schema.GroupVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(group.WithKind(kind))
	return object
}

// String returns a string field of an object, or "".
func String(object *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, fields...)
	return value
}

// CreateOrUpdate creates or updates an object with change, and makes owner its controller. It does not change an
// existing object that owner does not control.
func CreateOrUpdate(ctx context.Context, c client.Client, owner *unstructured.Unstructured, object client.Object,
	kind string, change func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, c, object, func() error {
		if object.GetResourceVersion() != "" && !metav1.IsControlledBy(object, owner) {
			return Pendingf("%s %s exists already, and is not of this %s", kind, object.GetName(), owner.GetKind())
		}
		change()
		return controllerutil.SetControllerReference(owner, object, c.Scheme())
	})
	return err
}

// PatchStatus sets the fields of the status, and its phase and message according to failure. It returns failure,
// unless that is a Pending.
func PatchStatus(ctx context.Context, c client.Client, object *unstructured.Unstructured, fields map[string]any,
	message string, failure error) error {
	if apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) {
		return failure // the cache is behind
	}
	fields["phase"], fields["message"] = "Ready", message
	var pending Pending
	if failure != nil {
		fields["phase"], fields["message"] = "Pending", failure.Error()
		if errors.As(failure, &pending) {
			failure = nil
		}
	}
	if equality.Semantic.DeepEqual(object.Object["status"], any(fields)) {
		return failure
	}
	before := object.DeepCopy()
	object.Object["status"] = fields
	return errors.Join(failure, client.IgnoreNotFound(c.Status().Patch(ctx, object, client.MergeFrom(before))))
}
