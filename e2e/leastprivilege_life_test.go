package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// askAsGardenlet sends requests that a gardenlet is refused, and for which the admission controller reads objects.
func (l *life) askAsGardenlet(t *testing.T) {
	t.Helper()
	admin := filepath.Join(l.dir, "kubeconfig")
	for _, object := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: garden}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: garden-lp}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: garden-lp}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, metadata: {name: x, namespace: garden-lp}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: ShootState, metadata: {name: homeless, namespace: garden-lp}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: x}, spec: {seedName: other, provider: " +
			"{type: local, region: local}, credentialsRef: {apiVersion: v1, kind: Secret, name: x, namespace: garden}}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: x--1, namespace: garden-lp}, spec: " +
			"{seedName: other, bucketName: BUCKET}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: source-x--1, namespace: garden-lp}, " +
			"spec: {seedName: local, bucketName: BUCKET}}",
		"{apiVersion: operations.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: x, namespace: garden-lp}, spec: " +
			"{shootRef: {name: homeless}, sshPublicKey: x, ingress: [{ipBlock: {cidr: 10.0.0.0/8}}]}}",
		"{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet, metadata: {name: x, namespace: garden}, " +
			"spec: {deployment: {helm: {ociRepository: {ref: x}}}}}",
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x, namespace: gardener-system-seed-lease}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: " +
			"{name: 'gardener.cloud:system:seed-bootstrapper:garden:x'}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " +
			"ClusterRole, name: lp-extension}}",
	} {
		command(t, l.resolve(t, object), kubectlBinary, "--kubeconfig", admin, "create", "--validate=false", "-f", "-",
			"--as=gardener.cloud:system:seed:local", "--as-group=gardener.cloud:system:seeds")
	}
	// The admission controller reads objects that are not in the graph before they are deleted.
	for _, object := range []string{"secret/x", "configmap/x", "internalsecret/x", "shootstate/x", "backupentry/x"} {
		command(t, "", kubectlBinary, "--kubeconfig", admin, "delete", object, "-n", "garden",
			"--as=gardener.cloud:system:seed:local", "--as-group=gardener.cloud:system:seeds")
	}
	gardenlet := rest.CopyConfig(l.admin)
	gardenlet.Impersonate = rest.ImpersonationConfig{UserName: "gardener.cloud:system:seed:local",
		Groups: []string{"gardener.cloud:system:seeds"}}
	client, err := kubernetes.NewForConfig(gardenlet)
	must(t, err)
	request := seedRequest(t, "other")
	request.GenerateName, request.Name = "", "lp-other"
	_, err = client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request, created)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a gardenlet asked for the certificate of another seed: %v, not refused", err)
	}
}

// extend installs and removes an extension, and gives a ServiceAccount the rights that extensions get.
func (l *life) extend(t *testing.T) {
	t.Helper()
	l.register(t, "lpx", "Always")
	l.expect(t, "lpx")
	_, err := l.kube.CoreV1().ServiceAccounts("seed-local").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "lp", Labels: map[string]string{"controllerregistration.core.gardener.cloud/name": "lp"},
	}}, created)
	must(t, err)
	l.annotate(t, "clusterrole/lp-extension", "again", "1")
	l.await(t, "clusterrolebinding/lp-extension", "{.subjects[*].name}", "lp")
	l.remove(t, "controllerregistration/lpx")
	l.expect(t)
	l.remove(t, "controllerdeployment/lpx")
}

// changeSecrets changes a Secret that is copied to seeds, and the references of the Seed.
func (l *life) changeSecrets(t *testing.T) {
	t.Helper()
	l.await(t, "secret/internal-domain -n seed-local", "{.metadata.name}", "internal-domain")
	l.mergeInto(t, "secret/internal-domain -n garden", `{"stringData":{"a":"c"}}`)
	l.await(t, "secret/internal-domain -n seed-local", "{.data.a}", "Yw==")
	l.remove(t, "secret/internal-domain -n garden")
	l.await(t, "secret/internal-domain -n seed-local", "", "")
	l.mergeInto(t, "seed/local",
		`{"spec":{"resources":[{"name":"config","resourceRef":{"apiVersion":"v1","kind":"ConfigMap","name":"seed-config"}}]}}`)
	l.await(t, "configmap/seed-config -n garden", "{.metadata.finalizers}", "gardener.cloud/reference-protection")
	l.mergeInto(t, "seed/local", `{"spec":{"resources":null}}`)
	l.await(t, "seed/local", "{.metadata.finalizers}", "gardener")
}

