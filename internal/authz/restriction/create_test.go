package restriction

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// The following functions return the objects of the table.

func bucket(seed string, change ...func(*corev1beta1.BackupBucket)) object {
	return named("", "uid-seed-"+seed, append([]func(*corev1beta1.BackupBucket){func(b *corev1beta1.BackupBucket) {
		b.Spec.SeedName, b.Spec.CredentialsRef = ptr.To(seed), secretRef("garden", "backup-"+seed)
	}}, change...)...)
}

func from(namespace, name string) func(*corev1beta1.BackupBucket) {
	return func(b *corev1beta1.BackupBucket) { b.Spec.CredentialsRef = secretRef(namespace, name) }
}

func bastion(seed string) object {
	return named("garden-dev", "b", func(b *operationsv1alpha1.Bastion) { b.Spec.SeedName = ptr.To(seed) })
}

func configMap(namespace, name string) object { return named[corev1.ConfigMap](namespace, name) }

func secret(namespace, name string, change ...func(*corev1.Secret)) object {
	return named(namespace, name, change...)
}

func typed(t corev1.SecretType) func(*corev1.Secret) { return func(s *corev1.Secret) { s.Type = t } }

func issuer(namespace, shoot string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Labels = map[string]string{constants.LabelDiscoveryPublic: "serviceaccount", constants.LabelShootNamespace: namespace,
			constants.LabelShootName: shoot}
	}
}

func without(label string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { delete(s.Labels, label) }
}

func token(description string, change ...func(*corev1.Secret)) object {
	_, namespace, name := describedBy(description)
	return secret("kube-system", bootstraprules.TokenSecret(namespace, name), append([]func(*corev1.Secret){func(s *corev1.Secret) {
		s.Type = corev1.SecretTypeBootstrapToken
		s.Data = map[string][]byte{"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			"description": []byte(description)}
	}}, change...)...)
}

func data(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

const (
	forManagedSeed = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource "
	forGardenlet   = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource "
)

func account(namespace, name string, change ...func(*corev1.ServiceAccount)) object {
	return named(namespace, name, change...)
}

func binding(name string, change ...func(*rbacv1.ClusterRoleBinding)) object {
	return named("", "gardener.cloud:system:seed-bootstrapper:"+name,
		append([]func(*rbacv1.ClusterRoleBinding){func(b *rbacv1.ClusterRoleBinding) {
			b.RoleRef = rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "gardener.cloud:system:seed-bootstrapper"}
			namespace, account, _ := strings.Cut(name, ":")
			b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}}
		}}, change...)...)
}

func lease(namespace, name string) object { return named[coordinationv1.Lease](namespace, name) }

func newSeed(name string, change ...func(*corev1beta1.SeedSpec)) object {
	return named("", name, func(s *corev1beta1.Seed) {
		for _, c := range change {
			c(&s.Spec)
		}
	})
}

func backupFrom(namespace, name string) func(*corev1beta1.SeedSpec) {
	return func(s *corev1beta1.SeedSpec) {
		s.Backup = &corev1beta1.Backup{CredentialsRef: secretRef(namespace, name)}
	}
}

func dnsFrom(namespace, name string) func(*corev1beta1.SeedSpec) {
	return func(s *corev1beta1.SeedSpec) {
		s.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{CredentialsRef: *secretRef(namespace, name)}
	}
}

var csrKey = func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

func csr(commonName string, change ...func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) object {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName, Organization: []string{"gardener.cloud:system:seeds"}}}
	spec := certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
			certificatesv1.UsageClientAuth},
	}
	for _, c := range change {
		c(template, &spec)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, csrKey)
	if err != nil {
		panic(err)
	}
	spec.Request = append(spec.Request, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})...)
	return named("", "csr", func(c *certificatesv1.CertificateSigningRequest) { c.Spec = spec })
}

type (
	x509CSR = x509.CertificateRequest
	csrSpec = certificatesv1.CertificateSigningRequestSpec
)

const (
	noReason = ""
	belongs  = `object does not belong to seed "a"`
	unnamed  = "is not named for the seed"
)

// creationCase is a row of the table of CREATE. The object belongs to seed a, if to any. The four columns are the
// answers to the gardenlet of a, the gardenlet of b, an extension on a, and any other user. why is in the answer to a's
// gardenlet.
type creationCase struct {
	name                            string
	resource                        resourceRule
	obj                             object
	gardenlet, other, extension, no int32
	why                             string
}

func checkCreations(t *testing.T, cases []creationCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.resource.resource.Resource+"/"+test.name, func(t *testing.T) {
			// These objects exist in the landscape, so they are deleted before they are created.
			w := landscape()
			switch test.resource.kindName {
			case "Seed", "BackupBucket", "BackupEntry":
				delete(w.objects[test.resource.resource], keyOf(test.obj))
			}
			checkColumns(t, w, test.why, map[*authenticationv1.UserInfo]int32{
				&gardenletA: test.gardenlet, &gardenletB: test.other, &extensionA: test.extension, &neither: test.no,
			}, func(user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
				return creation(test.resource, user, test.obj)
			})
		})
	}
}

