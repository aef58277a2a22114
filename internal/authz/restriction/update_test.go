package restriction

import (
	"testing"

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func changed[P object](obj P, change func(P)) object {
	c := obj.DeepCopyObject().(P)
	change(c)
	return c
}

// updateCase is a row of the table of UPDATE: "Closing holes". The columns are those of creationCase. The authorizer
// has already allowed the request, so the column of b is for a gardenlet that also has a path to the object, as in a
// migration.
type updateCase struct {
	name                            string
	resource                        resourceRule
	subresource                     string
	old, obj                        object
	gardenlet, other, extension, no int32
	why                             string
}

func checkUpdates(t *testing.T, cases []updateCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.resource.resource.Resource+"/"+test.subresource+"/"+test.name, func(t *testing.T) {
			checkColumns(t, landscape(), test.why, map[*authenticationv1.UserInfo]int32{
				&gardenletA: test.gardenlet, &gardenletB: test.other, &extensionA: test.extension, &neither: test.no,
			}, func(user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
				return update(test.resource, test.subresource, user, test.old, test.obj)
			})
		})
	}
}

func TestUpdateBackupsAndBastions(t *testing.T) {
	var (
		ownEntry = entry("on-a--1", "a", "uid-seed-a", "on-a")
		goes     = entry("to-b--1", "a", "uid-seed-a", "to-b")
		ownBast  = bastionOf("on-a", "a")
	)
	checkUpdates(t, []updateCase{
		{"finalizer", backupBuckets, "", bucketOf("a"), changed(bucketOf("a"), withFinalizer[*corev1beta1.BackupBucket]),
			allow, refuse, refuse, allow, noReason},
		{"move", backupBuckets, "", bucketOf("a"), changed(bucketOf("a"), func(b *corev1beta1.BackupBucket) { b.Spec.SeedName = ptr.To("b") }),
			refuse, refuse, refuse, allow, "another seed"},
		{"move to a shoot", backupBuckets, "", bucketOf("a"), changed(bucketOf("a"),
			func(b *corev1beta1.BackupBucket) { b.Spec.ShootRef = &corev1.ObjectReference{Name: "x"} }), refuse, refuse, refuse, allow, "shoot"},
		{"foreign credentials", backupBuckets, "", bucketOf("a"), changed(bucketOf("a"),
			func(b *corev1beta1.BackupBucket) { b.Spec.CredentialsRef.Name = "backup-b" }), refuse, refuse, refuse, allow, "backup-b"},
		{"credentials that do not exist", backupBuckets, "", bucketOf("a"), changed(bucketOf("a"),
			func(b *corev1beta1.BackupBucket) { b.Spec.CredentialsRef.Name = "new" }), refuse, refuse, refuse, allow, "garden/new"},
		{"back to the seed's credentials", backupBuckets, "", changed(bucketOf("a"), from("garden", "old")), bucketOf("a"),
			allow, refuse, refuse, allow, noReason},
		{"own generated secret", backupBuckets, "status", bucketOf("a"), generated("garden", "generated-bucket-uid-seed-a"),
			allow, refuse, refuse, allow, noReason},
		{"foreign generated secret", backupBuckets, "status", bucketOf("a"), generated("garden", "generated-bucket-uid-seed-b"),
			refuse, refuse, refuse, allow, "generatedSecretRef"},
		{"generated secret elsewhere", backupBuckets, "status", bucketOf("a"),
			generated("garden-dev", "generated-bucket-uid-seed-a"), refuse, refuse, refuse, allow, "generatedSecretRef"},

		{"finalizer", backupEntries, "", ownEntry, changed(ownEntry, withFinalizer[*corev1beta1.BackupEntry]), allow, refuse,
			refuse, allow, noReason},
		{"to where its shoot is not", backupEntries, "", ownEntry,
			changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Spec.SeedName = ptr.To("b") }), refuse, refuse, refuse, allow, `on seed "a"`},
		{"after its shoot", backupEntries, "", goes, changed(goes, func(e *corev1beta1.BackupEntry) { e.Spec.SeedName = ptr.To("b") }),
			allow, allow, refuse, allow, noReason},
		{"after its shoot, with a bucket there", backupEntries, "", goes, changed(goes, func(e *corev1beta1.BackupEntry) {
			e.Spec.SeedName, e.Spec.BucketName = ptr.To("b"), "uid-seed-b"
		}), refuse, allow, refuse, allow, "BackupBucket uid-seed-b"},
		{"of no seed", backupEntries, "", ownEntry, changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Spec.SeedName = nil }),
			refuse, refuse, refuse, allow, "must not be moved"},
		{"without owner, moved", backupEntries, "", entry("x", "a", "uid-seed-a", ""), entry("x", "b", "uid-seed-a", ""),
			refuse, refuse, refuse, allow, "the shoots on which the answer depends are not named"},
		{"foreign bucket", backupEntries, "", ownEntry, changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Spec.BucketName = "uid-seed-b" }),
			refuse, refuse, refuse, allow, "BackupBucket uid-seed-b"},
		{"foreign shoot", backupEntries, "", ownEntry, changed(ownEntry,
			func(e *corev1beta1.BackupEntry) { e.OwnerReferences[0].Name = "on-b" }), refuse, refuse, refuse, allow, "shoot garden-dev/on-b"},
		{"self-hosted shoot", backupEntries, "", ownEntry,
			changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Spec.ShootRef = &corev1.ObjectReference{Name: "on-a"} }),
			refuse, refuse, refuse, allow, "another shoot"},
		{"own seed reported", backupEntries, "status", changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Status.SeedName = nil }),
			ownEntry, allow, refuse, refuse, allow, noReason},
		{"foreign seed reported", backupEntries, "status", ownEntry, changed(ownEntry,
			func(e *corev1beta1.BackupEntry) { e.Status.SeedName = ptr.To("b") }), refuse, refuse, refuse, allow, "status.seedName"},
		{"done", backupEntries, "status", ownEntry, changed(ownEntry, func(e *corev1beta1.BackupEntry) { e.Status.SeedName = nil }),
			allow, refuse, refuse, allow, noReason},

		{"finalizer", bastions, "", ownBast, changed(ownBast, withFinalizer[*operationsv1alpha1.Bastion]), allow, allow, refuse, allow, noReason},
		{"to where its shoot is not", bastions, "", ownBast,
			changed(ownBast, func(b *operationsv1alpha1.Bastion) { b.Spec.SeedName = ptr.To("b") }), refuse, refuse, refuse, allow, `on seed "a"`},
		{"after its shoot", bastions, "", bastionOf("to-b", "a"), bastionOf("to-b", "b"), allow, allow, refuse, allow, noReason},
		{"foreign shoot", bastions, "", ownBast, changed(ownBast, func(b *operationsv1alpha1.Bastion) { b.Spec.ShootRef.Name = "on-b" }),
			refuse, refuse, refuse, allow, "must stay with its shoot"},
		{"other key", bastions, "", ownBast, changed(ownBast, func(b *operationsv1alpha1.Bastion) { b.Spec.SSHPublicKey = "x" }),
			refuse, refuse, refuse, allow, "user's key"},
		{"other creator", bastions, "", ownBast, changed(ownBast, annotate[*operationsv1alpha1.Bastion](constants.GardenCreatedBy, "bob")),
			refuse, refuse, refuse, allow, constants.GardenCreatedBy},
	})
}

