package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscape/leastprivilege"
)

// recordEnv, if set, makes TestLeastPrivilege write the recording that it otherwise compares with.
const recordEnv = "LEASTPRIVILEGE_RECORD"

// life is a landscape whose life the test goes through.
type life struct {
	*landscape
	mapper apimeta.RESTMapper
}

const recording = "../internal/landscape/leastprivilege/requests.txt"

// TestLeastPrivilege makes the components of a landscape do everything that they do. The audit logs show that no
// request is forbidden, and that all recorded requests are made: package leastprivilege proves from the recording
// that every right of their roles is needed.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit")
	l := &life{landscape: newLandscape(t, "--audit-log", file, "--datastore", "memory")}
	l.live(t)
	if t.Failed() {
		return
	}
	recorded, err := leastprivilege.Recorded()
	must(t, err)
	var garden, seed *audit
	eventually(t, waitTimeout, func(context.Context) error { // a request is answered before it is in the audit log
		garden, seed = readAudit(t, file, "garden"), readAudit(t, file+".seed-local", "seed")
		for _, r := range recorded {
			if os.Getenv(recordEnv) == "" && !garden.seen[r] && !seed.seen[r] {
				return fmt.Errorf("this was recorded, but not asked for (to record it anew: %s=1): %s", recordEnv, r)
			}
		}
		return nil
	})
	for _, c := range leastprivilege.Components() {
		if forbidden := slices.Concat(garden.forbidden[c], seed.forbidden[c]); len(forbidden) > 0 {
			t.Errorf("%s was forbidden:\n%s", c.User, strings.Join(forbidden, "\n"))
		}
	}
	if os.Getenv(recordEnv) != "" {
		all := slices.AppendSeq(slices.Collect(maps.Keys(garden.seen)), maps.Keys(seed.seen))
		must(t, os.WriteFile(recording, []byte(leastprivilege.Record(all)), 0o600))
	}
}

// live goes through the life of a landscape, until a part of it fails.
func (l *life) live(t *testing.T) {
	_ = t.Run("begin", l.begin) && t.Run("together", func(t *testing.T) {
		for name, tell := range map[string]func(*testing.T){
			"extension": func(t *testing.T) { l.askAsGardenlet(t); l.changeSecrets(t); l.extend(t) },
			"project":   func(t *testing.T) { l.useProject(t); l.liveShoot(t); l.askWithLess(t); l.removeProject(t) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(t)
			})
		}
	}) && t.Run("end", l.removeSeed)
}

func (l *life) begin(t *testing.T) {
	groups, err := restmapper.GetAPIGroupResources(l.kube.Discovery())
	must(t, err)
	l.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	l.kubectl(t, l.testdata(t, "leastprivilege.yaml"), "apply", "-f", "-")
	l.provideMore(t)
	l.await(t, "project/lp", "{.status.phase}", "Ready")
	l.prepareSeed(t)
	l.kubectl(t, l.testdata(t, "leastprivilege-project.yaml"), "apply", "-f", "-")
}

func (l *life) testdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return l.resolve(t, string(data))
}

// resolve replaces BUCKET by the name of the seed's backup bucket.
func (l *life) resolve(t *testing.T, manifest string) string {
	t.Helper()
	seed, err := l.core("seeds", "").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	return strings.ReplaceAll(manifest, "BUCKET", string(seed.GetUID()))
}

func (l *life) kubectl(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return command(t, stdin, kubectlBinary, append([]string{"--kubeconfig", filepath.Join(l.dir, "kubeconfig")}, args...)...).OK(t)
}

// object returns the client and the name of an object that is named as for kubectl, in the project's namespace by
// default.
func (l *life) object(t *testing.T, what string) (dynamic.ResourceInterface, string) {
	t.Helper()
	what, namespace, found := strings.Cut(what, " -n ")
	if !found {
		namespace = "garden-lp"
	}
	kind, name, _ := strings.Cut(what, "/")
	resource, err := l.mapper.ResourceFor(schema.GroupVersionResource{Resource: kind})
	must(t, err)
	mapped, err := l.mapper.KindFor(resource)
	must(t, err)
	mapping, err := l.mapper.RESTMapping(mapped.GroupKind(), mapped.Version)
	must(t, err)
	if mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
		return l.dyn.Resource(resource), name
	}
	return l.dyn.Resource(resource).Namespace(namespace), name
}

// await waits until the value at a JSONPath of an object contains a text or, with "", until the object is gone.
func (l *life) await(t *testing.T, what, path, contains string) {
	t.Helper()
	resource, name := l.object(t, what)
	say := jsonpath.New("").AllowMissingKeys(true)
	must(t, say.Parse(path))
	eventually(t, waitTimeout, func(ctx context.Context) error {
		obj, err := resource.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && contains == "" {
			return nil
		}
		said := &strings.Builder{}
		if err == nil && contains != "" {
			err = say.Execute(said, obj.Object)
		}
		if err == nil && contains != "" && strings.Contains(said.String(), contains) {
			return nil
		}
		return fmt.Errorf("%s: %s is %q, not %q: %v", what, path, said, contains, err)
	})
}

func (l *life) mergeInto(t *testing.T, what, patch string) {
	t.Helper()
	resource, name := l.object(t, what)
	_, err := resource.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func (l *life) annotate(t *testing.T, what, key, value string) {
	t.Helper()
	l.mergeInto(t, what, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// remove deletes an object, with the confirmation that some need.
func (l *life) remove(t *testing.T, what string) {
	t.Helper()
	l.annotate(t, what, "confirmation.gardener.cloud/deletion", "true")
	resource, name := l.object(t, what)
	must(t, ctrlclient.IgnoreNotFound(resource.Delete(t.Context(), name, metav1.DeleteOptions{})))
}

// prepareSeed creates the namespace of a control plane for the backup entry.
func (l *life) prepareSeed(t *testing.T) {
	t.Helper()
	_, err := l.seeds["local"].CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lp-control-plane"}}, created)
	must(t, err)
}

func eventuallyGone(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace %s is not gone: %v", namespace, err)
	})
}