func TestCreateBackups(t *testing.T) {
	checkCreations(t, []creationCase{
		// BackupBucket: spec.seedName is its seed
		{"own", backupBuckets, bucket("a"), allow, refuse, refuse, allow, noReason},
		{"another seed's", backupBuckets, bucket("b"), refuse, allow, refuse, allow, belongs},
		{"no seed", backupBuckets, named[corev1beta1.BackupBucket]("", "new"), refuse, refuse, refuse, allow, belongs},
		{"own, named otherwise", backupBuckets, bucket("a", func(b *corev1beta1.BackupBucket) { b.Name = "new" }), refuse, refuse, refuse,
			allow, `named "uid-seed-a"`},
		{"own, named after Seed b", backupBuckets, bucket("a", func(b *corev1beta1.BackupBucket) { b.Name = "uid-seed-b" }), refuse, refuse,
			refuse, allow, `named "uid-seed-a"`},
		{"own, credentials without a label", backupBuckets, bucket("a", from("garden", "new")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials that do not exist", backupBuckets, bucket("a", from("garden", "future.ssh-keypair")), refuse, refuse, refuse,
			allow, unnamed},
		{"own, credentials of Seed b", backupBuckets, bucket("a", from("garden", "backup-b")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials of a ManagedSeed", backupBuckets, bucket("a", from("garden", "backup-of-b")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials of a Gardenlet", backupBuckets, bucket("a", from("garden", "backup-d")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials of another BackupBucket", backupBuckets, bucket("a", from("garden", "backup-old")), refuse, refuse,
			refuse, allow, unnamed},
		{"own, secret generated for another BackupBucket", backupBuckets, bucket("a", from("garden", "old")), refuse, refuse,
			refuse, allow, unnamed},
		{"own, a project's secret", backupBuckets, bucket("a", from("garden-dev", "credentials")), refuse, refuse, refuse, allow, unnamed},
		{"own, a shoot's secret", backupBuckets, bucket("a", from("garden", "on-b.ssh-keypair")), refuse, refuse, refuse, allow, unnamed},
		{"own, infrastructure credentials", backupBuckets, bucket("a", from("garden", "infra")), refuse, refuse, refuse, allow, unnamed},
		{"own, infrastructure credentials by CredentialsBinding", backupBuckets, bucket("a", from("garden", "infra2")),
			refuse, refuse, refuse, allow, unnamed},
		{"own, a generated secret", backupBuckets, bucket("a", from("garden", "generated-bucket-uid-seed-b")), refuse, refuse,
			refuse, allow, unnamed},
		{"own, the landscape's secret", backupBuckets, bucket("a", from("garden", "landscape")), refuse, refuse, refuse, allow, unnamed},
		{"own, a ServiceAccount's token", backupBuckets, bucket("a", from("garden", "sa-token")), refuse, refuse, refuse, allow, unnamed},

		// BackupEntry: spec.seedName is its seed and the BackupBucket's is too
		{"own, own bucket", backupEntries, entry("on-a--1", "a", "uid-seed-a", "on-a"), allow, refuse, refuse, allow, noReason},
		{"own, bucket of b", backupEntries, entry("on-a--1", "a", "uid-seed-b", "on-a"), refuse, refuse, refuse, allow,
			"BackupBucket uid-seed-b"},
		{"own, no such bucket", backupEntries, entry("on-a--1", "a", "none", "on-a"), refuse, refuse, refuse, allow,
			`backupbuckets "none" not found`},
		{"own, no bucket", backupEntries, entry("on-a--1", "a", "", "on-a"), refuse, refuse, refuse, allow, "the backupbuckets on which the answer depends are not named"},
		{"own, shoot of b", backupEntries, entry("on-b--1", "a", "uid-seed-a", "on-b"), refuse, refuse, refuse, allow, belongs},
		{"own, named after a shoot of b", backupEntries, entry("on-b--1", "a", "uid-seed-a", "on-a"), refuse, refuse, refuse, allow,
			"named on-a--1"},
		{"own, named otherwise", backupEntries, entry("new", "a", "uid-seed-a", "on-a"), refuse, refuse, refuse, allow, "named on-a--1"},
		{"own, no shoot", backupEntries, entry("new", "a", "uid-seed-a", ""), refuse, refuse, refuse, allow, "the shoots on which the answer depends are not named"},
		{"another seed's, own bucket", backupEntries, entry("on-b--1", "b", "uid-seed-a", "on-b"), refuse, refuse, refuse, allow, belongs},
		{"another seed's, its bucket", backupEntries, entry("on-b--1", "b", "uid-seed-b", "on-b"), refuse, allow, refuse, allow, belongs},
		{"no seed", backupEntries, named[corev1beta1.BackupEntry]("garden-dev", "e"), refuse, refuse, refuse, allow, belongs},
		// a source entry: while the owning shoot is restored, with the original's specification
		{"source while restoring", backupEntries, entry("source-restored--1", "a", "uid-seed-b", "restored"), allow, refuse,
			refuse, allow, noReason},
		{"source while not restoring", backupEntries, entry("source-on-a--1", "a", "uid-seed-b", "on-a"), refuse, refuse,
			refuse, allow, "only while its shoot is restored"},
		{"source of another specification", backupEntries, entry("source-restored--1", "a", "uid-seed-c", "restored"), refuse,
			refuse, refuse, allow, "same specification"},
		{"source without original", backupEntries, entry("source-none--1", "a", "uid-seed-b", "restored"), refuse, refuse,
			refuse, allow, "is named restored--1"},
		{"source without owner", backupEntries, entry("source-restored--1", "a", "uid-seed-b", ""), refuse, refuse, refuse,
			allow, "the shoots on which the answer depends are not named"},
		{"source with another API's Shoot as owner", backupEntries, entry("source-restored--1", "a", "uid-seed-b", "restored",
			func(e *corev1beta1.BackupEntry) { e.OwnerReferences[0].APIVersion = "v1" }), refuse, refuse, refuse, allow, "the shoots on which the answer depends are not named"},
		{"source with another seed's shoot as owner", backupEntries, entry("source-restored--1", "a", "uid-seed-b", "restored-on-b"),
			refuse, refuse, refuse, allow, belongs},
	})
}

func TestCreateBastionsAndRequests(t *testing.T) {
	checkCreations(t, []creationCase{
		// Bastion: spec.seedName is its seed
		{"own", bastions, bastion("a"), allow, refuse, refuse, allow, noReason},
		{"another seed's", bastions, bastion("b"), refuse, allow, refuse, allow, belongs},
		{"no seed", bastions, named[operationsv1alpha1.Bastion]("garden-dev", "b"), refuse, refuse, refuse, allow, belongs},

		// CertificateSigningRequest: a seed client certificate for its own seed; extension: never
		{"own", certificateRequests, csr("gardener.cloud:system:seed:a"), allow, refuse, refuse, allow, noReason},
		{"another seed's", certificateRequests, csr("gardener.cloud:system:seed:b"), refuse, allow, refuse, allow, belongs},
		{"no seed's name", certificateRequests, csr("gardener.cloud:system:seed:"), refuse, refuse, refuse, allow, "common name"},
		{"a user's", certificateRequests, csr("admin"), refuse, refuse, refuse, allow, "common name"},
		{"other organization", certificateRequests, csr("gardener.cloud:system:seed:a",
			func(c *x509CSR, _ *csrSpec) { c.Subject.Organization = []string{"system:masters"} }), refuse, refuse, refuse, allow, "organization"},
		{"second organization", certificateRequests, csr("gardener.cloud:system:seed:a", func(c *x509CSR, _ *csrSpec) {
			c.Subject.Organization = []string{"gardener.cloud:system:seeds", "system:masters"}
		}), refuse, refuse, refuse, allow, "organization"},
		{"DNS name", certificateRequests, csr("gardener.cloud:system:seed:a", func(c *x509CSR, _ *csrSpec) { c.DNSNames = []string{"x"} }),
			refuse, refuse, refuse, allow, "alternative names"},
		{"IP address", certificateRequests, csr("gardener.cloud:system:seed:a",
			func(c *x509CSR, _ *csrSpec) { c.IPAddresses = []net.IP{{1, 1, 1, 1}} }), refuse, refuse, refuse, allow, "alternative names"},
		{"email address", certificateRequests, csr("gardener.cloud:system:seed:a",
			func(c *x509CSR, _ *csrSpec) { c.EmailAddresses = []string{"a@b"} }), refuse, refuse, refuse, allow, "alternative names"},
		{"more usages", certificateRequests, csr("gardener.cloud:system:seed:a",
			func(_ *x509CSR, s *csrSpec) { s.Usages = append(s.Usages, certificatesv1.UsageServerAuth) }), refuse, refuse, refuse, allow, "usages"},
		{"fewer usages", certificateRequests, csr("gardener.cloud:system:seed:a", func(_ *x509CSR, s *csrSpec) { s.Usages = s.Usages[1:] }),
			refuse, refuse, refuse, allow, "usages"},
		{"not PEM", certificateRequests, named("", "csr", func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Request = []byte("x") }),
			malformed, malformed, refuse, allow, "PEM"},
		{"not a request", certificateRequests, named("", "csr", func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}), malformed, malformed, refuse, allow, "spec.request"},
		{"two requests", certificateRequests, csr("gardener.cloud:system:seed:a", func(_ *x509CSR, s *csrSpec) {
			s.Request = csr("gardener.cloud:system:seed:a").(*certificatesv1.CertificateSigningRequest).Spec.Request
		}), malformed, malformed, refuse, allow, "one PEM block"},

		// ClusterRoleBinding: the bootstrapper's, for a ManagedSeed of its own that is not bootstrapped; extension: never
		{"no Seed yet", clusterRoleBindings, binding("garden:gardenlet-bootstrap-child"), allow, refuse, refuse, allow, noReason},
		{"certificate expired", clusterRoleBindings, binding("garden:gardenlet-bootstrap-expired"), allow, refuse, refuse, allow, noReason},
		{"asked to renew", clusterRoleBindings, binding("garden:gardenlet-bootstrap-renewing"), allow, refuse, refuse, allow, noReason},
		{"bootstrapped", clusterRoleBindings, binding("garden:gardenlet-bootstrap-grown"), refuse, refuse, refuse, allow, "bootstrapped already"},
		{"another seed's ManagedSeed", clusterRoleBindings, binding("garden:gardenlet-bootstrap-of-b"), refuse, allow, refuse, allow, belongs},
		{"no such ManagedSeed", clusterRoleBindings, binding("garden:gardenlet-bootstrap-none"), refuse, refuse, refuse,
			allow, `managedseeds "`},
		{"other name", clusterRoleBindings, named("", "x", func(b *rbacv1.ClusterRoleBinding) {}), refuse, refuse, refuse, allow, belongs},
		{"no ManagedSeed named", clusterRoleBindings, binding("garden"), refuse, refuse, refuse, allow, belongs},
		{"other role", clusterRoleBindings,
			binding("garden:gardenlet-bootstrap-child", func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "cluster-admin" }),
			refuse, refuse, refuse, allow, "ClusterRole gardener.cloud:system:seed-bootstrapper"},
		{"Role, not ClusterRole", clusterRoleBindings, binding("garden:gardenlet-bootstrap-child",
			func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Kind = "Role" }), refuse, refuse, refuse, allow, "ClusterRole"},
		{"bound to another subject", clusterRoleBindings,
			binding("garden:gardenlet-bootstrap-child", func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Namespace = "seed-a" }),
			refuse, refuse, refuse, allow, "ServiceAccount garden/gardenlet-bootstrap-child only"},
		{"bound to another subject as well", clusterRoleBindings, binding("garden:gardenlet-bootstrap-child", func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "mallory"})
		}), refuse, refuse, refuse, allow, "not of User mallory"},
	})
}