func TestUpdateSeeds(t *testing.T) {
	var (
		install = named("", "i", func(i *corev1beta1.ControllerInstallation) {
			i.Spec.SeedRef, i.Spec.DeploymentRef = &corev1.ObjectReference{Name: "a"}, &corev1.ObjectReference{Name: "d"}
		})
		child = managedSeed("child", "on-a")
		glet  = gardenletWith("backup-a").(*seedmanagementv1alpha1.Gardenlet)
	)
	checkUpdates(t, []updateCase{
		{"finalizer", controllerInstallations, "", install, changed(install, withFinalizer[*corev1beta1.ControllerInstallation]),
			allow, allow, refuse, allow, noReason},
		{"move", controllerInstallations, "", install, changed(install,
			func(i *corev1beta1.ControllerInstallation) { i.Spec.SeedRef.Name = "b" }), refuse, refuse, refuse, allow, "specification"},
		{"other deployment", controllerInstallations, "", install, changed(install,
			func(i *corev1beta1.ControllerInstallation) { i.Spec.DeploymentRef.Name = "e" }), refuse, refuse, refuse, allow, "specification"},
		{"other registration", controllerInstallations, "", install, changed(install,
			func(i *corev1beta1.ControllerInstallation) { i.Spec.RegistrationRef.Name = "e" }), refuse, refuse, refuse, allow, "specification"},

		{"status", gardenlets, "status", glet, changed(glet, func(g *seedmanagementv1alpha1.Gardenlet) { g.Status.ObservedGeneration = 1 }),
			allow, refuse, refuse, allow, noReason},
		{"foreign credentials", gardenlets, "", glet, gardenletWith("backup-b"), refuse, refuse, refuse, allow, "backup-b"},
		{"foreign credentials by another spelling", gardenlets, "", glet, changed(glet, func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.Config.Raw = []byte(
				`{"SeedConfig":{"spec":{"backup":{"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"backup-b"}}}}}`)
		}), refuse, refuse, refuse, allow, "backup-b"},
		{"pull secret", gardenlets, "", glet, changed(glet, func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.Deployment.Helm.OCIRepository.PullSecretRef = &corev1.LocalObjectReference{Name: "backup-b"}
		}), refuse, refuse, refuse, allow, "backup-b"},
		{"asks for credentials", gardenlets, "", glet, changed(glet, annotate[*seedmanagementv1alpha1.Gardenlet](
			constants.GardenerOperation, "renew-kubeconfig")), refuse, refuse, refuse, allow, "renew-kubeconfig"},
		{"asks for credentials through the status", gardenlets, "status", glet, changed(glet, annotate[*seedmanagementv1alpha1.Gardenlet](
			constants.GardenerOperation, "renew-kubeconfig")), refuse, refuse, refuse, allow, "renew-kubeconfig"},
		{"done with the operation", gardenlets, "", changed(glet, annotate[*seedmanagementv1alpha1.Gardenlet](
			constants.GardenerOperation, "renew-kubeconfig")), glet, allow, refuse, refuse, allow, noReason},

		{"finalizer", managedSeeds, "", child, changed(child, withFinalizer[*seedmanagementv1alpha1.ManagedSeed]), allow,
			allow, refuse, allow, noReason},
		{"the same written differently", managedSeeds, "", child, changed(child, func(m *seedmanagementv1alpha1.ManagedSeed) {
			m.Spec.Gardenlet.Config.Raw = []byte(`{"seedConfig": {"spec": {"backup": {"credentialsRef": {"name": ` +
				`"backup-child", "namespace":"garden", "kind": "Secret", "apiVersion": "v1"}}}}, "kind": "GardenletConfiguration"}`)
		}), allow, allow, refuse, allow, noReason},
		{"foreign credentials", managedSeeds, "", child, changed(child, func(m *seedmanagementv1alpha1.
			ManagedSeed) {
			m.Spec.Gardenlet.Config = template("backup-b")
		}), refuse, refuse, refuse, allow, "specification"},
		{"foreign credentials in a field that is there twice", managedSeeds, "",
			changed(child, configured(`{"seedConfig":{"spec":{}}}`)), changed(child, configured(
				`{"seedConfig":{"spec":{"backup":{"credentialsRef":{"kind":"Secret","namespace":"garden","name":"backup-b"}}}},`+
					`"seedConfig":{"spec":{}}}`)), refuse, refuse, refuse, allow, "specification"},
		{"move", managedSeeds, "", child, changed(child, func(m *seedmanagementv1alpha1.ManagedSeed) { m.Spec.Shoot.Name = "on-b" }),
			refuse, refuse, refuse, allow, "specification"},
		{"asks for credentials", managedSeeds, "status", child, changed(child, annotate[*seedmanagementv1alpha1.ManagedSeed](
			constants.GardenerOperation, "renew-kubeconfig")), refuse, refuse, refuse, allow, "renew-kubeconfig"},

		{"status", seeds, "status", seed("a"), changed(seed("a"), func(s *corev1beta1.Seed) { s.Status.ObservedGeneration = 1 }),
			allow, refuse, refuse, allow, noReason},
		{"a child's status", seeds, "status", seed("grown"), changed(seed("grown"),
			func(s *corev1beta1.Seed) { s.Status.ClientCertificateExpirationTimestamp = nil }), refuse, refuse, refuse, allow, belongs},
		{"a child", seeds, "", seed("grown"), changed(seed("grown"), withFinalizer[*corev1beta1.Seed]), refuse, refuse, refuse, allow, belongs},
		{"foreign backup credentials", seeds, "", seed("a"), changed(seed("a"),
			func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "backup-b" }), refuse, refuse, refuse, allow, "backup-b"},
		{"backup credentials that do not exist", seeds, "", seed("a"), changed(seed("a"),
			func(s *corev1beta1.Seed) { s.Spec.Backup.CredentialsRef.Name = "new" }), refuse, refuse, refuse, allow, "garden/new"},
		{"foreign DNS credentials", seeds, "", seed("a"),
			changed(seed("a"), func(s *corev1beta1.Seed) { dnsFrom("garden", "backup-b")(&s.Spec) }), refuse, refuse, refuse, allow, "backup-b"},
		{"known DNS credentials", seeds, "", seed("a"), changed(seed("a"), func(s *corev1beta1.Seed) { dnsFrom("garden", "dns")(&s.Spec) }),
			allow, refuse, refuse, allow, noReason},
		{"foreign resource", seeds, "", seed("a"), changed(seed("a"), func(s *corev1beta1.Seed) {
			s.Spec.Resources = []corev1beta1.NamedResourceReference{
				{Name: "x", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "backup-b"}}}
		}), refuse, refuse, refuse, allow, "backup-b"},
	})
}

