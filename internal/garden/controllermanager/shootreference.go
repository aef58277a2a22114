package controllermanager

import (
	"context"
	"fmt"
	"maps"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

// shootReferenceName is the name of the controller, which is Gardener's.
const shootReferenceName = "shoot-reference"

// ShootReference protects the objects to which Shoots refer: a Secret, a ConfigMap or a WorkloadIdentity that a Shoot
// names cannot be deleted as long as the Shoot exists. The controller adds a finalizer to the object and to the Shoot.
//
// It reads only the metadata of these objects, from the API server. In the namespace garden, it never releases an
// object to which Seeds or ControllerDeployments refer, because these protect objects with the same finalizer.
type ShootReference struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootReference) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootReferenceName)
	return component.NewControllerBuilder(mgr, shootReferenceName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(shootReferencesChanged())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// shootReferencesChanged passes Shoots whose references have changed, and Shoots in deletion that do not need the objects any more.
func shootReferencesChanged() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return !references.NeedsReferences(after) || !maps.Equal(ofShoot(before), ofShoot(after))
	})
}

// Reconcile releases objects in the Shoot's namespace to which nothing refers any more, and protects the objects to
// which the Shoot refers.
func (r *ShootReference) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if err := r.release(ctx, shoot.Namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("releasing what Shoots in the namespace %q referred to: %w", shoot.Namespace, err)
	}
	return reconcile.Result{}, references.Protector{Base: r.Base}.Protect(ctx, shoot, shoot.Namespace, ofShoot(shoot))
}

// release releases the objects to which nothing refers. It lists the protected objects before the Shoots: otherwise it
// would release an object to which a new Shoot refers. The last check reads from the API server, not from the cache.
func (r *ShootReference) release(ctx context.Context, namespace string) error {
	candidates, err := references.Protector{Base: r.Base}.ListProtected(ctx, namespace)
	if err != nil {
		return err
	}
	for _, reader := range []client.Reader{r.Client, r.Reader} {
		if len(candidates) == 0 {
			return nil
		}
		used, err := inNamespace(ctx, reader, namespace)
		if err != nil {
			return err
		}
		maps.DeleteFunc(candidates, func(ref references.Reference, _ *metav1.PartialObjectMetadata) bool { return used[ref] })
	}
	return references.Protector{Base: r.Base}.Release(ctx, candidates)
}

// ofShoot returns the references of a Shoot.
func ofShoot(shoot *corev1beta1.Shoot) references.References {
	refs := references.References{}
	refs.AddResources(shoot.Spec.Resources)
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			refs.AddRef(provider.CredentialsRef)
		}
	}
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return refs
	}
	for _, plugin := range server.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			refs.Add(references.Secret, *plugin.KubeconfigSecretName)
		}
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		refs.Add(references.ConfigMap, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		refs.Add(references.ConfigMap, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		refs.Add(references.ConfigMap, authorization.ConfigMapName)
		for _, kubeconfig := range authorization.Kubeconfigs {
			refs.Add(references.Secret, kubeconfig.SecretName)
		}
	}
	return refs
}

// inNamespace returns all references to objects in a namespace.
func inNamespace(ctx context.Context, reader client.Reader, namespace string) (references.References, error) {
	refs, shoots := references.References{}, &corev1beta1.ShootList{}
	if err := reader.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Shoots in the namespace %q: %w", namespace, err)
	}
	for i := range shoots.Items {
		if references.NeedsReferences(&shoots.Items[i]) {
			maps.Copy(refs, ofShoot(&shoots.Items[i]))
		}
	}
	if namespace != constants.GardenNamespace {
		return refs, nil
	}
	return refs, addGardenReferences(ctx, reader, refs)
}

// addGardenReferences adds the references of cluster-scoped objects to objects in the namespace garden.
func addGardenReferences(ctx context.Context, reader client.Reader, refs references.References) error {
	seeds, deployments := &corev1beta1.SeedList{}, &gardencorev1.ControllerDeploymentList{}
	if err := reader.List(ctx, seeds); err != nil {
		return fmt.Errorf("listing the Seeds: %w", err)
	}
	if err := reader.List(ctx, deployments); err != nil {
		return fmt.Errorf("listing the ControllerDeployments: %w", err)
	}
	for _, seed := range seeds.Items {
		refs.AddResources(seed.Spec.Resources)
	}
	for _, deployment := range deployments.Items {
		for i := range deployment.Resources {
			refs.AddRef(&deployment.Resources[i].ResourceRef)
		}
		if deployment.Helm == nil || deployment.Helm.OCIRepository == nil {
			continue
		}
		for _, ref := range []*corev1.LocalObjectReference{deployment.Helm.OCIRepository.PullSecretRef,
			deployment.Helm.OCIRepository.CABundleSecretRef} {
			if ref != nil {
				refs.Add(references.Secret, ref.Name)
			}
		}
	}
	return nil
}