func TestCreateConfiguration(t *testing.T) {
	checkCreations(t, []creationCase{
		// ConfigMap: <shoot>.ca-cluster, <shoot>.ca-kubelet of a shoot on its seed
		{"ca-cluster", configMaps, configMap("garden-dev", "on-a.ca-cluster"), allow, refuse, refuse, allow, noReason},
		{"ca-kubelet", configMaps, configMap("garden-dev", "on-a.ca-kubelet"), allow, refuse, refuse, allow, noReason},
		{"of a shoot on b", configMaps, configMap("garden-dev", "on-b.ca-cluster"), refuse, allow, refuse, allow, belongs},
		{"of a shoot on its way to b", configMaps, configMap("garden-dev", "to-b.ca-cluster"), refuse, allow, refuse, allow, belongs},
		{"in another namespace", configMaps, configMap("garden-other", "on-a.ca-cluster"), refuse, refuse, refuse, allow,
			`shoots "garden-other/on-a" not found`},
		{"other name", configMaps, configMap("garden-dev", "on-a.ssh-keypair"), refuse, refuse, refuse, allow, belongs},
		{"only a suffix", configMaps, configMap("garden-dev", ".ca-cluster"), refuse, refuse, refuse, allow, belongs},

		// Gardenlet: namespace garden, named as its seed
		{"own", gardenlets, named[seedmanagementv1alpha1.Gardenlet]("garden", "a"), allow, refuse, refuse, allow, noReason},
		{"another seed's", gardenlets, named[seedmanagementv1alpha1.Gardenlet]("garden", "c"), refuse, refuse, refuse, allow, belongs},
		{"other namespace", gardenlets, named[seedmanagementv1alpha1.Gardenlet]("garden-dev", "a"), refuse, refuse, refuse,
			allow, "in the namespace garden"},
		{"own, own credentials", gardenlets, gardenletWith("backup-a"), allow, refuse, refuse, allow, noReason},
		{"own, credentials of b", gardenlets, gardenletWith("backup-b"), refuse, refuse, refuse, allow, "backup-b"},
		{"own, credentials that do not exist, for DNS", gardenlets, named("garden", "a", func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.Config.Raw = []byte(`{"seedConfig":{"spec":{"dns":{"provider":{"credentialsRef":` +
				`{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"future.ssh-keypair"}}}}}}`)
		}), refuse, refuse, refuse, allow, "garden/future.ssh-keypair"},
		{"own, broken configuration", gardenlets, named("garden", "a", func(g *seedmanagementv1alpha1.
			Gardenlet) {
			g.Spec.Config.Raw = []byte(`{"seedConfig":[]}`)
		}), malformed, refuse, refuse, allow, "configuration"},

		// InternalSecret: <shoot>.ca-client of a shoot on its seed
		{"ca-client", internalSecrets, named[corev1beta1.InternalSecret]("garden-dev", "on-a.ca-client"), allow, refuse, refuse, allow, noReason},
		{"of a shoot on b", internalSecrets, named[corev1beta1.InternalSecret]("garden-dev", "on-b.ca-client"), refuse, allow,
			refuse, allow, belongs},
		{"no such shoot", internalSecrets, named[corev1beta1.InternalSecret]("garden-dev", "none.ca-client"), refuse, refuse,
			refuse, allow, `shoots "`},
		{"other name", internalSecrets, named[corev1beta1.InternalSecret]("garden-dev", "on-a.ca-cluster"), refuse, refuse,
			refuse, allow, belongs},

		// Lease: extension: in seed-<seed>; gardenlet: gardenlet-leader-election, or its seed's in gardener-system-seed-lease
		{"leader election", leases, lease("garden", "gardenlet-leader-election"), allow, allow, refuse, allow, noReason},
		{"own heartbeat", leases, lease("gardener-system-seed-lease", "a"), allow, refuse, refuse, allow, noReason},
		{"another seed's heartbeat", leases, lease("gardener-system-seed-lease", "b"), refuse, allow, refuse, allow, belongs},
		{"in the seed's namespace", leases, lease("seed-a", "x"), refuse, refuse, allow, allow, belongs},
		{"in another seed's namespace", leases, lease("seed-b", "x"), refuse, refuse, refuse, allow, belongs},
		{"elsewhere", leases, lease("garden", "x"), refuse, refuse, refuse, allow, belongs},
	})
}