func TestUpdateShoots(t *testing.T) {
	shoot := shootOn("garden-dev", "on-a", "a")
	checkUpdates(t, []updateCase{
		{"finalizer", shoots, "", shoot, changed(shoot, withFinalizer[*corev1beta1.Shoot]), allow, refuse, refuse, allow, noReason},
		{"networks", shoots, "", shoot,
			changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.Networking = &corev1beta1.Networking{Nodes: ptr.To("10.0.0.0/16")} }),
			allow, refuse, refuse, allow, noReason},
		{"move", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") }), refuse,
			refuse, refuse, allow, "another seed"},
		{"take from its seed", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }),
			refuse, refuse, refuse, allow, "another seed"},
		{"own seed reported", shoots, "status", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("a") }),
			allow, refuse, refuse, allow, noReason},
		{"foreign seed reported", shoots, "status", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("b") }),
			refuse, refuse, refuse, allow, "status.seedName"},
		{"resource", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) {
			s.Spec.Resources = []corev1beta1.NamedResourceReference{
				{Name: "x", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "on-b.ssh-keypair"}}}
		}), refuse, refuse, refuse, allow, "Secret on-b.ssh-keypair"},
		{"DNS credentials", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) {
			s.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{
				APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: "x"}}}}
		}), refuse, refuse, refuse, allow, "WorkloadIdentity x"},
		{"DNS credentials, deprecated", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) {
			s.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{SecretName: ptr.To("on-b.ssh-keypair")}}}
		}), refuse, refuse, refuse, allow, "Secret on-b.ssh-keypair"},
		{"binding", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.CredentialsBindingName = ptr.To("other") }),
			refuse, refuse, refuse, allow, "CredentialsBinding other"},
		{"old binding", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.SecretBindingName = ptr.To("other") }),
			refuse, refuse, refuse, allow, "SecretBinding other"},
		{"cloud profile", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.CloudProfile.Name = "other" }),
			refuse, refuse, refuse, allow, "CloudProfile other"},
		{"cloud profile, deprecated field", shoots, "", shoot,
			changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.CloudProfileName = ptr.To("local") }), allow, refuse, refuse, allow, noReason},
		{"exposure class", shoots, "", shoot, changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.ExposureClassName = ptr.To("x") }),
			refuse, refuse, refuse, allow, "ExposureClass x"},
		{"audit policy", shoots, "", shoot, changed(shoot, server(func(c *corev1beta1.KubeAPIServerConfig) {
			c.AuditConfig = &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "x"}}}
		})), refuse, refuse, refuse, allow, "ConfigMap x"},
		{"structured authentication", shoots, "", shoot, changed(shoot, server(func(c *corev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthentication = &corev1beta1.StructuredAuthentication{ConfigMapName: "x"}
		})), refuse, refuse, refuse, allow, "ConfigMap x"},
		{"structured authorization", shoots, "", shoot, changed(shoot, server(func(c *corev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthorization = &corev1beta1.StructuredAuthorization{
				Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{SecretName: "on-b.ssh-keypair"}}}
		})), refuse, refuse, refuse, allow, "Secret on-b.ssh-keypair"},
		{"admission plugin", shoots, "", shoot, changed(shoot, server(func(c *corev1beta1.KubeAPIServerConfig) {
			c.AdmissionPlugins = []corev1beta1.AdmissionPlugin{{KubeconfigSecretName: ptr.To("on-b.ssh-keypair")}}
		})), refuse, refuse, refuse, allow, "Secret on-b.ssh-keypair"},
		{"one reference less", shoots, "", changed(shoot, func(s *corev1beta1.Shoot) { s.Spec.ExposureClassName = ptr.To("x") }),
			shoot, allow, refuse, refuse, allow, noReason},
	})
}

