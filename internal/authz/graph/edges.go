package graph

import (
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Objects has the other objects and the time on which the edges of some objects depend.
type Objects interface {
	// Seed returns the Seed with this name, or nil if there is none.
	Seed(name string) *gardencorev1beta1.Seed
	// Now returns the time that is compared with the expiration of client certificates.
	Now() time.Time
}

// EdgesOf returns the vertex of a versioned object, and the edges that the object causes: a row each of "Implementation
// Details" of "Scoped API Access for gardenlets and Extensions". ok is false for objects without a row. A reference
// without a name, or to an unknown kind, causes no edge.
func EdgesOf(obj any, ctx Objects) (owner Vertex, edges []Edge, ok bool) {
	var b *edgeBuilder
	switch o := obj.(type) {
	case *gardencorev1beta1.Shoot:
		b = shootEdges(o)
	case *gardencorev1beta1.Seed:
		b = seedEdges(o)
	case *seedmanagementv1alpha1.ManagedSeed:
		b = managedSeedEdges(o, ctx)
	case *seedmanagementv1alpha1.Gardenlet:
		b = gardenletEdges(o, ctx)
	case *operationsv1alpha1.Bastion:
		b = bastionEdges(o)
	case *gardencorev1beta1.BackupBucket:
		b = backupBucketEdges(o)
	case *gardencorev1beta1.BackupEntry:
		b = backupEntryEdges(o)
	case *gardencorev1beta1.ControllerInstallation:
		b = controllerInstallationEdges(o)
	case *gardencorev1.ControllerDeployment:
		b = controllerDeploymentEdges(o)
	case *gardencorev1beta1.Project:
		b = projectEdges(o)
	case *gardencorev1beta1.SecretBinding:
		b = secretBindingEdges(o)
	case *securityv1alpha1.CredentialsBinding:
		b = credentialsBindingEdges(o)
	case *certificatesv1.CertificateSigningRequest:
		b = certificateSigningRequestEdges(o)
	case *corev1.ServiceAccount:
		b = serviceAccountEdges(o)
	default:
		return Vertex{}, nil, false
	}
	return b.owner, b.edges, true
}

// Dependents returns the vertices of the objects whose edges have to be updated when this object is created, changed or
// deleted, or when its client certificate expires.
func Dependents(obj any) []Vertex {
	seed, ok := obj.(*gardencorev1beta1.Seed)
	if !ok {
		return nil
	}
	return []Vertex{
		{Kind: KindManagedSeed, Namespace: v1beta1constants.GardenNamespace, Name: seed.Name},
		{Kind: KindGardenlet, Namespace: v1beta1constants.GardenNamespace, Name: seed.Name},
	}
}

// edgeBuilder collects the edges of one object.
type edgeBuilder struct {
	owner Vertex
	edges []Edge
}

func edgesFor(kind Kind, namespace, name string) *edgeBuilder {
	return &edgeBuilder{owner: Vertex{Kind: kind, Namespace: namespace, Name: name}}
}

// from adds an edge from another object to the owner, unless it has no name.
func (b *edgeBuilder) from(kind Kind, namespace, name string) {
	if name != "" {
		b.edges = append(b.edges, Edge{From: Vertex{Kind: kind, Namespace: namespace, Name: name}, To: b.owner})
	}
}

// to adds an edge from the owner to another object, unless it has no name.
func (b *edgeBuilder) to(kind Kind, namespace, name string) {
	if name != "" {
		b.edges = append(b.edges, Edge{From: b.owner, To: Vertex{Kind: kind, Namespace: namespace, Name: name}})
	}
}

// toSeeds adds edges to the Seeds in spec and status. They may not be set yet, and are usually the same.
func (b *edgeBuilder) toSeeds(spec, status *string) {
	b.to(KindSeed, "", ptr.Deref(spec, ""))
	if !ptr.Equal(spec, status) {
		b.to(KindSeed, "", ptr.Deref(status, ""))
	}
}

// fromCredentials adds an edge from the object of a credentials reference, in the namespace of the reference.
func (b *edgeBuilder) fromCredentials(ref *corev1.ObjectReference) {
	if ref == nil || ref.Namespace == "" {
		return
	}
	switch {
	case ref.APIVersion == corev1.SchemeGroupVersion.String() && ref.Kind == "Secret":
		b.from(KindSecret, ref.Namespace, ref.Name)
	case ref.APIVersion == securityv1alpha1.SchemeGroupVersion.String() && ref.Kind == "WorkloadIdentity":
		b.from(KindWorkloadIdentity, ref.Namespace, ref.Name)
	}
}

// fromResource adds an edge from the object of a reference without a namespace, if it has one of the kinds.
func (b *edgeBuilder) fromResource(namespace string, ref autoscalingv1.CrossVersionObjectReference, kinds ...Kind) {
	for _, kind := range kinds {
		apiVersion := corev1.SchemeGroupVersion.String()
		if kind == KindWorkloadIdentity {
			apiVersion = securityv1alpha1.SchemeGroupVersion.String()
		}
		if ref.Kind == kind.String() && ref.APIVersion == apiVersion {
			b.from(kind, namespace, ref.Name)
		}
	}
}