func TestCreateSecrets(t *testing.T) {
	checkCreations(t, []creationCase{
		// Secret: generated for its bucket
		{"generated for its bucket", secrets, secret("garden", "generated-bucket-uid-seed-a"), allow, refuse, refuse, allow, noReason},
		{"generated for b's bucket", secrets, secret("garden", "generated-bucket-uid-seed-b"), refuse, allow, refuse, allow, belongs},
		{"generated for no bucket", secrets, secret("garden", "generated-bucket-none"), refuse, refuse, refuse, allow,
			`backupbuckets "none" not found`},
		{"generated in another namespace", secrets, secret("garden-dev", "generated-bucket-uid-seed-a"), refuse, refuse, refuse, allow, belongs},
		// Secret: a shoot's project secret
		{"ca-cluster", secrets, secret("garden-dev", "on-a.ca-cluster"), allow, refuse, refuse, allow, noReason},
		{"ssh-keypair", secrets, secret("garden-dev", "on-a.ssh-keypair"), allow, refuse, refuse, allow, noReason},
		{"ssh-keypair.old", secrets, secret("garden-dev", "on-a.ssh-keypair.old"), allow, refuse, refuse, allow, noReason},
		{"monitoring", secrets, secret("garden-dev", "on-a.monitoring"), allow, refuse, refuse, allow, noReason},
		{"of a shoot on b", secrets, secret("garden-dev", "on-b.monitoring"), refuse, allow, refuse, allow, belongs},
		{"of no shoot", secrets, secret("garden-dev", "none.monitoring"), refuse, refuse, refuse, allow, `shoots "garden-dev/none" not found`},
		{"any other", secrets, secret("garden-dev", "x"), refuse, refuse, refuse, allow, belongs},
		{"in the seed's namespace", secrets, secret("seed-a", "x"), refuse, refuse, refuse, allow, belongs},
		{"a ServiceAccount's token", secrets, secret("garden-dev", "on-a.monitoring", typed(corev1.SecretTypeServiceAccountToken)),
			refuse, refuse, refuse, allow, "type kubernetes.io/service-account-token"},
		// Secret: in gardener-system-shoot-issuer
		{"issuer", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a")), allow,
			refuse, refuse, allow, noReason},
		{"issuer of a shoot on b", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-b", issuer("garden-dev", "on-b")),
			refuse, allow, refuse, allow, belongs},
		{"issuer of no shoot", secrets, secret("gardener-system-shoot-issuer", "dev--x", issuer("garden-dev", "none")),
			refuse, refuse, refuse, allow, `shoots "`},
		{"issuer named for another shoot", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-b", issuer("garden-dev", "on-a")),
			refuse, refuse, refuse, allow, "--uid-on-a"},
		{"issuer without kind", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a"),
			without(constants.LabelDiscoveryPublic)), refuse, refuse, refuse, allow, constants.LabelDiscoveryPublic},
		{"issuer without shoot", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a"),
			without(constants.LabelShootName)), refuse, refuse, refuse, allow, constants.LabelShootName},
		{"issuer without namespace", secrets, secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a"),
			without(constants.LabelShootNamespace)), refuse, refuse, refuse, allow, constants.LabelShootNamespace},
		// Secret: a bootstrap token
		{"token, no Seed yet", secrets, token(forManagedSeed + "garden/child."), allow, refuse, refuse, allow, noReason},
		{"token, certificate expired", secrets, token(forManagedSeed + "garden/expired."), allow, refuse, refuse, allow, noReason},
		{"token, asked to renew", secrets, token(forManagedSeed + "garden/renewing."), allow, refuse, refuse, allow, noReason},
		{"token, bootstrapped", secrets, token(forManagedSeed + "garden/grown."), refuse, refuse, refuse, allow, "bootstrapped already"},
		{"token for another seed's ManagedSeed", secrets, token(forManagedSeed + "garden/of-b."), refuse, allow, refuse, allow, belongs},
		{"token for no ManagedSeed", secrets, token(forManagedSeed + "garden/none."), refuse, refuse, refuse, allow, `managedseeds "`},
		{"token for another Gardenlet", secrets, token(forGardenlet + "garden/b."), refuse, refuse, refuse, allow, "does not belong to seed"},
		{"token for no Gardenlet", secrets, token(forGardenlet + "garden/a."), refuse, refuse, refuse, allow, `gardenlets "`},
		{"token for a Gardenlet elsewhere", secrets, token(forGardenlet + "garden-dev/a."), refuse, refuse, refuse, allow,
			"does not belong to seed"},
		{"token without a seed", secrets, token("for me"), refuse, refuse, refuse, allow, "description"},
		{"token for two", secrets, token(forManagedSeed + "garden/child/x."), refuse, refuse, refuse, allow, "description"},
		{"token for a ManagedSeed, and more", secrets, token("x " + forManagedSeed + "garden/child."), refuse, refuse, refuse,
			allow, "description"},
		{"token of another type", secrets, token(forManagedSeed+"garden/child.", typed(corev1.SecretTypeOpaque)), refuse,
			refuse, refuse, allow, "type"},
		{"token that does not authenticate", secrets, token(forManagedSeed+"garden/child.", data("usage-bootstrap-authentication", "false")),
			refuse, refuse, refuse, allow, "usage-bootstrap-authentication"},
		{"token that does not sign", secrets, token(forManagedSeed+"garden/child.", data("usage-bootstrap-signing", "yes")),
			refuse, refuse, refuse, allow, "usage-bootstrap-signing"},
		{"token with groups", secrets, token(forManagedSeed+"garden/child.", data("auth-extra-groups", "")), refuse, refuse,
			refuse, allow, "auth-extra-groups"},
		{"token with groups as text", secrets, token(forManagedSeed+"garden/child.", func(s *corev1.Secret) {
			s.StringData = map[string]string{"auth-extra-groups": "system:bootstrappers:x"}
		}), refuse, refuse, refuse, allow, "auth-extra-groups"},
		{"token under another's name", secrets,
			token(forManagedSeed+"garden/child.", func(s *corev1.Secret) { s.Name = bootstraprules.TokenSecret("garden", "of-b") }),
			refuse, refuse, refuse, allow, bootstraprules.TokenSecret("garden", "child")},
		{"token elsewhere", secrets, secret("garden-dev", "on-a.monitoring", typed(corev1.SecretTypeBootstrapToken)), refuse,
			refuse, refuse, allow, "kube-system"},
		// Secret: the backup secret of one of its ManagedSeeds' seed templates
		{"backup secret of its ManagedSeed", secrets, secret("garden", "backup-child"), allow, refuse, refuse, allow, noReason},
		{"backup secret of b's ManagedSeed", secrets, secret("garden", "backup-of-b"), refuse, allow, refuse, allow, belongs},
		{"backup secret of the seed itself", secrets, secret("garden", "backup-a"), refuse, refuse, refuse, allow, belongs},
	})
}