func TestUpdateSecrets(t *testing.T) {
	var (
		shared = secret("garden-dev", "credentials", func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("x")} }).(*corev1.Secret)
		keys   = secret("garden-dev", "on-a.ssh-keypair").(*corev1.Secret)
		issued = secret("gardener-system-shoot-issuer", "dev--uid-on-a", issuer("garden-dev", "on-a")).(*corev1.Secret)
		boot   = token(forManagedSeed + "garden/child.").(*corev1.Secret)
		saTok  = secret("garden", "t", typed(corev1.SecretTypeServiceAccountToken)).(*corev1.Secret)
		policy = configMap("garden-dev", "policy").(*corev1.ConfigMap)
		caCM   = configMap("garden-dev", "on-a.ca-cluster").(*corev1.ConfigMap)
		client = named[corev1beta1.InternalSecret]("garden-dev", "on-a.ca-client")
		intern = named[corev1beta1.InternalSecret]("garden-dev", "x")
	)
	checkUpdates(t, []updateCase{
		{"finalizer", secrets, "", shared, changed(shared, withFinalizer[*corev1.Secret]), allow, allow, refuse, allow, noReason},
		{"content of a project's", secrets, "", shared, changed(shared, data("key", "y")), refuse, refuse, refuse, allow, belongs},
		{"making a project's immutable", secrets, "", shared, changed(shared, func(s *corev1.Secret) { s.Immutable = ptr.To(true) }),
			refuse, refuse, refuse, allow, belongs},
		{"content of a shoot's", secrets, "", keys, changed(keys, func(s *corev1.Secret) { s.Data = map[string][]byte{"id_rsa": nil} }),
			allow, refuse, refuse, allow, noReason},
		{"issuer for another shoot", secrets, "", issued, changed(issued, issuer("garden-dev", "on-b")), refuse, refuse, refuse, allow, belongs},
		{"issuer's keys", secrets, "", issued, changed(issued, func(s *corev1.Secret) { s.Data = map[string][]byte{"jwks": nil} }),
			allow, refuse, refuse, allow, noReason},
		{"bootstrap token again", secrets, "", boot, changed(boot, data("expiration", "2026-03-02T00:00:00Z")), allow, refuse,
			refuse, allow, noReason},
		{"bootstrap token with groups", secrets, "", boot, changed(boot, data("auth-extra-groups", "system:bootstrappers:admins")),
			refuse, refuse, refuse, allow, "auth-extra-groups"},
		{"bootstrap token for another", secrets, "", boot, changed(boot, data("description", forManagedSeed+"garden/of-b.")),
			refuse, refuse, refuse, allow, belongs},
		{"another ServiceAccount's token", secrets, "", saTok, changed(saTok, annotate[*corev1.Secret](corev1.ServiceAccountNameKey, "admin")),
			refuse, refuse, refuse, allow, "service-account-token"},

		{"label that names a Secret for the seed", secrets, "", shared, changed(shared, labelled[*corev1.Secret]("a")), refuse, refuse, refuse,
			allow, "name.seed.gardener.cloud/a"},
		{"label that names a ConfigMap for the seed", configMaps, "", policy, changed(policy, labelled[*corev1.ConfigMap]("a")), refuse, refuse,
			refuse, allow, "name.seed.gardener.cloud/a"},
		{"owner", secrets, "", shared, ownedBy("Secret", "gone", "gone", shared.DeepCopy()), refuse, refuse, refuse, allow, belongs},
		{"owner", configMaps, "", policy, ownedBy("Secret", "gone", "gone", policy.DeepCopy()), refuse, refuse, refuse, allow, belongs},
		{"label", configMaps, "", policy, changed(policy, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} }),
			allow, allow, refuse, allow, noReason},
		{"content of a project's", configMaps, "", policy,
			changed(policy, func(c *corev1.ConfigMap) { c.Data = map[string]string{"policy": ""} }), refuse, refuse, refuse, allow, belongs},
		{"content of a shoot's", configMaps, "", caCM, changed(caCM, func(c *corev1.ConfigMap) { c.Data = map[string]string{"ca.crt": ""} }),
			allow, refuse, refuse, allow, noReason},

		{"content of a shoot's", internalSecrets, "", client, changed(client,
			func(s *corev1beta1.InternalSecret) { s.Data = map[string][]byte{"ca.crt": nil} }), allow, refuse, refuse, allow, noReason},
		{"content of another", internalSecrets, "", intern,
			changed(intern, func(s *corev1beta1.InternalSecret) { s.Data = map[string][]byte{"x": nil} }), refuse, refuse, refuse, allow, belongs},
		{"finalizer", internalSecrets, "", intern, changed(intern, withFinalizer[*corev1beta1.InternalSecret]), allow, allow,
			refuse, allow, noReason},
	})
}

