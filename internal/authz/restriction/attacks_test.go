package restriction

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// step is one request of an attack. If it is allowed, it changes the landscape, as it would in the API server.
type step struct {
	by       authenticationv1.UserInfo
	resource resourceRule
	sub      string // subresource
	create   object
	update   object // replaces the existing object
	delete   string // [namespace/]name
	want     int32
	because  string // a part of the reason of the refusal
	opens    string // the object that the user could read if the step were allowed: see TestAttacksWouldSucceed
}

// attack is a sequence of requests, the last of which is refused. The authorizer allows all of them, unless a comment
// says otherwise: there is a path from the object to the seed. Over the API, each step is one request with the client
// certificate of the gardenlet, or the token of the extension's ServiceAccount.
type attack struct {
	name  string
	given func(*world)
	steps []step
}

func attacks() []attack { return append(attacksByWriting(), attacksByDeleting()...) }

func attacksByWriting() []attack {
	return slices.Concat(attacksOnBackups(), attacksOnSeeds(), attacksOnIdentities(), attacksOnShoots())
}

// attacksOnBackups try to get the credentials of another seed's backups.
func attacksOnBackups() []attack {
	evil := gardenletA
	return []attack{
		{
			// a points the BackupBucket of its seed at the backup credentials of b, which get a path to a:
			// PATCH backupbuckets/<UID of Seed a> {"spec":{"credentialsRef":{"name":"backup-b"}}}; then GET secrets garden/backup-b.
			name: "credentials of a BackupBucket",
			steps: []step{
				{by: evil, resource: backupBuckets, update: changed(bucketOf("a"), from("garden", "backup-b")), want: refuse,
					because: "backup-b", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a deletes its BackupBucket, and recreates it with the credentials of b: DELETE backupbuckets/<UID of Seed
			// a>; POST backupbuckets of that name with spec.credentialsRef garden/backup-b; then GET secrets
			// garden/backup-b.
			name: "credentials of a new BackupBucket",
			steps: []step{
				{by: evil, resource: backupBuckets, delete: "uid-seed-a", want: allow},
				{by: evil, resource: backupBuckets, create: changed(bucketOf("a"), from("garden", "backup-b")), want: refuse,
					because: "is not named for the seed", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a uses a race: the webhook allows a POST of an existing BackupBucket, so that the API server answers
			// AlreadyExists, and the DELETE comes between the answer of the webhook and the write. So the webhook
			// answers AlreadyExists itself.
			name: "creation of what is about to go",
			steps: []step{
				{by: evil, resource: backupBuckets, create: changed(bucketOf("a"), from("garden", "backup-b")), want: exists,
					because: "already exists"},
				{by: evil, resource: backupBuckets, delete: "uid-seed-a", want: allow},
				{by: evil, resource: backupBuckets, create: changed(bucketOf("a"), from("garden", "backup-b")), want: refuse,
					because: "is not named for the seed", opens: "Secret garden/backup-b"},
			},
		},
		{
			// The extension on a sets the generated secret of a's bucket to that of b's: PATCH backupbuckets/<UID of
			// Seed a>/status {"status":{"generatedSecretRef":{"namespace":"garden","name":"generated-bucket-<UID of
			// Seed b>"}}}.
			name: "generated secret in the status of a BackupBucket",
			steps: []step{
				{by: extensionA, resource: backupBuckets, sub: "status", update: generated("garden", "generated-bucket-uid-seed-b"),
					want: refuse, because: "extensions", opens: "Secret garden/generated-bucket-uid-seed-b"},
				{by: evil, resource: backupBuckets, sub: "status", update: generated("garden", "generated-bucket-uid-seed-b"),
					want: refuse, because: "generatedSecretRef", opens: "Secret garden/generated-bucket-uid-seed-b"},
			},
		},
		{
			// a creates a BackupEntry in its own bucket, and moves it to b's: the credentials of b's bucket get a path
			// through the bucket and the entry to a. POST backupentries; PATCH {"spec":{"bucketName":"<UID of Seed
			// b>"}}.
			name: "bucket of a BackupEntry",
			steps: []step{
				{by: evil, resource: backupEntries, create: entry("on-a--1", "a", "uid-seed-a", "on-a"), want: allow},
				{by: evil, resource: backupEntries, update: entry("on-a--1", "a", "uid-seed-b", "on-a"), want: refuse,
					because: "BackupBucket uid-seed-b", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a claims to restore its own shoot, so that it may create a source entry in b's bucket: PATCH
			// shoots/status {"status":{"lastOperation":{"type":"Restore","state":"Processing"}}}; POST backupentries
			// source-<entry> in the bucket of b. The original entry is not in b's bucket, and cannot be moved there.
			name: "restoration that is none",
			steps: []step{
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "on-a", "a", restoring), want: allow},
				{by: evil, resource: backupEntries, create: entry("source-on-a--1", "a", "uid-seed-b", "on-a"), want: refuse,
					because: "same specification", opens: "Secret garden/backup-b"},
				{by: evil, resource: backupEntries, update: entry("on-a--1", "a", "uid-seed-b", "on-a"), want: refuse,
					because: "BackupBucket uid-seed-b", opens: "Secret garden/backup-b"},
			},
		},
		{
			// A migration from a to b is allowed, but nothing else: a hands its entry over to b, and b moves it to its
			// bucket and can then no longer read anything of a; a cannot take the entry back.
			name: "the end of a migration",
			steps: []step{
				{by: evil, resource: backupEntries, update: migrating("b", "uid-seed-a", "a"), want: allow},
				{by: evil, resource: backupEntries, sub: "status", update: migrating("b", "uid-seed-a", ""), want: allow},
				{by: gardenletB, resource: backupEntries, update: migrating("b", "uid-seed-b", ""), want: allow},
				{by: gardenletB, resource: backupEntries, sub: "status", update: migrating("b", "uid-seed-b", "b"), want: allow},
				{by: evil, resource: backupEntries, update: migrating("a", "uid-seed-b", "b"), want: refuse, because: `on seed "b"`},
				{by: gardenletB, resource: backupEntries, update: migrating("b", "uid-seed-a", "b"), want: refuse, because: "BackupBucket uid-seed-a"},
			},
		},
		{
			// a makes a Secret of its own one of the landscape's, which are copied to all seeds, and which the API server reads:
			// POST secrets garden/generated-bucket-<UID of Seed a> with the label gardener.cloud/role=default-domain. Or it
			// changes what one of the landscape's is for, to which its Seed refers: PATCH secrets garden/dns
			// {"metadata":{"annotations":{"dns.gardener.cloud/domain":"evil.example"}}}.
			name:  "domain of the landscape",
			given: func(w *world) { w.put(secrets.resource, defaultDomain("example.org")) },
			steps: []step{
				{by: evil, resource: secrets, create: changed(defaultDomain("evil.example"), func(s *corev1.Secret) {
					s.Name = "generated-bucket-uid-seed-a"
				}), want: refuse, because: "gardener.cloud/role"},
				{by: evil, resource: configMaps, create: named("garden", "on-a.ca-cluster", func(c *corev1.ConfigMap) {
					c.Labels = map[string]string{constants.SchedulingPurpose: constants.SchedulingPurposeRegionConfig}
				}), want: refuse, because: constants.SchedulingPurpose},
				{by: evil, resource: secrets, update: defaultDomain("evil.example"), want: refuse, because: "does not belong"},
			},
		},
		{
			// b is about to take over an entry that a reported. a reports it again and again, so that it never leaves, and
			// writes b's bucket, to which the entry points: PATCH backupentries garden-dev/left/status; PATCH backupbuckets/<UID
			// of Seed b>. The credentials of the bucket have no path to a (TestBackupEntryThatNeverLeaves).
			name:  "BackupEntry that its seed never leaves",
			given: neverLeft,
			steps: []step{
				{by: evil, resource: backupEntries, sub: "status", update: leftTo("b", "a"), want: allow},
				{by: evil, resource: backupBuckets, update: changed(bucketOf("b"), withFinalizer[*corev1beta1.BackupBucket]), want: refuse,
					because: "does not belong"},
			},
		},
		{
			// A shoot on b was deleted, and its BackupEntry is kept for a grace period. A user creates a shoot of the same
			// name, on a. a moves the entry of the deleted shoot to itself: PATCH backupentries garden-dev/gone--2
			// {"spec":{"seedName":"a"}}; then GET secrets garden/backup-b.
			name: "BackupEntry of a deleted Shoot of the same name",
			given: func(w *world) {
				w.put(shoots.resource, shootOn("garden-dev", "again", "a"))
				w.put(backupEntries.resource, keptFor("b", "b"))
			},
			steps: []step{
				{by: evil, resource: backupEntries, sub: "status", update: keptFor("b", "a"), want: refuse, because: "does not belong"},
				{by: evil, resource: backupEntries, update: keptFor("a", "b"), want: refuse, because: "does not belong",
					opens: "Secret garden/backup-b"},
			},
		},
	}
}

// attacksOnSeeds try to get objects of another seed through Seeds, Gardenlets and ManagedSeeds.
func attacksOnSeeds() []attack {
	evil, grownToken := gardenletA, "Secret kube-system/"+bootstraprules.TokenSecret("garden", "grown")
	return []attack{
		{
			// a sets b's backup credentials in its own Seed: PATCH seeds/a
			// {"spec":{"backup":{"credentialsRef":{"name":"backup-b"}}}}; then GET secrets garden/backup-b. The same
			// with the credentials for DNS, and with spec.resources.
			name: "credentials of a Seed",
			steps: []step{
				{by: evil, resource: seeds, update: seed("a", func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "backup-b" }),
					want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
				{by: evil, resource: seeds, update: seed("a", func(s *corev1beta1.Seed) { dnsFrom("garden", "backup-b")(&s.Spec) }),
					want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
				{by: evil, resource: seeds, update: seed("a", func(s *corev1beta1.Seed) {
					s.Spec.Resources = []corev1beta1.NamedResourceReference{
						{Name: "x", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "backup-b"}}}
				}), want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a deletes its Seed, which has no shoots, and registers it again with the credentials of b, or with those of
			// a shoot of the project garden: DELETE seeds/a; POST seeds.
			name: "credentials of a new Seed",
			steps: []step{
				{by: evil, resource: seeds, delete: "a", want: allow},
				{by: evil, resource: seeds, create: seed("a", func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "backup-b" }),
					want: refuse, because: "is not named for the seed", opens: "Secret garden/backup-b"},
				{by: evil, resource: seeds, create: seed("a", func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "infra2" }),
					want: refuse, because: "is not named for the seed", opens: "Secret garden/infra2"},
				{by: evil, resource: seeds, create: seed("a", func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "on-b.monitoring" }),
					want: refuse, because: "is not named for the seed", opens: "Secret garden/on-b.monitoring"},
			},
		},
		{
			// a creates a Gardenlet whose seed template has b's credentials, so that they seem to be a's: DELETE
			// seeds/a; POST gardenlets garden/a; then POST seeds with them.
			name: "credentials laundered through a Gardenlet",
			steps: []step{
				{by: evil, resource: seeds, delete: "a", want: allow},
				{by: evil, resource: gardenlets, create: gardenletWith("backup-b"), want: refuse, because: "is not named for the seed",
					opens: "Secret garden/backup-b"},
				{by: evil, resource: gardenlets, create: gardenletWith("new"), want: refuse, because: "is not named for the seed",
					opens: "Secret garden/new"},
				{by: evil, resource: gardenlets, create: gardenletWith("labelled"), want: allow},
				{by: evil, resource: gardenlets, update: gardenletWith("backup-b"), want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
				{by: evil, resource: seeds, create: seed("a", func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "backup-b" }),
					want: refuse, because: "is not named for the seed", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a has a ManagedSeed on one of its shoots, and sets b's credentials in the template of its seed: PATCH
			// managedseeds garden/child {"spec":{"gardenlet":{"config":…}}}; then GET secrets garden/backup-b, or POST
			// it.
			name: "seed template of a ManagedSeed",
			steps: []step{
				{by: evil, resource: managedSeeds,
					update: managedSeed("child", "on-a", func(m *seedmanagementv1alpha1.ManagedSeed) { m.Spec.Gardenlet.Config = template("backup-b") }),
					want:   refuse, because: "specification", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a tries to become the managed seed on its shoot, although that is bootstrapped: it sets an expired
			// certificate in the Seed's status, or requests a new kubeconfig; then it could POST a bootstrap token and
			// get the seed's identity.
			name: "credentials of a managed seed that has some",
			steps: []step{
				{by: evil, resource: secrets, create: token(forManagedSeed + "garden/grown."), want: refuse, because: "bootstrapped already"},
				{by: evil, resource: seeds, sub: "status", update: seed("grown", func(s *corev1beta1.Seed) {
					s.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: now.AddDate(0, 0, -1)}
				}), want: refuse, because: "does not belong", opens: grownToken},
				{by: evil, resource: managedSeeds, sub: "status", update: managedSeed("grown", "on-a", annotate[*seedmanagementv1alpha1.ManagedSeed](
					constants.GardenerOperation, "renew-kubeconfig")), want: refuse, because: "renew-kubeconfig", opens: grownToken},
				{by: evil, resource: secrets, create: token(forManagedSeed + "garden/grown."), want: refuse, because: "bootstrapped already"},
			},
		},
	}
}

// attacksOnIdentities try to get tokens, certificates and permissions of others.
func attacksOnIdentities() []attack {
	evil := gardenletA
	return []attack{
		{
			// Secrets in a ServiceAccount have a path to the ManagedSeed that is bootstrapped with it. a adds b's
			// credentials, which are in the same namespace: POST serviceaccounts garden/gardenlet-bootstrap-child,
			// PATCH {"secrets":[{"name":"backup-b"}]}.
			name:  "secrets of a ServiceAccount",
			given: func(w *world) { w.put(managedSeeds.resource, managedSeed("child", "on-a", byServiceAccount)) },
			steps: []step{
				{by: evil, resource: serviceAccounts, create: account("garden", "gardenlet-bootstrap-child", listing("backup-b")),
					want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
				{by: evil, resource: serviceAccounts, create: account("garden", "gardenlet-bootstrap-child"), want: allow},
				{by: evil, resource: serviceAccounts, update: account("garden", "gardenlet-bootstrap-child", listing("backup-b")),
					want: refuse, because: "backup-b", opens: "Secret garden/backup-b"},
			},
		},
		{
			// a binds the bootstrapper's role to a ServiceAccount in its own namespace, which neither webhook takes for
			// a gardenlet: it could request a certificate as seed b. POST serviceaccounts seed-a/mine; POST or PATCH
			// clusterrolebindings gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-child.
			name: "subjects of a ClusterRoleBinding",
			steps: []step{
				{by: evil, resource: serviceAccounts, create: account("seed-a", "mine"), want: allow},
				{by: evil, resource: clusterRoleBindings, create: boundToMine(), want: refuse, because: "not of ServiceAccount seed-a/mine"},
				{by: evil, resource: clusterRoleBindings, create: binding("garden:gardenlet-bootstrap-child"), want: allow},
				{by: evil, resource: clusterRoleBindings, update: boundToMine(), want: refuse, because: "not of ServiceAccount seed-a/mine"},
			},
		},
		{
			// a turns one of the secrets of its shoot into a ServiceAccount token: Kubernetes writes the token of the
			// account in the annotation into it, and a may read it. POST secrets garden/on-a.monitoring, type
			// kubernetes.io/service-account-token, annotation kubernetes.io/service-account.name:
			// gardenlet-bootstrap-of-b.
			name: "token of a ServiceAccount",
			steps: []step{
				{by: evil, resource: secrets, create: tokenOf("gardenlet-bootstrap-of-b"), want: refuse, because: "service-account-token"},
				{by: extensionA, resource: secrets, create: tokenOf("robot"), want: refuse, because: "extensions"},
			},
		},
		{
			// The same with a token Secret in a ManagedSeed's ServiceAccount, so that a may update it: PATCH
			// {"metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}.
			name:  "annotation of a token Secret",
			given: func(w *world) { w.put(secrets.resource, tokenOf("gardenlet-bootstrap-child")) },
			steps: []step{
				{by: evil, resource: secrets, update: tokenOf("robot"), want: refuse, because: "service-account-token"},
			},
		},
		{
			// a creates a bootstrap token for its own ManagedSeed, and then changes it so that its user is in another
			// group, or that it is for a ManagedSeed on b: PATCH secrets kube-system/bootstrap-token-….
			name: "bootstrap token for more",
			steps: []step{
				{by: evil, resource: secrets, create: token(forManagedSeed + "garden/child."), want: allow},
				{by: evil, resource: secrets, update: token(forManagedSeed+"garden/child.", data("auth-extra-groups", "system:bootstrappers:admins")),
					want: refuse, because: "auth-extra-groups"},
				{by: evil, resource: secrets, update: childToken(data("description", forManagedSeed+"garden/of-b.")), want: refuse,
					because: "does not belong"},
				{by: evil, resource: secrets, update: childToken(data("description", forGardenlet+"garden/b.")), want: refuse,
					because: "does not belong"},
			},
		},
		{
			// a requests a certificate as b: POST certificatesigningrequests with the common name
			// gardener.cloud:system:seed:b, also with a second organization. An extension cannot even request one as a.
			name: "certificate of another seed",
			steps: []step{
				{by: evil, resource: certificateRequests, create: csr("gardener.cloud:system:seed:b"), want: refuse, because: "does not belong"},
				{by: evil, resource: certificateRequests, create: csr("gardener.cloud:system:seed:a", func(c *x509CSR, _ *csrSpec) {
					c.Subject.Organization = append(c.Subject.Organization, "system:masters")
				}), want: refuse, because: "organization"},
				{by: extensionA, resource: certificateRequests, create: csr("gardener.cloud:system:seed:a"), want: refuse, because: "extensions"},
			},
		},
	}
}

func technicalID(id string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) { s.Status.TechnicalID = id }
}

func withOwner[T object](kind, name string) func(T) {
	return func(obj T) {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: "uid"}})
	}
}

func confirmed[T object](obj T) {
	obj.SetAnnotations(map[string]string{constants.ConfirmationDeletion: "true"})
}

// attacksOnShoots try to get objects of another seed's shoots, and their Bastions.
func attacksOnShoots() []attack {
	evil := gardenletA
	return []attack{
		{
			// Shoots of one project are on a and on b. a lets its own refer to the secret of the other, which
			// Gardener's API does not check for DNS credentials and the API server's kubeconfigs: PATCH shoots
			// garden-dev/on-a
			// {"spec":{"dns":{"providers":[{"credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"on-b.ssh-keypair"}}]}}};
			// then GET secrets garden-dev/on-b.ssh-keypair.
			name: "references of a Shoot",
			given: func(w *world) {
				w.put(credentialsBindings,
					named("garden-dev", "of-b", func(b *securityv1alpha1.CredentialsBinding) { b.CredentialsRef = *secretRef("garden-dev", "infra-b") }))
			},
			steps: []step{
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "a", func(s *corev1beta1.Shoot) {
					s.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
						{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "on-b.ssh-keypair"}}}}
				}), want: refuse, because: "on-b.ssh-keypair", opens: "Secret garden-dev/on-b.ssh-keypair"},
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "a", func(s *corev1beta1.Shoot) {
					s.Spec.Resources = []corev1beta1.NamedResourceReference{
						{Name: "x", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "on-b.ssh-keypair"}}}
				}), want: refuse, because: "on-b.ssh-keypair", opens: "Secret garden-dev/on-b.ssh-keypair"},
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "a", func(s *corev1beta1.
					Shoot) {
					s.Spec.CredentialsBindingName = ptr.To("of-b")
				}), want: refuse, because: "of-b", opens: "Secret garden-dev/infra-b"},
			},
		},
		{
			// a moves a shoot to another seed with a patch, instead of the subresource binding, or reports that it has
			// moved: PATCH shoots garden-dev/on-a {"spec":{"seedName":"b"}}; PATCH …/status
			// {"status":{"seedName":"b"}}.
			name: "seed of a Shoot",
			steps: []step{
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "b"), want: refuse, because: "another seed"},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "on-a", "a",
					func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("b") }), want: refuse, because: "status.seedName"},
			},
		},
		{
			// a sets the technical ID of its new Shoot, which cannot be changed later, to another namespace of the seed, to
			// that of another Shoot, or to a text that ends a line of the configuration of its user's ssh: PATCH
			// shoots/status garden-dev/new {"status":{"technicalID":"x\nMatch exec \"…\""}}.
			name: "technical ID of a Shoot",
			given: func(w *world) {
				w.put(namespaces, named("", "garden-dev", func(n *corev1.Namespace) { n.Labels = map[string]string{constants.ProjectName: "dev"} }))
				w.put(shoots.resource, shootOn("garden-dev", "new", "a", technicalID("")))
			},
			steps: []step{
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "new", "a", technicalID("kube-system")),
					want: refuse, because: "status.technicalID"},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "new", "a", technicalID("shoot--dev--on-b")),
					want: refuse, because: "status.technicalID"},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "new", "a", technicalID("shoot--other--new")),
					want: refuse, because: "status.technicalID"},
				{by: evil, resource: shoots, update: shootOn("garden-dev", "new", "a", technicalID("x\nMatch exec \"id\"")),
					want: refuse, because: "status.technicalID"},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "new", "a", technicalID("shoot--dev--new")), want: allow},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "new", "a", technicalID("")), want: refuse,
					because: "status.technicalID"},
			},
		},
		{
			// a may not delete a Shoot or a ManagedSeed. It gives it an owner that never existed, so that the garbage
			// collector deletes it, or one that it may delete, and confirms the deletion: PATCH shoots garden-dev/on-a
			// {"metadata":{"ownerReferences":[…],"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}.
			name: "deletion by the garbage collector",
			steps: []step{
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "a", withOwner[*corev1beta1.Shoot]("ConfigMap", "never")),
					want: refuse, because: "ConfigMap never is not for gardenlets"},
				{by: evil, resource: shoots, sub: "status", update: shootOn("garden-dev", "on-a", "a", withOwner[*corev1beta1.Shoot]("Secret", "x")),
					want: refuse, because: "Secret x is not for gardenlets"},
				{by: evil, resource: shoots, update: shootOn("garden-dev", "on-a", "a", confirmed[*corev1beta1.Shoot]), want: refuse, because: "to confirm"},
				{by: evil, resource: managedSeeds, update: managedSeed("child", "on-a", withOwner[*seedmanagementv1alpha1.ManagedSeed]("Shoot", "on-a")),
					want: refuse, because: "Shoot on-a is not for gardenlets"},
				{by: evil, resource: managedSeeds, update: managedSeed("child", "on-a", confirmed[*seedmanagementv1alpha1.ManagedSeed]),
					want: refuse, because: "to confirm"},
				{by: evil, resource: seeds, update: seed("a", withOwner[*corev1beta1.Seed]("Seed", "b")), want: refuse, because: "Seed b is not for"},
				{by: evil, resource: backupBuckets, update: changed(bucketOf("a"), withOwner[*corev1beta1.BackupBucket]("Seed", "b")), want: refuse,
					because: "Seed b is not for"},
				{by: evil, resource: backupEntries, update: entry("on-a--1", "a", "uid-seed-a", "on-a",
					func(e *corev1beta1.BackupEntry) { e.OwnerReferences[0].UID = "another" }), want: refuse, because: "Shoot on-a is not for"},
			},
		},
		{
			// The ControllerDeployment of an extension that is only on b refers to a pull secret. a sets that
			// deployment in one of its ControllerInstallations: PATCH controllerinstallations/i
			// {"spec":{"deploymentRef":{"name":"of-b"}}}.
			name: "deployment of a ControllerInstallation",
			given: func(w *world) {
				w.put(controllerInstallations.resource, installation("a", "of-a"))
			},
			steps: []step{
				{by: extensionA, resource: controllerInstallations, update: installation("a", "of-b"), want: refuse,
					because: "extensions", opens: "ControllerDeployment of-b"},
				{by: evil, resource: controllerInstallations, update: installation("b", "of-a"), want: refuse, because: "specification"},
			},
		},
		{
			// A project's ConfigMap configures the authorization of the shoots on a and on b. a overwrites it, and so
			// changes b's shoot: PATCH configmaps garden-dev/authorization. Also kube-system/cluster-identity, which
			// has a path to all seeds.
			name: "content of what is shared",
			given: func(w *world) {
				w.put(configMaps.resource, configMap("garden-dev", "authorization"), configMap("kube-system", "cluster-identity"))
				w.put(secrets.resource, secret("garden-dev", "credentials"))
			},
			steps: []step{
				{by: evil, resource: configMaps, update: withContent("garden-dev", "authorization"), want: refuse, because: "does not belong"},
				{by: evil, resource: configMaps, update: withContent("kube-system", "cluster-identity"), want: refuse, because: "does not belong"},
				{by: evil, resource: secrets, update: secret("garden-dev", "credentials",
					func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("mine")} }), want: refuse, because: "does not belong"},
			},
		},
		{
			// a publishes its own keys as those of the service account issuer of a shoot on b, before b does: POST
			// secrets gardener-system-shoot-issuer/<project>--<UID of the shoot on b>, labelled for its own shoot; or
			// it creates its own and labels that for b's.
			name: "issuer of another's identities",
			steps: []step{
				{by: evil, resource: secrets, create: secret("gardener-system-shoot-issuer", "dev--uid-on-b", issuer("garden-dev", "on-a")),
					want: refuse, because: "--uid-on-a"},
				{by: evil, resource: secrets,
					create: secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a")), want: allow},
				{by: evil, resource: secrets, update: secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-b")),
					want: refuse, because: "on-b is not on it"},
			},
		},
		{
			// Alice has a Bastion to her shoot on a. a points it to the shoot on b, makes it Bob's, sets its own key,
			// or keeps it after the shoot has moved: PATCH bastions garden-dev/b.
			name:  "another seed's Bastion",
			given: func(w *world) { w.put(bastions.resource, bastionOf("on-a", "a")) },
			steps: []step{
				{by: evil, resource: bastions, update: bastionOf("on-b", "a"), want: refuse, because: "must stay with its shoot"},
				{by: evil, resource: bastions, update: changed(bastionOf("on-a", "a"),
					annotate[*operationsv1alpha1.Bastion](constants.GardenCreatedBy, "bob")), want: refuse, because: "created-by"},
				{by: evil, resource: bastions, update: changed(bastionOf("on-a", "a"),
					func(b *operationsv1alpha1.Bastion) { b.Spec.SSHPublicKey = "ssh-ed25519 mine" }), want: refuse, because: "user's key"},
				{by: evil, resource: bastions, update: bastionOf("on-a", "b"), want: refuse, because: "must not be moved"},
			},
		},
	}
}

