package main

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

var group = schema.GroupVersion{Group: "wordpress.example.org", Version: "v1alpha1"}

const (
	instanceKind = "WordPressInstance"
	claimKind    = "MySQLInstance"
)

// reconciler claims a database for each site, and serves the site when it has one.
type reconciler struct {
	client.Client
	sites *sites
}

func (r *reconciler) addToManager(m manager.Manager) error {
	r.Client = m.GetClient()
	return builder.ControllerManagedBy(m).Named("site").
		For(sample.Object(group, instanceKind)).
		Owns(sample.Object(sample.DatabaseGroup, claimKind)).
		Complete(r)
}

// Reconcile serves an instance, and reports in its status how far it has come.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance := sample.Object(group, instanceKind)
	if err := r.Get(ctx, request.NamespacedName, instance); err != nil || !instance.GetDeletionTimestamp().IsZero() {
		r.sites.remove(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status := map[string]any{"databaseRef": map[string]any{"name": instance.GetName()}}
	endpoint, err := r.database(ctx, instance)
	if err == nil {
		status["address"] = r.sites.serve(instance.GetName(), site{
			Title: sample.String(instance, "spec", "title"), Theme: sample.String(instance, "spec", "theme"), Endpoint: endpoint,
		})
	} else {
		r.sites.remove(request.Name)
	}
	return reconcile.Result{}, sample.PatchStatus(ctx, r, instance, status, "served by version "+r.sites.version, err)
}

// database claims the database of an instance, and returns its endpoint when it is ready.
func (r *reconciler) database(ctx context.Context, instance *unstructured.Unstructured) (string, error) {
	claim := sample.Object(sample.DatabaseGroup, claimKind)
	claim.SetNamespace(instance.GetNamespace())
	claim.SetName(instance.GetName())
	if err := sample.CreateOrUpdate(ctx, r, instance, claim, claimKind, func() {}); err != nil {
		return "", err
	}
	if sample.String(claim, "status", "phase") != "Ready" {
		return "", sample.Pendingf("waits for %s %s: %s", claimKind, claim.GetName(), sample.String(claim, "status", "message"))
	}
	name := cmp.Or(sample.String(claim, "spec", "writeConnectionSecretToRef", "name"), claim.GetName())
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: claim.GetNamespace(), Name: name}, secret)
	if apierrors.IsNotFound(err) || err == nil && len(secret.Data["endpoint"]) == 0 {
		return "", sample.Pendingf("waits for the Secret %s of %s %s", name, claimKind, claim.GetName())
	}
	return string(secret.Data["endpoint"]) + ":" + string(secret.Data["port"]), err
}