func TestUpdateAccounts(t *testing.T) {
	var (
		acct   = account("garden", "gardenlet-bootstrap-child").(*corev1.ServiceAccount)
		inSeed = account("seed-a", "x").(*corev1.ServiceAccount)
		crb    = binding("garden:gardenlet-bootstrap-child").(*rbacv1.ClusterRoleBinding)
	)
	checkUpdates(t, []updateCase{
		{"label", serviceAccounts, "", acct, changed(acct, withFinalizer[*corev1.ServiceAccount]), allow, allow, refuse, allow, noReason},
		{"secret", serviceAccounts, "", acct, changed(acct, func(
			a *corev1.ServiceAccount) {
			a.Secrets = []corev1.ObjectReference{{Name: "backup-b"}}
		}), refuse, refuse, refuse, allow, "backup-b"},
		{"pull secret", serviceAccounts, "", acct, changed(acct, func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "backup-b"}}
		}), refuse, refuse, refuse, allow, "backup-b"},
		{"secret, in the seed's namespace", serviceAccounts, "", inSeed, changed(inSeed,
			func(a *corev1.ServiceAccount) { a.Secrets = []corev1.ObjectReference{{Name: "x"}} }), allow, refuse, refuse, allow, noReason},

		{"label", clusterRoleBindings, "", crb, changed(crb, withFinalizer[*rbacv1.ClusterRoleBinding]), allow, allow, refuse, allow, noReason},
		{"another subject bound", clusterRoleBindings, "", crb, changed(crb, func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "x" }),
			refuse, refuse, refuse, allow, "ServiceAccount garden/gardenlet-bootstrap-child only"},
		{"bound as it should be", clusterRoleBindings, "", changed(crb, func(b *rbacv1.ClusterRoleBinding) { b.Subjects = nil }),
			crb, allow, refuse, refuse, allow, noReason},
		{"another binding", clusterRoleBindings, "", named[rbacv1.ClusterRoleBinding]("", "x"),
			named("", "x", func(b *rbacv1.ClusterRoleBinding) { b.Subjects = crb.Subjects }), refuse, refuse, refuse, allow, belongs},
	})
}

