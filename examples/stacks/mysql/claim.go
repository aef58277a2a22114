package main

import (
	"cmp"
	"context"
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

const (
	claimKind  = "MySQLInstance"
	classKind  = "MySQLInstanceClass"
	serverKind = "MySQLServer"

	finalizer = "database.example.org/server"
	// claimLabel is the label of a connection Secret with the UID of its claim.
	claimLabel = "database.example.org/claim"
	port       = "3306"
)

// reconciler creates a server for each claim, and a Secret with what is needed to connect to it.
type reconciler struct{ client.Client }

func (r *reconciler) addToManager(m manager.Manager) error {
	r.Client = m.GetClient()
	return builder.ControllerManagedBy(m).Named("claim").
		For(object(claimKind)).
		Owns(object(serverKind)).
		Owns(&corev1.Secret{}, builder.OnlyMetadata).
		Watches(object(classKind), handler.EnqueueRequestsFromMapFunc(r.claimsOfClass)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfCredentials)).
		Complete(r)
}

func object(kind string) *unstructured.Unstructured { return sample.Object(sample.DatabaseGroup, kind) }

func (r *reconciler) list(ctx context.Context, kind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(sample.DatabaseGroup.WithKind(kind + "List"))
	err := r.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

// claimsOfClass returns all claims in the namespace of a class, which may have become their default or no longer be
// it.
func (r *reconciler) claimsOfClass(ctx context.Context, class client.Object) (requests []reconcile.Request) {
	claims, err := r.list(ctx, claimKind, class.GetNamespace())
	if err != nil {
		return nil // the cache has not started
	}
	for _, claim := range claims {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&claim)})
	}
	return requests
}

func (r *reconciler) claimsOfCredentials(ctx context.Context, secret client.Object) []reconcile.Request {
	classes, err := r.list(ctx, classKind, secret.GetNamespace())
	if err != nil {
		return nil // the cache has not started
	}
	for _, class := range classes {
		if credentialsOf(&class) == secret.GetName() {
			return r.claimsOfClass(ctx, &class)
		}
	}
	return nil
}

func credentialsOf(class *unstructured.Unstructured) string {
	return sample.String(class, "spec", "credentialsSecretRef", "name")
}

// Reconcile serves a claim, and reports in its status how far it has come.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := object(claimKind)
	if err := r.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !claim.GetDeletionTimestamp().IsZero() {
		return reconcile.Result{}, r.release(ctx, claim)
	}
	if controllerutil.AddFinalizer(claim, finalizer) {
		if err := r.Update(ctx, claim); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	status := map[string]any{}
	class, err := r.serve(ctx, claim)
	if r.serverOf(ctx, claim) != nil {
		status["resourceRef"] = map[string]any{"name": claim.GetName()}
	}
	return reconcile.Result{}, sample.PatchStatus(ctx, r, claim, status, "served by the class "+class, err)
}

// serverOf returns the server of a claim, or nil.
func (r *reconciler) serverOf(ctx context.Context, claim *unstructured.Unstructured) *unstructured.Unstructured {
	server := object(serverKind)
	if r.Get(ctx, client.ObjectKeyFromObject(claim), server) != nil || !metav1.IsControlledBy(server, claim) {
		return nil
	}
	return server
}

// serve creates the server and the Secret of a claim, and returns the name of its class.
func (r *reconciler) serve(ctx context.Context, claim *unstructured.Unstructured) (string, error) {
	class, err := r.classOf(ctx, claim)
	if err != nil {
		return "", err
	}
	if err := r.hasCredentials(ctx, class); err != nil {
		return "", err
	}
	address, err := r.provision(ctx, claim, class)
	if err != nil {
		return "", err
	}
	return class.GetName(), r.publish(ctx, claim, address)
}

