package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"fmt"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// landscape creates the objects of a landscape in which all shoots are of one project, and use the same profiles,
// bindings, exposure class and resources: the worst case for an index. The last tenth of the seeds has no shoots;
// they are ManagedSeeds whose own shoots run on the last seed. So many seeds have a path to the last seed, and no
// object that shoots share has one.
type landscape struct{ shoots, seeds int }

const namespace = "garden-dev"

func seedName(i int) string   { return fmt.Sprintf("seed-%04d", i) }
func shootName(i int) string  { return fmt.Sprintf("shoot-%06d", i) }
func (l landscape) used() int { return l.seeds - l.seeds/10 }

func (l landscape) seedOf(i int) string { return seedName(i * 7919 % l.used()) }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (l landscape) shoot(i int, seed string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: meta(namespace, shootName(i))}
	shoot.Spec.SeedName, shoot.Status.SeedName = &seed, &seed
	shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{
		Kind: []string{"CloudProfile", "NamespacedCloudProfile"}[i%2], Name: "profile"}
	shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName = ptr.To("binding"), ptr.To("binding")
	shoot.Spec.ExposureClassName = ptr.To("internet")
	for kind, version := range map[string]string{"ConfigMap": "v1", "WorkloadIdentity": "security.gardener.cloud/v1alpha1"} {
		resource := gardencorev1beta1.NamedResourceReference{Name: kind}
		resource.ResourceRef.APIVersion, resource.ResourceRef.Kind, resource.ResourceRef.Name = version, kind, "shared"
		shoot.Spec.Resources = append(shoot.Spec.Resources, resource)
	}
	return shoot
}

// objects calls visit for every object.
func (l landscape) objects(visit func(any)) {
	visit(&gardencorev1beta1.Project{ObjectMeta: meta("", "dev"), Spec: gardencorev1beta1.ProjectSpec{Namespace: ptr.To(namespace)}})
	visit(&gardencorev1beta1.SecretBinding{ObjectMeta: meta(namespace, "binding"),
		SecretRef: corev1.SecretReference{Namespace: namespace, Name: "shared"}})
	visit(&securityv1alpha1.CredentialsBinding{ObjectMeta: meta(namespace, "binding"), CredentialsRef: secretRef("shared")})
	visit(&gardencorev1.ControllerDeployment{ObjectMeta: meta("", "extension"), Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}},
	}})
	visit(&corev1.ServiceAccount{ObjectMeta: meta("garden", "gardenlet-bootstrap-"+seedName(l.seeds-1)),
		Secrets: []corev1.ObjectReference{{Name: "token"}}})
	for i := range l.shoots {
		seed := l.seedOf(i)
		visit(l.shoot(i, seed))
		entry := &gardencorev1beta1.BackupEntry{ObjectMeta: meta(namespace, "shoot--dev--"+shootName(i))}
		entry.OwnerReferences = []metav1.OwnerReference{{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: shootName(i)}}
		entry.Spec.BucketName, entry.Spec.SeedName, entry.Status.SeedName = "bucket-"+seed, &seed, &seed
		visit(entry)
	}
	for i := range l.seeds {
		l.seedObjects(i, visit)
	}
}

func (l landscape) seedObjects(i int, visit func(any)) {
	name, last := seedName(i), seedName(l.seeds-1)
	visit(&gardencorev1beta1.Seed{ObjectMeta: meta("", name)})
	visit(&seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", name)})
	visit(&gardencorev1beta1.BackupBucket{ObjectMeta: meta("", "bucket-"+name), Spec: gardencorev1beta1.BackupBucketSpec{
		SeedName: &name, CredentialsRef: ptr.To(secretRef("backup-" + name)),
	}})
	visit(&operationsv1alpha1.Bastion{ObjectMeta: meta(namespace, "bastion-"+name), Spec: operationsv1alpha1.BastionSpec{SeedName: &name}})
	if i == 0 {
		visit(certificateSigningRequest(name))
	}
	if i < l.used() {
		installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: meta("", "extension-"+name)}
		installation.Spec.SeedRef = &corev1.ObjectReference{Name: name}
		installation.Spec.RegistrationRef.Name, installation.Spec.DeploymentRef = "extension", &corev1.ObjectReference{Name: "extension"}
		visit(installation)
		return
	}
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: meta("garden", name)}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: name}
	managed.Spec.Gardenlet.Bootstrap = ptr.To(seedmanagementv1alpha1.BootstrapServiceAccount)
	visit(managed)
	visit(&gardencorev1beta1.Shoot{ObjectMeta: meta("garden", name), Spec: gardencorev1beta1.ShootSpec{SeedName: &last}})
}

func secretRef(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

func certificateSigningRequest(seed string) *certificatesv1.CertificateSigningRequest {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	subject := pkix.Name{Organization: []string{constants.SeedsGroup}, CommonName: constants.SeedUserNamePrefix + seed}
	request, err := cert.MakeCSR(key, &subject, nil, nil)
	if err != nil {
		panic(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "request"), Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: request,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageClientAuth},
	}}
}

// noSeeds finds no Seed, so that edges for bootstrapping are added.
type noSeeds struct{}

func (noSeeds) Seed(string) *gardencorev1beta1.Seed { return nil }
func (noSeeds) Now() time.Time                      { return time.Time{} }

// owned is the vertex of an object, with the edges that the object adds.
type owned struct {
	vertex graph.Vertex
	edges  []graph.Edge
}

func ownedBy(obj any) owned {
	vertex, edges, _ := graph.EdgesOf(obj, noSeeds{})
	return owned{vertex, edges}
}