func TestUpdateWorkloadIdentity(t *testing.T) {
	identity := named("garden", "wi", func(i *securityv1alpha1.WorkloadIdentity) {
		i.Spec.Audiences, i.Labels, i.Finalizers = []string{"x"}, map[string]string{"x": "y"}, []string{"other"}
	})
	with := func(change func(*securityv1alpha1.WorkloadIdentity)) object { return changed(identity, change) }
	checkUpdates(t, []updateCase{
		{"finalizer", workloadIdentities, "", identity, changed(identity, withFinalizer[*securityv1alpha1.WorkloadIdentity]),
			allow, allow, refuse, allow, noReason},
		{"finalizer of others", workloadIdentities, "", identity, with(func(i *securityv1alpha1.WorkloadIdentity) { i.Finalizers = nil }),
			refuse, refuse, refuse, allow, "finalizer other"},
		{"audience", workloadIdentities, "", identity, with(func(i *securityv1alpha1.WorkloadIdentity) { i.Spec.Audiences[0] = "z" }),
			refuse, refuse, refuse, allow, "only finalizers"},
		{"label", workloadIdentities, "", identity, with(func(i *securityv1alpha1.WorkloadIdentity) { i.Labels["x"] = "z" }),
			refuse, refuse, refuse, allow, "only finalizers"},
	})
}