// TestCreateForShoots tries every suffix of an object that is kept for a shoot.
func TestCreateForShoots(t *testing.T) {
	var cases []creationCase
	for kind, resource := range map[graph.Kind]resourceRule{
		graph.KindSecret: secrets, graph.KindConfigMap: configMaps, graph.KindInternalSecret: internalSecrets,
	} {
		for _, suffix := range graph.ShootSuffixes(kind) {
			of := func(shoot string) object {
				obj := resource.newObject()
				obj.SetNamespace("garden-dev")
				obj.SetName(shoot + suffix)
				return obj
			}
			cases = append(cases,
				creationCase{"of a: " + suffix, resource, of("on-a"), allow, refuse, refuse, allow, noReason},
				creationCase{"of b: " + suffix, resource, of("on-b"), refuse, allow, refuse, allow, belongs},
				creationCase{"of no shoot: " + suffix, resource, of("none"), refuse, refuse, refuse, allow, `shoots "`})
		}
	}
	checkCreations(t, cases)
}

func TestCreateSeedsAndAccounts(t *testing.T) {
	checkCreations(t, []creationCase{
		// Seed: its own
		{"own", seeds, newSeed("a"), allow, refuse, refuse, allow, noReason},
		{"another", seeds, newSeed("c"), refuse, refuse, refuse, allow, belongs},
		{"that of its ManagedSeed", seeds, newSeed("child"), refuse, refuse, refuse, allow, belongs},
		{"own, credentials without a label", seeds, newSeed("a", backupFrom("garden", "new")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials that do not exist", seeds, newSeed("a", backupFrom("garden", "future.ssh-keypair")), refuse, refuse, refuse,
			allow, unnamed},
		{"own, the landscape's secret for DNS", seeds, newSeed("a", dnsFrom("garden", "landscape")), refuse, refuse, refuse, allow, unnamed},
		{"own, credentials named for it", seeds, newSeed("a", backupFrom("garden", "labelled")), allow, refuse, refuse, allow, noReason},
		{"own, credentials of b", seeds, newSeed("a", backupFrom("garden", "backup-b")), refuse, refuse, refuse, allow, unnamed},
		{"own, DNS credentials shared", seeds, newSeed("a", dnsFrom("garden", "dns")), refuse, refuse, refuse, allow, unnamed},
		{"own, backup credentials of b for DNS", seeds, newSeed("a", dnsFrom("garden", "backup-b")), refuse, refuse, refuse, allow, unnamed},

		// ServiceAccount: in seed-<seed>, or for a ManagedSeed of its own that is not bootstrapped; extension: never
		{"in the seed's namespace", serviceAccounts, account("seed-a", "extension-y"), allow, refuse, refuse, allow, noReason},
		{"in another seed's namespace", serviceAccounts, account("seed-b", "extension-y"), refuse, allow, refuse, allow, belongs},
		{"no Seed yet", serviceAccounts, account("garden", "gardenlet-bootstrap-child"), allow, refuse, refuse, allow, noReason},
		{"certificate expired", serviceAccounts, account("garden", "gardenlet-bootstrap-expired"), allow, refuse, refuse, allow, noReason},
		{"asked to renew", serviceAccounts, account("garden", "gardenlet-bootstrap-renewing"), allow, refuse, refuse, allow, noReason},
		{"bootstrapped", serviceAccounts, account("garden", "gardenlet-bootstrap-grown"), refuse, refuse, refuse, allow, "bootstrapped already"},
		{"another seed's ManagedSeed", serviceAccounts, account("garden", "gardenlet-bootstrap-of-b"), refuse, allow, refuse, allow, belongs},
		{"ManagedSeed in another namespace", serviceAccounts, account("garden-dev", "gardenlet-bootstrap-child"), refuse,
			refuse, refuse, allow, `managedseeds "`},
		{"ManagedSeed outside of garden", serviceAccounts, account("garden-dev", "gardenlet-bootstrap-astray"), refuse,
			refuse, refuse, allow, "in the namespace garden"},
		{"other name", serviceAccounts, account("garden", "x"), refuse, refuse, refuse, allow, belongs},
		{"lists a secret", serviceAccounts, account("garden", "gardenlet-bootstrap-child", func(
			a *corev1.ServiceAccount) {
			a.Secrets = []corev1.ObjectReference{{Name: "backup-b"}}
		}), refuse, refuse, refuse, allow, "backup-b"},
		{"lists a pull secret", serviceAccounts, account("garden", "gardenlet-bootstrap-child", func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "backup-b"}}
		}), refuse, refuse, refuse, allow, "backup-b"},

		// ShootState: of a shoot whose spec or status names its seed
		{"own", shootStates, named[corev1beta1.ShootState]("garden-dev", "on-a"), allow, refuse, refuse, allow, noReason},
		{"on its way from a to b", shootStates, named[corev1beta1.ShootState]("garden-dev", "to-b"), allow, allow, refuse, allow, noReason},
		{"another seed's", shootStates, named[corev1beta1.ShootState]("garden-dev", "on-b"), refuse, allow, refuse, allow, belongs},
		{"no shoot's", shootStates, named[corev1beta1.ShootState]("garden-dev", "none"), refuse, refuse, refuse, allow, `shoots "`},
	})
}