// begin returns the landscape before the attack. No shoot in it is being restored, because its new seed could then read
// the old seed's bucket.
func (a attack) begin() *world {
	w := landscape()
	for key, obj := range w.objects[backupEntries.resource] {
		if e := obj.(*corev1beta1.BackupEntry); e.Spec.BucketName != "uid-seed-"+*e.Spec.SeedName {
			delete(w.objects[backupEntries.resource], key)
		}
	}
	if a.given != nil {
		a.given(w)
	}
	return w
}

func TestAttacks(t *testing.T) {
	for _, attack := range attacks() {
		t.Run(strings.ReplaceAll(attack.name, " ", "-"), func(t *testing.T) {
			w := attack.begin()
			for i, s := range attack.steps {
				response := w.handle(s.request(t, w))
				if got := verdict(t, response); got != s.want {
					t.Fatalf("step %d: got %d, want %d: %s", i+1, got, s.want, message(response))
				}
				if s.because == "" && s.want != allow || !strings.Contains(message(response), s.because) {
					t.Errorf("step %d: the reason is %q, which lacks %q", i+1, message(response), s.because)
				}
				if response.Allowed {
					s.apply(w)
				}
			}
			if last := attack.steps[len(attack.steps)-1]; last.want == allow {
				t.Error("the attack succeeds")
			}
		})
	}
	if n := len(attacks()); n < 10 {
		t.Errorf("%d attacks", n)
	}
}