func (l *life) useProject(t *testing.T) {
	t.Helper()
	l.await(t, "shoot/lp", "{.spec.seedName}", "local")
	l.await(t, "shoot/homeless", "{.status.lastOperation.description}", "seed")
	l.changeInSeed(t)
	l.changeMembers(t)
	l.kubectl(t, l.testdata(t, "leastprivilege-set.yaml"), "apply", "-f", "-")
	l.await(t, "managedseedset/lp -n garden", "{.metadata.finalizers}", "gardener")
	l.remove(t, "managedseedset/lp -n garden")
	l.await(t, "managedseedset/lp -n garden", "", "")
}

// changeInSeed changes a Shoot, and waits until the Cluster in the seed has the change.
func (l *life) changeInSeed(t *testing.T) {
	t.Helper()
	tells := func(what string) {
		eventually(t, waitTimeout, func(ctx context.Context) error {
			clusters, err := l.seeds["local"].CoreV1().RESTClient().Get().AbsPath("/apis/extensions.gardener.cloud/v1alpha1/clusters").DoRaw(ctx)
			if err != nil || !strings.Contains(string(clusters), what) {
				return fmt.Errorf("no Cluster tells of %s: %v", what, err)
			}
			return nil
		})
	}
	tells(`"purpose":"testing"`)
	l.mergeInto(t, "shoot/lp", `{"spec":{"purpose":"evaluation"}}`)
	tells(`"purpose":"evaluation"`)
}

// changeMembers adds, changes and removes roles of members, and replaces a binding that points to another role.
func (l *life) changeMembers(t *testing.T) {
	t.Helper()
	const binding = "gardener.cloud:system:project:lp"
	must(t, l.kube.RbacV1().ClusterRoleBindings().Delete(t.Context(), binding, metav1.DeleteOptions{}))
	_, err := l.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: binding}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, created)
	must(t, err)
	change := func(role string) {
		l.mergeInto(t, "project/lp", fmt.Sprintf(`{"spec":{"members":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User",`+
			`"name":"other@example.com","role":%q,"roles":["viewer"]}]}}`, role))
	}
	const own = "clusterrole/" + binding
	l.mergeInto(t, own, `{"rules":[]}`)
	change("extension:second")
	l.await(t, own, "{.rules}", "lp")
	l.await(t, "clusterrolebinding/"+binding, "{.roleRef.name}", binding)
	change("admin")
	l.await(t, "clusterrole/gardener.cloud:extension:project:lp:second", "", "")
}

// removeProject deletes what is in the project, and the project.
func (l *life) removeProject(t *testing.T) {
	t.Helper()
	for _, shoot := range []string{"shoot/lp", "shoot/homeless"} {
		l.remove(t, shoot)
	}
	for _, shoot := range []string{"shoot/lp", "shoot/homeless"} {
		l.await(t, shoot, "", "")
	}
	for _, what := range []string{
		"backupentry/lp-control-plane--1", "secretbinding/lp", "credentialsbinding/lp", "credentialsbinding/internal",
		"credentialsbinding/workload", "quota/lp", "namespacedcloudprofile/lp",
	} {
		l.remove(t, what)
	}
	l.await(t, "backupentry/lp-control-plane--1", "", "")
	l.remove(t, "project/lp")
	eventuallyGone(t, l.kube, "garden-lp")
}

// removeSeed renews the certificate of the seed's gardenlet, and deletes the seed.
func (l *life) removeSeed(t *testing.T) {
	t.Helper()
	expires := func(ctx context.Context) string {
		seed, err := l.core("seeds", "").Get(ctx, "local", metav1.GetOptions{})
		must(t, err)
		at, _, _ := unstructured.NestedString(seed.Object, "status", "clientCertificateExpirationTimestamp")
		return at
	}
	before := expires(t.Context())
	l.annotate(t, "seed/local", "gardener.cloud/operation", "renew-kubeconfig")
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if now := expires(ctx); now == before {
			return fmt.Errorf("the certificate still expires %s", now)
		}
		return nil
	})
	l.remove(t, "seed/local")
	l.await(t, "seed/local", "", "")
}