func checkColumns(t *testing.T, w *world, why string, want map[*authenticationv1.UserInfo]int32,
	makeRequest func(authenticationv1.UserInfo) *admissionv1.AdmissionRequest) {
	t.Helper()
	for user, want := range want {
		response := w.handle(makeRequest(*user))
		if got := verdict(t, response); got != want {
			t.Errorf("%s: got %d, want %d: %s", user.Username, got, want, message(response))
		}
		if user == &gardenletA && !strings.Contains(message(response), why) {
			t.Errorf("the reason is %q, which lacks %q", message(response), why)
		}
	}
}

func gardenletWith(backupSecret string) object {
	return named("garden", "a", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = template(backupSecret) })
}

// TestBootstrapTokenForOwnGardenlet checks that a seed's own Gardenlet gets a bootstrap token only if an administrator
// requests it.
func TestBootstrapTokenForOwnGardenlet(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*corev1beta1.Seed, *seedmanagementv1alpha1.Gardenlet)
		noSeed  bool
		want    int32
	}{
		"bootstrapped": {func(*corev1beta1.Seed, *seedmanagementv1alpha1.Gardenlet) {}, false, refuse},
		"expired": {func(s *corev1beta1.Seed, _ *seedmanagementv1alpha1.Gardenlet) {
			s.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: now.Add(-time.Second)}
		}, false, refuse},
		"never expires": {func(s *corev1beta1.Seed, _ *seedmanagementv1alpha1.Gardenlet) {
			s.Status.ClientCertificateExpirationTimestamp = nil
		}, false, refuse},
		"asked to renew": {func(_ *corev1beta1.Seed, g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations = map[string]string{constants.GardenerOperation: "renew-kubeconfig"}
		}, false, allow},
		"no Seed": {func(*corev1beta1.Seed, *seedmanagementv1alpha1.Gardenlet) {}, true, refuse},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, g := landscape(), seed("a"), named[seedmanagementv1alpha1.Gardenlet]("garden", "a")
			test.prepare(s, g)
			w.put(seeds.resource, s).put(gardenlets.resource, g)
			if test.noSeed {
				delete(w.objects[seeds.resource], keyOf(s))
			}
			response := w.handle(creation(secrets, gardenletA, token(forGardenlet+"garden/a.")))
			if got := verdict(t, response); got != test.want {
				t.Errorf("got %d, want %d: %s", got, test.want, message(response))
			}
		})
	}
}

