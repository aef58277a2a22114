package finalizers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// These are the finalizers with which bindings protect the credentials that they refer to, as in Gardener.
const (
	secretBindingFinalizer      = "gardener.cloud/secretbinding"
	credentialsBindingFinalizer = "gardener.cloud/credentialsbinding"
)

// workloadIdentityKind is the kind of credentials on which the label for the provider is not set here: admission sets
// another label on them.
const workloadIdentityKind = "WorkloadIdentity"

// binding has the common properties of a SecretBinding and a CredentialsBinding.
type binding struct {
	object client.Object
	// mark is the label of objects that such a binding refers to, finalizer is the finalizer of its credentials.
	mark, finalizer string
	credentials     corev1.ObjectReference
	providers       []string
	quotas          []types.NamespacedName
}

func bindingOf(obj client.Object) binding {
	if b, ok := obj.(*securityv1alpha1.CredentialsBinding); ok {
		return binding{
			object: b, mark: constants.LabelCredentialsBindingReference, finalizer: credentialsBindingFinalizer,
			credentials: b.CredentialsRef, providers: providers(b.Provider.Type), quotas: keys(b.Quotas),
		}
	}
	b := obj.(*corev1beta1.SecretBinding)
	all := binding{object: b, mark: constants.LabelSecretBindingReference, finalizer: secretBindingFinalizer,
		credentials: kit.SecretOf(b), quotas: keys(b.Quotas)}
	if b.Provider != nil {
		all.providers = providers(b.Provider.Type)
	}
	return all
}

// providers splits a list of provider types that are separated by commas.
func providers(types string) []string {
	return slices.DeleteFunc(strings.Split(types, ","), func(t string) bool { return t == "" })
}

// settleBinding labels the objects that a binding refers to, and adds the finalizer to its credentials.
func settleBinding(ctx context.Context, r *Reconciler, obj client.Object) (reconcile.Result, error) {
	b := bindingOf(obj)
	credentials, err := getCredentials(ctx, r.Client, b.credentials)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = change(ctx, r.Client, credentials, func() {
		controllerutil.AddFinalizer(credentials, b.finalizer)
		controllerutil.RemoveFinalizer(credentials, corev1beta1.ExternalGardenerName) // set by older versions of Gardener
		marks := labels.Merge(credentials.GetLabels(), nil)
		marks[b.mark] = "true"
		for _, provider := range b.providers {
			if b.credentials.Kind != workloadIdentityKind {
				marks[constants.LabelShootProviderPrefix+provider] = "true"
			}
		}
		credentials.SetLabels(marks)
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, name := range b.quotas {
		quota := &corev1beta1.Quota{}
		if err := r.Client.Get(ctx, name, quota); err != nil {
			return reconcile.Result{}, fmt.Errorf("reading the Quota %s that the binding refers to: %w", name, err)
		}
		if err := change(ctx, r.Client, quota, func() { metav1.SetMetaDataLabel(&quota.ObjectMeta, b.mark, "true") }); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// releaseBinding reverts settleBinding, except for labels and finalizers that other bindings need.
func releaseBinding(ctx context.Context, r *Reconciler, obj client.Object) error {
	b := bindingOf(obj)
	others, err := otherBindings(ctx, r.Reader, b)
	if err != nil {
		return err
	}
	if err := b.releaseCredentials(ctx, r.Client, others); err != nil {
		return err
	}
	for _, name := range b.quotas {
		if slices.ContainsFunc(others, func(o binding) bool { return o.mark == b.mark && slices.Contains(o.quotas, name) }) {
			continue
		}
		quota := &corev1beta1.Quota{}
		if err := r.Client.Get(ctx, name, quota); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("reading the Quota %s that the binding refers to: %w", name, err)
		}
		if err := change(ctx, r.Client, quota, func() { delete(quota.Labels, b.mark) }); err != nil {
			return err
		}
	}
	return nil
}

func (b binding) releaseCredentials(ctx context.Context, c client.Client, others []binding) error {
	credentials, err := getCredentials(ctx, c, b.credentials)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	marked, needed := false, sets.New[string]()
	for _, other := range others {
		if !sameCredentials(other.credentials, b.credentials) {
			continue
		}
		marked = marked || other.mark == b.mark
		needed.Insert(other.providers...)
	}
	return change(ctx, c, credentials, func() {
		marks := labels.Merge(credentials.GetLabels(), nil)
		for _, provider := range b.providers {
			if !needed.Has(provider) {
				delete(marks, constants.LabelShootProviderPrefix+provider)
			}
		}
		if !marked {
			delete(marks, b.mark)
			controllerutil.RemoveFinalizer(credentials, b.finalizer)
			controllerutil.RemoveFinalizer(credentials, corev1beta1.ExternalGardenerName)
		}
		credentials.SetLabels(marks)
	})
}

// otherBindings returns all other bindings of both kinds, in all namespaces, that are not being deleted.
func otherBindings(ctx context.Context, reader client.Reader, b binding) (others []binding, err error) {
	for _, list := range []client.ObjectList{&corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}} {
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the bindings that may refer to the same (%T): %w", list, err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o := bindingOf(item.(client.Object))
			same := o.mark == b.mark && client.ObjectKeyFromObject(o.object) == client.ObjectKeyFromObject(b.object)
			if !same && o.object.GetDeletionTimestamp() == nil {
				others = append(others, o)
			}
			return nil
		})
	}
	return others, nil
}

func sameCredentials(a, b corev1.ObjectReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

func getCredentials(ctx context.Context, reader client.Reader, ref corev1.ObjectReference) (client.Object, error) {
	var credentials client.Object
	switch ref.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		credentials = &corev1.Secret{}
	case corev1beta1.SchemeGroupVersion.WithKind("InternalSecret"):
		credentials = &corev1beta1.InternalSecret{}
	case securityv1alpha1.SchemeGroupVersion.WithKind(workloadIdentityKind):
		credentials = &securityv1alpha1.WorkloadIdentity{}
	default:
		return nil, reconcile.TerminalError(fmt.Errorf("the binding refers to credentials of the kind %s %s, which is none "+
			"of Secret, InternalSecret and WorkloadIdentity", ref.APIVersion, ref.Kind))
	}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, credentials); err != nil {
		return nil, fmt.Errorf("reading the %s %s/%s that the binding refers to: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	return credentials, nil
}

// change patches an object if mutate changes it. The patch fails with a conflict if the object has changed since it
// was read.
func change(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	before := obj.DeepCopyObject().(client.Object)
	mutate()
	// Finalizers cannot be added to an object that is being deleted; the API server would refuse the whole patch.
	if obj.GetDeletionTimestamp() != nil {
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return !slices.Contains(before.GetFinalizers(), f) }))
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing labels and finalizers of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