func withFinalizer[P object](obj P) { obj.SetFinalizers(append(obj.GetFinalizers(), "gardener")) }

func labelled[P object](seed string) func(P) {
	return func(obj P) { obj.SetLabels(map[string]string{constants.LabelPrefixSeedName + seed: "true"}) }
}

func annotate[P object](key, value string) func(P) {
	return func(obj P) { obj.SetAnnotations(map[string]string{key: value}) }
}

func configured(config string) func(*seedmanagementv1alpha1.ManagedSeed) {
	return func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Spec.Gardenlet.Config = runtime.RawExtension{Raw: []byte(config)}
	}
}

func generated(namespace, name string) object {
	return changed(bucketOf("a"), func(b *corev1beta1.BackupBucket) {
		b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: namespace, Name: name}
	})
}

func bastionOf(shoot, seed string) *operationsv1alpha1.Bastion {
	return named("garden-dev", "b", func(b *operationsv1alpha1.Bastion) {
		b.Annotations = map[string]string{constants.GardenCreatedBy: "alice"}
		b.Spec = operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: shoot}, SeedName: ptr.To(seed),
			SSHPublicKey: "ssh-ed25519 AAAA"}
	})
}

func server(change func(*corev1beta1.KubeAPIServerConfig)) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
		change(s.Spec.Kubernetes.KubeAPIServer)
	}
}