// TestCreateExisting checks that the creation of an existing object is answered with AlreadyExists, whatever its
// content.
func TestCreateExisting(t *testing.T) {
	for name, test := range map[string]struct {
		resource resourceRule
		obj      object
		want     int32
	}{
		"that would be allowed":        {backupEntries, entry("on-a--1", "a", "uid-seed-a", "on-a"), allow},
		"that would be refused":        {backupEntries, entry("on-a--1", "b", "uid-seed-b", "on-a"), exists},
		"that is another seed's":       {seeds, seed("b"), refuse},
		"that is another gardenlet's":  {gardenlets, named[seedmanagementv1alpha1.Gardenlet]("garden", "b"), refuse},
		"that must not be read":        {secrets, secret("garden", "landscape"), refuse},
		"that does not exist":          {seeds, seed("none"), refuse},
		"of the name in another place": {backupEntries, entry("on-a--2", "b", "uid-seed-b", "on-a"), refuse},
	} {
		t.Run(name, func(t *testing.T) {
			response := landscape().handle(creation(test.resource, gardenletA, test.obj))
			if got := verdict(t, response); got != test.want {
				t.Fatalf("got %d, want %d: %s", got, test.want, message(response))
			}
			if test.want == exists && response.Result.Reason != metav1.StatusReasonAlreadyExists {
				t.Errorf("the reason is %s", response.Result.Reason)
			}
		})
	}
}