// classOf returns the class that the claim names, or the default class of its namespace.
func (r *reconciler) classOf(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if name := sample.String(claim, "spec", "classRef", "name"); name != "" {
		class := object(classKind)
		err := r.Get(ctx, client.ObjectKey{Namespace: claim.GetNamespace(), Name: name}, class)
		if apierrors.IsNotFound(err) {
			return nil, sample.Pendingf("%s %s does not exist", classKind, name)
		}
		return class, err
	}
	classes, err := r.list(ctx, classKind, claim.GetNamespace())
	if err != nil {
		return nil, err
	}
	var found *unstructured.Unstructured
	for i := range classes {
		if isDefault, _, _ := unstructured.NestedBool(classes[i].Object, "spec", "default"); !isDefault {
			continue
		}
		if found != nil {
			return nil, sample.Pendingf("namespace %s has more than one default %s: set spec.classRef", claim.GetNamespace(), classKind)
		}
		found = &classes[i]
	}
	if found == nil {
		return nil, sample.Pendingf("namespace %s has no default %s: set spec.classRef", claim.GetNamespace(), classKind)
	}
	return found, nil
}

// hasCredentials checks that the Secret of a class exists. Its content is for a provider, and is not read.
func (r *reconciler) hasCredentials(ctx context.Context, class *unstructured.Unstructured) error {
	name := credentialsOf(class)
	if name == "" {
		return sample.Pendingf("%s %s has no spec.credentialsSecretRef", classKind, class.GetName())
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Get(ctx, client.ObjectKey{Namespace: class.GetNamespace(), Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return sample.Pendingf("Secret %s with the credentials of %s %s does not exist", name, classKind, class.GetName())
	}
	return err
}

// provision creates or updates the server of a claim as its class says, and returns its address.
func (r *reconciler) provision(ctx context.Context, claim, class *unstructured.Unstructured) (string, error) {
	server := object(serverKind)
	server.SetNamespace(claim.GetNamespace())
	server.SetName(claim.GetName())
	spec := map[string]any{
		"claimRef": map[string]any{"name": claim.GetName()}, "classRef": map[string]any{"name": class.GetName()},
	}
	for _, object := range []*unstructured.Unstructured{class, claim} { // the claim's version wins
		if version := sample.String(object, "spec", "engineVersion"); version != "" {
			spec["engineVersion"] = version
		}
	}
	if size, found, _ := unstructured.NestedInt64(class.Object, "spec", "storageGB"); found {
		spec["storageGB"] = size
	}
	if err := sample.CreateOrUpdate(ctx, r, claim, server, serverKind, func() { server.Object["spec"] = spec }); err != nil {
		return "", err
	}
	address := claim.GetName() + "." + claim.GetNamespace() + ".mysql.example.org"
	return address, sample.PatchStatus(ctx, r, server, map[string]any{"address": address}, "", nil)
}

// publish writes the connection Secret of a claim. Its password is generated once. A Secret with an earlier name is
// deleted.
func (r *reconciler) publish(ctx context.Context, claim *unstructured.Unstructured, address string) error {
	name := cmp.Or(sample.String(claim, "spec", "writeConnectionSecretToRef", "name"), claim.GetName())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: claim.GetNamespace(), Name: name}}
	err := sample.CreateOrUpdate(ctx, r, claim, secret, "Secret", func() {
		password := secret.Data["password"]
		if len(password) == 0 {
			password = []byte(rand.Text())
		}
		secret.Labels = map[string]string{claimLabel: string(claim.GetUID())}
		secret.Data = map[string][]byte{"endpoint": []byte(address), "port": []byte(port), "username": []byte("admin"), "password": password}
	})
	if err != nil {
		return err
	}
	return r.deleteSecrets(ctx, claim, name)
}

// deleteSecrets deletes the connection Secrets of a claim, except for the one that is named keep.
func (r *reconciler) deleteSecrets(ctx context.Context, claim *unstructured.Unstructured, keep string) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.List(ctx, secrets, client.InNamespace(claim.GetNamespace()),
		client.MatchingLabels{claimLabel: string(claim.GetUID())}); err != nil {
		return err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if secret.Name == keep || !metav1.IsControlledBy(secret, claim) {
			continue
		}
		if err := r.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// release deletes the server and the Secrets of a claim that is being deleted, and then removes its finalizer.
func (r *reconciler) release(ctx context.Context, claim *unstructured.Unstructured) error {
	if err := r.deleteSecrets(ctx, claim, ""); err != nil {
		return err
	}
	if server := r.serverOf(ctx, claim); server != nil {
		if err := r.Delete(ctx, server); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if !controllerutil.RemoveFinalizer(claim, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, claim))
}