// TestDelete is the table of DELETE; its columns are those of creationCase.
func TestDelete(t *testing.T) {
	belongs := `object does not belong to seed "a"`
	for _, test := range []struct {
		name                            string
		resource                        resourceRule
		gardenlet, other, extension, no int32
		why                             string
	}{
		// BackupBucket: its name is its own Seed's UID
		{"uid-seed-a", backupBuckets, allow, refuse, refuse, allow, ""},
		{"uid-seed-b", backupBuckets, refuse, allow, refuse, allow, belongs},
		{"new", backupBuckets, refuse, refuse, refuse, allow, belongs},
		{"", backupBuckets, refuse, refuse, refuse, allow, "one by one"},
		// Seed: its own; or that of a ManagedSeed of its own that already has a deletion timestamp
		{"a", seeds, allow, refuse, refuse, allow, ""},
		{"b", seeds, refuse, allow, refuse, allow, belongs},
		{"leaving", seeds, allow, refuse, refuse, allow, ""},
		{"grown", seeds, refuse, refuse, refuse, allow, "only while its ManagedSeed"},
		{"of-b-leaving", seeds, refuse, allow, refuse, allow, belongs},
		{"none", seeds, refuse, refuse, refuse, allow, belongs},
		{"", seeds, refuse, refuse, refuse, allow, "one by one"},
	} {
		t.Run(test.resource.resource.Resource+"/"+test.name, func(t *testing.T) {
			checkColumns(t, landscape(), test.why, map[*authenticationv1.UserInfo]int32{
				&gardenletA: test.gardenlet, &gardenletB: test.other, &extensionA: test.extension, &neither: test.no,
			}, func(user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
				return requestFor(test.resource, admissionv1.Delete, "", user, "", test.name)
			})
		})
	}
	t.Run("BackupBucket without the Seed", func(t *testing.T) {
		w := landscape()
		delete(w.objects[seeds.resource], keyOf(seed("a")))
		if got := verdict(t, w.handle(requestFor(backupBuckets, admissionv1.Delete, "", gardenletA, "", "uid-seed-a"))); got != refuse {
			t.Errorf("got %d", got)
		}
	})
	t.Run("Seed of a ManagedSeed without shoot", func(t *testing.T) {
		w := landscape().put(managedSeeds.resource, managedSeed("leaving", "", func(m *seedmanagementv1alpha1.ManagedSeed) {
			m.Spec.Shoot, m.DeletionTimestamp = nil, &metav1.Time{Time: now}
		}))
		if got := verdict(t, w.handle(requestFor(seeds, admissionv1.Delete, "", gardenletA, "", "leaving"))); got != refuse {
			t.Errorf("got %d", got)
		}
	})
}

// TestFinalizersOfOthers sets and removes finalizers of other components.
func TestFinalizersOfOthers(t *testing.T) {
	w := landscape()
	bucket := bucketOf("a")
	bucket.SetFinalizers([]string{"gardener", "example.org/kept"})
	for name, test := range map[string]struct {
		finalizers []string
		want       int32
	}{
		"another one":     {[]string{"gardener", "example.org/kept", "example.org/x"}, refuse},
		"without other's": {[]string{"gardener"}, refuse},
		"without all":     {nil, refuse},
		"without its own": {[]string{"example.org/kept"}, allow},
		"in other order":  {[]string{"example.org/kept", "gardener"}, allow},
		"more of its own": {[]string{"gardener", "example.org/kept", "core.gardener.cloud/backupbucket", "gardener.cloud/gardener"}, allow},
	} {
		for _, subresource := range []string{"", "status"} {
			updated := changed(bucket, func(b *corev1beta1.BackupBucket) { b.SetFinalizers(test.finalizers) })
			if response := w.handle(update(backupBuckets, subresource, gardenletA, bucket, updated)); verdict(t, response) != test.want {
				t.Errorf("%s %s: %d, want %d: %s", name, subresource, verdict(t, response), test.want, message(response))
			}
		}
	}
}