// TestCreateTellsNothing checks that the answer to the creation of an object that the user may not read does not reveal
// whether the object exists.
func TestCreateTellsNothing(t *testing.T) {
	for _, test := range []struct {
		resource resourceRule
		obj      object
	}{
		{secrets, secret("garden", "landscape")}, {secrets, secret("garden-dev", "on-b.ssh-keypair")}, {secrets, secret("seed-b", "inside")},
		{secrets, token(forManagedSeed + "garden/of-b.")}, {secrets, secret("kube-system", bootstraprules.TokenSecret("garden", "of-b"))},
		{configMaps, configMap("garden-dev", "on-b.ca-cluster")}, {configMaps, configMap("seed-b", "inside")},
		{serviceAccounts, account("garden", "gardenlet-bootstrap-of-b")}, {serviceAccounts, account("seed-b", "other")},
		{internalSecrets, named[corev1beta1.InternalSecret]("garden-dev", "on-b.ca-client")},
		{shootStates, named[corev1beta1.ShootState]("garden-dev", "on-b")},
	} {
		there, absent := landscape().put(test.resource.resource, test.obj), landscape()
		delete(absent.objects[test.resource.resource], keyOf(test.obj))
		for _, user := range []authenticationv1.UserInfo{gardenletA, extensionA} {
			got, want := there.handle(creation(test.resource, user, test.obj)), absent.handle(creation(test.resource, user, test.obj))
			if verdict(t, got) != refuse || verdict(t, want) != refuse || message(got) != message(want) {
				t.Errorf("%s %s by %s: %s; if it is absent: %s", test.resource.kindName, keyOf(test.obj), user.Username, message(got), message(want))
			}
		}
	}
}

// TestReadErrors checks that a request is not allowed if a lookup fails, and that the answer is a server error.
func TestReadErrors(t *testing.T) {
	for _, test := range []struct {
		failing  string
		resource resourceRule
		obj      object
		want     int32
	}{
		{"shoots", secrets, secret("garden-dev", "on-a.monitoring"), broken},
		{"shoots", shootStates, named[corev1beta1.ShootState]("garden-dev", "on-a"), broken},
		{"backupbuckets", backupEntries, entry("on-a--1", "a", "uid-seed-a", "on-a"), broken},
		{"managedseeds", secrets, secret("garden", "backup-child"), broken},
		{"managedseeds", secrets, token(forManagedSeed + "garden/child."), broken},
		{"shoots", secrets, secret("garden", "backup-child"), broken},
		{"seeds", secrets, token(forManagedSeed + "garden/child."), broken},
		{"seeds", backupBuckets, bucket("a"), broken},
		{"secrets", backupBuckets, bucket("a", from("garden", "new")), broken},
		{"bastions", bastions, bastion("b"), refuse}, // only the check whether the object exists fails
	} {
		t.Run(test.failing+" for "+test.resource.resource.Resource, func(t *testing.T) {
			w := landscape()
			w.fail[test.failing] = errors.New("no answer")
			response := w.handle(creation(test.resource, gardenletA, test.obj))
			if got := verdict(t, response); got != test.want {
				t.Errorf("got %d, want %d: %s", got, test.want, message(response))
			}
		})
	}
}