// TestAttacksWouldSucceed checks that the attacks are real: in the dependency graph, there is no path to the user's
// seed before the refused step, and there would be one after it.
func TestAttacksWouldSucceed(t *testing.T) {
	shown := 0
	for _, attack := range attacks() {
		w := attack.begin()
		for i, s := range attack.steps {
			if s.opens != "" {
				then := w.copy()
				s.apply(then)
				if before, after := w.mayRead(t, s.by, s.opens), then.mayRead(t, s.by, s.opens); before || !after {
					t.Errorf("%s, step %d: %s may be read before: %t, after: %t", attack.name, i+1, s.opens, before, after)
				}
				shown++
			}
			if s.want == allow {
				s.apply(w)
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d steps are shown to matter", shown)
	}
}

func (w *world) copy() *world {
	c := &world{objects: map[schema.GroupVersionResource]map[types.NamespacedName]object{}}
	for resource, objects := range w.objects {
		c.objects[resource] = maps.Clone(objects)
	}
	return c
}

// mayRead reports whether the graph has a path from the object to the user's seed.
func (w *world) mayRead(t *testing.T, who authenticationv1.UserInfo, what string) bool {
	t.Helper()
	g := w.graph()
	kind, name, _ := strings.Cut(what, " ")
	vertex := graph.Vertex{Kind: map[string]graph.Kind{
		"Secret": graph.KindSecret, "ControllerDeployment": graph.KindControllerDeployment}[kind], Name: name}
	if namespace, name, namespaced := strings.Cut(name, "/"); namespaced {
		vertex.Namespace, vertex.Name = namespace, name
	}
	return g.HasPath(vertex, seedidentity.OfAuthentication(who).Seed)
}

func (w *world) graph() *graph.Graph {
	g := graph.New()
	for _, objects := range w.objects {
		for _, obj := range objects {
			if owner, edges, ok := graph.EdgesOf(obj, graphContext{w}); ok {
				g.Set(owner, edges)
			}
		}
	}
	return g
}

type graphContext struct{ w *world }

func (c graphContext) Seed(name string) *corev1beta1.Seed {
	seed, _ := c.w.objects[seeds.resource][types.NamespacedName{Name: name}].(*corev1beta1.Seed)
	return seed
}

func (graphContext) Now() time.Time { return now }

func byServiceAccount(m *seedmanagementv1alpha1.ManagedSeed) {
	m.Spec.Gardenlet.Bootstrap = ptr.To(seedmanagementv1alpha1.BootstrapServiceAccount)
}

func (s step) request(t *testing.T, w *world) *admissionv1.AdmissionRequest {
	t.Helper()
	switch {
	case s.create != nil:
		return creation(s.resource, s.by, s.create)
	case s.update != nil:
		old, there := w.objects[s.resource.resource][keyOf(s.update)]
		if !there {
			t.Fatalf("%s is not there", keyOf(s.update))
		}
		return update(s.resource, s.sub, s.by, old, s.update)
	}
	there, ok := w.objects[s.resource.resource][s.deleted()]
	if !ok {
		t.Fatalf("%s is not there", s.delete)
	}
	return deletion(s.resource, s.by, there)
}

func (s step) deleted() types.NamespacedName {
	namespace, name, namespaced := strings.Cut(s.delete, "/")
	if !namespaced {
		namespace, name = "", s.delete
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (s step) apply(w *world) {
	for _, obj := range []object{s.create, s.update} {
		if obj != nil {
			w.put(s.resource.resource, obj)
			return
		}
	}
	delete(w.objects[s.resource.resource], s.deleted())
}

func defaultDomain(domain string) *corev1.Secret {
	return secret("garden", "dns", func(s *corev1.Secret) {
		s.Labels = map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain}
		s.Annotations = map[string]string{"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": domain}
	}).(*corev1.Secret)
}

func keptFor(seed, reported string) object {
	return entry("gone--2", seed, "uid-seed-b", "again", func(e *corev1beta1.BackupEntry) {
		e.OwnerReferences[0].UID, e.DeletionTimestamp = "uid-of-the-deleted-shoot", &metav1.Time{Time: now}
		e.Status.SeedName = &reported
	})
}

func leftTo(seed, reported string) object {
	return entry("left", seed, "uid-seed-"+seed, "", func(e *corev1beta1.BackupEntry) { e.Status.SeedName = &reported })
}

func neverLeft(w *world) { w.put(backupEntries.resource, leftTo("b", "a")) }

func TestBackupEntryThatNeverLeaves(t *testing.T) {
	w := attack{given: neverLeft}.begin()
	if w.mayRead(t, gardenletA, "Secret garden/backup-b") || !w.mayRead(t, gardenletB, "Secret garden/backup-b") {
		t.Error("the credentials of b have a path to a, or none to b")
	}
}

func migrating(seed, bucket, reported string) object {
	return entry("to-b--1", seed, bucket, "to-b", func(e *corev1beta1.BackupEntry) { e.Status.SeedName = &reported })
}

func installation(seed, deployment string) object {
	return named("", "i", func(i *corev1beta1.ControllerInstallation) {
		i.Spec.SeedRef, i.Spec.DeploymentRef = &corev1.ObjectReference{Name: seed}, &corev1.ObjectReference{Name: deployment}
	})
}

func childToken(change func(*corev1.Secret)) object {
	return token(forManagedSeed+"garden/child.", change)
}

func listing(secret string) func(*corev1.ServiceAccount) {
	return func(a *corev1.ServiceAccount) { a.Secrets = []corev1.ObjectReference{{Name: secret}} }
}

func boundToMine() object {
	return binding("garden:gardenlet-bootstrap-child", func(b *rbacv1.ClusterRoleBinding) {
		b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "seed-a", Name: "mine"}}
	})
}

func tokenOf(account string) object {
	return secret("garden", "on-a.monitoring", typed(corev1.SecretTypeServiceAccountToken),
		annotate[*corev1.Secret](corev1.ServiceAccountNameKey, account))
}

func withContent(namespace, name string) object {
	return named(namespace, name, func(c *corev1.ConfigMap) { c.Data = map[string]string{"config": "mine"} })
}
