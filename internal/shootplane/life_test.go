package shootplane_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const id = "shoot--test--one"

// TestLife takes a control plane through all states in the life of a shoot.
func TestLife(t *testing.T) {
	w := newWorld(t)
	secret := authorities(t)
	begin := time.Now()
	w.create(t, id, secret)
	w.waitFor(t, id, spec.APIServer, 1)
	t.Logf("the API server is there after %s", time.Since(begin).Round(time.Millisecond))
	w.waitFor(t, id, spec.ControllerManager, 1)
	client, endpoint := w.client(t, id, secret)
	checkCluster(t, client, secret)
	keep(t, client)
	checkCollected(t, client)

	w.scale(t, id, 0)
	w.waitFor(t, id, spec.APIServer, 0)
	w.waitFor(t, id, spec.ControllerManager, 0)
	checkNotListening(t, endpoint)
	if _, still := w.client(t, id, secret); still != endpoint {
		t.Errorf("asleep, the Service tells %s in place of %s", still, endpoint)
	}

	w.scale(t, id, 1)
	w.waitFor(t, id, spec.APIServer, 1)
	checkKept(t, w, secret, endpoint)

	secret = w.rotate(t, secret)
	w.waitFor(t, id, spec.APIServer, 1)
	w.waitFor(t, id, spec.ControllerManager, 1)
	checkKept(t, w, secret, endpoint)

	if err := os.MkdirAll(filepath.Join(w.dir, "volumes", "shoots", id), 0o700); err != nil {
		t.Fatal(err)
	}
	w.delete(t, "")
	checkNotListening(t, endpoint)
	checkFolders(t, w, map[string]bool{"data": true, "volumes": true, "pki": false})
	w.create(t, id, secret)
	w.waitFor(t, id, spec.APIServer, 1)
	checkKept(t, w, secret, endpoint)

	w.delete(t, "true")
	checkNotListening(t, endpoint)
	checkFolders(t, w, map[string]bool{"data": false, "volumes": false, "pki": false})
	if open := testutil.OpenFiles(t, id); len(open) > 0 {
		t.Errorf("files of a deleted control plane are open: %v", open)
	}
}

// rotate replaces the authority of the serving certificate.
func (w *world) rotate(t *testing.T, secret map[string][]byte) map[string][]byte {
	t.Helper()
	other := authorities(t)
	secret[spec.KeyCA], secret[spec.KeyCAKey] = other[spec.KeyCA], other[spec.KeyCAKey]
	secret[spec.KeyCABundle] = other[spec.KeyCA]
	secrets := w.seed.CoreV1().Secrets(id)
	current, err := secrets.Get(t.Context(), spec.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current.Data = secret
	if _, err := secrets.Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.change(t, id, spec.APIServer, func(d *appsv1.Deployment) { d.Spec.Template.Annotations[spec.AnnotationChecksum] = "2" })
	return secret
}

// delete deletes the Deployments and waits until they are gone.
func (w *world) delete(t *testing.T, confirmed string) {
	t.Helper()
	w.change(t, id, spec.APIServer, func(d *appsv1.Deployment) { d.Annotations[spec.AnnotationConfirmDeletion] = confirmed })
	deployments := w.seed.AppsV1().Deployments(id)
	for _, name := range []string{spec.ControllerManager, spec.APIServer} {
		if err := deployments.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testutil.EventuallyTrue(t, "the Deployment is deleted", func() bool {
		_, err := deployments.Get(t.Context(), spec.APIServer, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	// A late event of the Deployment, from the cache, may remove the control plane once more.
	testutil.EventuallyTrue(t, "the host does not have the control plane any more", func() bool {
		_, there := w.host.Status(id)
		return !there
	})
}

// checkCluster checks the version, the networks and the effect of the controllers.
func checkCluster(t *testing.T, client kubernetes.Interface, secret map[string][]byte) {
	t.Helper()
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.34.4" || version.Minor != "34" {
		t.Errorf("it says that it is %s, minor version %s", version, version.Minor)
	}
	testutil.EventuallyTrue(t, "the root certificate is published", func() bool {
		cm, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil && cm.Data["ca.crt"] == string(secret[spec.KeyCABundle])
	})
	testutil.EventuallyTrue(t, "the Service kubernetes has its address", func() bool {
		service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		return err == nil && service.Spec.ClusterIP == "100.64.0.1"
	})
}

// checkCollected checks that the garbage collector deletes an object with its owner, also if its resource had no
// objects before.
func checkCollected(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	owner, err := client.CoreV1().ConfigMaps("default").Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	budgets := client.PolicyV1().PodDisruptionBudgets("default")
	_, err = budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Name: "owned", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().ConfigMaps("default").Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "the owned object is deleted", func() bool {
		_, err := budgets.Get(t.Context(), "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func keep(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// checkKept checks that the cluster has the same address and the same data as before.
func checkKept(t *testing.T, w *world, secret map[string][]byte, endpoint string) {
	t.Helper()
	client, now := w.client(t, id, secret)
	if now != endpoint {
		t.Errorf("the API server was at %s and is at %s", endpoint, now)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func checkNotListening(t *testing.T, endpoint string) {
	t.Helper()
	listener, err := net.Listen("tcp", endpoint)
	if err != nil {
		t.Errorf("the port is in use: %v", err)
		return
	}
	_ = listener.Close()
}

func checkFolders(t *testing.T, w *world, want map[string]bool) {
	t.Helper()
	for folder, there := range want {
		_, err := os.Stat(filepath.Join(w.dir, folder, "shoots", id))
		if (err == nil) != there {
			t.Errorf("the folder %s is there: %t (%v)", folder, err == nil, err)
		}
	}
}

// TestTellsWhatIsWrong checks that the conditions report problems, and that the control plane starts once they are
// solved.
func TestTellsWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	good, bad := authorities(t), authorities(t)
	delete(bad, spec.KeyServiceAccountKey)
	w.create(t, id, bad)
	w.waitCondition(t, "lacks "+spec.KeyServiceAccountKey)
	bad[spec.KeyServiceAccountKey] = good[spec.KeyCA]
	w.putSecret(t, bad)
	w.waitCondition(t, "the key for service account tokens is no private key")
	w.putSecret(t, good)
	w.change(t, id, spec.APIServer, func(d *appsv1.Deployment) { d.Spec.Template.Annotations[spec.AnnotationChecksum] = "2" })
	w.waitFor(t, id, spec.APIServer, 1)

	if _, err := w.host.Apply(t.Context(), id, "other", shootplane.DesiredState{APIServer: true}, nil); err == nil {
		t.Error("it runs twice")
	}
}

func (w *world) putSecret(t *testing.T, data map[string][]byte) {
	t.Helper()
	secret, err := w.seed.CoreV1().Secrets(id).Get(t.Context(), spec.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = data
	if _, err := w.seed.CoreV1().Secrets(id).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) waitCondition(t *testing.T, message string) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		d, err := w.seed.AppsV1().Deployments(id).Get(ctx, spec.APIServer, metav1.GetOptions{})
		if err != nil {
			return err
		}
		told := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, message)
		})
		if !told {
			return fmt.Errorf("no condition says %q: %s", message, d.Status.String())
		}
		return nil
	})
}
