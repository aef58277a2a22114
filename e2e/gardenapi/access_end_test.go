package gardenapi

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// TestAccessEndsWithThePath watches an InternalSecret of a shoot that moves to another seed: the watch ends, and does not
// tell what is written there afterwards.
func TestAccessEndsWithThePath(t *testing.T) {
	w := newAccessWorld(t, "we", suite.DataDir(), config)
	w.settle(t)
	name := w.a.name + ".ca-client"
	watcher := func(who *accessUser) watch.Interface {
		config := rest.CopyConfig(who.Config)
		config.Timeout = 0
		client, err := dynamic.NewForConfig(config)
		must(t, err)
		secrets := client.Resource(corev1beta1.SchemeGroupVersion.WithResource("internalsecrets")).Namespace(w.project())
		open, err := secrets.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: new(int64(3600))})
		must(t, err)
		if event := <-open.ResultChan(); event.Type != watch.Added {
			t.Fatalf("%s: the watch begins with %v", who.Name, event)
		}
		return open
	}
	watches := map[*accessUser]watch.Interface{w.gardenletA: watcher(w.gardenletA), w.extensionA: watcher(w.extensionA)}
	other := w.move(t)
	w.patchStatus(t, "shoots", w.project(), w.a.name, fmt.Sprintf(`{"status":{"seedName":%q}}`, w.b.name))
	w.point("shoots "+w.project()+"/"+w.a.name, "seeds "+w.b.name)
	for who, open := range watches {
		for event := range open.ResultChan() {
			t.Errorf("%s is told %v", who.Name, event)
		}
	}
	_, err := w.at("internalsecrets", w.project()).Patch(t.Context(), name, "application/merge-patch+json",
		[]byte(`{"stringData":{"ca.key":"new"}}`), metav1.PatchOptions{})
	must(t, err)
	for who := range watches {
		r := accessRequest{verb: "watch", resource: "internalsecrets", namespace: w.project(), name: name}
		if a := who.must(t, r); a.Code != http.StatusForbidden {
			t.Errorf("%s watches again: %s", who.Name, a)
		}
	}
	other()
}

// TestAccessEndsWithTheSeed deletes a Seed: the certificate of its gardenlet is refused, also when the Seed is
// created again, and after a restart. A certificate that is issued later is accepted.
func TestAccessEndsWithTheSeed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "landscape")
	upForWorlds(t, dir)
	admin, err := clientcmd.BuildConfigFromFlags("", statusOf(t, dir).Kubeconfig)
	must(t, err)
	w := newAccessWorld(t, "es", dir, admin)
	const name = "es-ended"
	w.copySeed(t, w.a.name, name)
	seed, err := w.at("seeds", "").Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	before := gardenletUser(t, dir, name)
	requests := []accessRequest{
		reading("seeds", "", name), creating(requestObject(t, "es-renewed", name)), creating(withoutStatus(fresh(seed.Object))),
		reading("secrets", "garden", w.a.name+"-backup"),
	}
	if a := before.must(t, requests[0]); !a.OK() {
		t.Fatalf("before the Seed is deleted: %s", a)
	}
	refused := func(when string) {
		t.Helper()
		for _, r := range requests {
			if a := before.must(t, r); a.Code != http.StatusUnauthorized {
				t.Errorf("%s: %s: %s", when, r, a)
			}
		}
	}
	must(t, w.at("seeds", "").Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	if a := before.must(t, requests[0]); !a.OK() {
		t.Fatalf("after a dry run: %s", a)
	}
	w.removeSeed(t, name)
	refused("when the Seed is deleted")
	w.copySeed(t, w.a.name, name)
	refused("when the Seed is there again")
	if a := w.gardenletA.must(t, reading("seeds", "", name)); !a.OK() {
		t.Errorf("another gardenlet: %s", a)
	}
	w.endsByStatus(t, dir)
	gardenlite(t, dir, "down").OK(t)
	upForWorlds(t, dir)
	refused("after a restart")
	after := gardenletUser(t, dir, name)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		a, err := after.do(ctx, reading("seeds", "", name))
		if err == nil && !a.OK() {
			err = fmt.Errorf("a certificate that was issued later: %s", a)
		}
		return err
	})
}

// endsByStatus deletes a Seed whose gardenlet removes the last finalizer in an update of the status.
func (w *accessWorld) endsByStatus(t *testing.T, dir string) {
	t.Helper()
	const name = "es-by-status"
	w.copySeed(t, w.a.name, name)
	gardenlet, seeds := gardenletUser(t, dir, name), w.at("seeds", "")
	_, err := seeds.Patch(t.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":["gardener"],"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, seeds.Delete(t.Context(), name, metav1.DeleteOptions{}))
	if a := gardenlet.must(t, patching("seeds", "status", "", name, `{"metadata":{"finalizers":null}}`)); !a.OK() {
		t.Fatalf("removing the finalizer: %s", a)
	}
	if _, err := seeds.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the Seed is still there: %v", err)
	}
	if a := gardenlet.must(t, reading("seeds", "", name)); a.Code != http.StatusUnauthorized {
		t.Errorf("when the status has ended the Seed: %s", a)
	}
}

func (w *accessWorld) removeSeed(t *testing.T, name string) {
	t.Helper()
	seeds := w.at("seeds", "")
	_, err := seeds.Patch(t.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, seeds.Delete(t.Context(), name, metav1.DeleteOptions{}))
}
