package gardenapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// copiedResources are the resources of which accessManyReferences creates many objects.
var copiedResources = []string{
	"secrets", "configmaps", "serviceaccounts", "internalsecrets", "workloadidentities", "secretbindings", "credentialsbindings",
	"exposureclasses", "controllerdeployments", "cloudprofiles", "seeds", "backupbuckets", "backupentries", "shoots",
}

// accessManyReferences: the API server answers a gardenlet that writes its Seed or its Gardenlet with 1,000 references, or
// with nearly as many as are allowed. In the long form, half of the answers come within 300 ms in a garden with 10,000 objects
// of each kind.
func accessManyReferences(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "mr", dir)
	w.settle(t)
	count := 10
	if testutil.Soaking() {
		count = 10_000
	}
	for _, resource := range copiedResources {
		begin := time.Now()
		w.fill(t, resource, count)
		t.Logf("%d %s in %s", count, resource, time.Since(begin).Round(time.Millisecond))
	}
	for i := range 40 {
		name := fmt.Sprintf("named-%d", i)
		secret := meta("v1", "Secret", "garden", name, nil)
		w.create(t, &unstructured.Unstructured{Object: secret}, "")
		w.nameForSeed(t, name, w.a.name)
	}
	gardenlet := `{"spec":{"config":{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1",` +
		`"kind":"GardenletConfiguration","seedConfig":%s}}}`
	for _, test := range []struct {
		resource, namespace, patch string
		references                 int
		want                       int
	}{
		{"seeds", "", "%s", 0, http.StatusOK}, {"seeds", "", "%s", 40, http.StatusOK}, {"seeds", "", "%s", 1000, http.StatusForbidden},
		{"gardenlets", "garden", gardenlet, 1000, http.StatusForbidden},
	} {
		r := patching(test.resource, "", test.namespace, w.a.name, test.patch, seedWithReferences(test.references))
		r.forReal = false
		var took []time.Duration
		for range 21 {
			begin := time.Now()
			a := w.gardenletA.must(t, r)
			took = append(took, time.Since(begin))
			if a.Code != test.want || test.want == http.StatusForbidden && !strings.Contains(a.Message, "at most 50") {
				t.Fatalf("%s with %d references: %s", test.resource, test.references, a)
			}
		}
		slices.Sort(took)
		t.Logf("%s with %d references: median %s, longest %s", test.resource, test.references,
			took[10].Round(time.Microsecond), took[20].Round(time.Microsecond))
		if testutil.Soaking() && took[10] > 300*time.Millisecond {
			t.Errorf("%s with %d references are decided within %s", test.resource, test.references, took[10])
		}
	}
}

// seedWithReferences returns a patch of a Seed with as many references.
func seedWithReferences(count int) string {
	var defaults []string
	for i := range count {
		defaults = append(defaults, fmt.Sprintf(
			`{"type":"local","domain":"d%d.example.com","credentialsRef":{"apiVersion":"v1","kind":"Secret",`+
				`"namespace":"garden","name":"named-%[1]d"}}`, i))
	}
	return fmt.Sprintf(`{"spec":{"dns":{"defaults":[%s]}}}`, strings.Join(defaults, ","))
}

// fill copies an object of seed b many times.
func (w *accessWorld) fill(t *testing.T, resource string, count int) {
	t.Helper()
	at := slices.IndexFunc(w.objects, func(o accessObject) bool {
		return o.resource == resource && o.of == w.b.name && o.namespace != "seed-"+w.b.name
	})
	if at < 0 {
		at = slices.IndexFunc(w.objects, func(o accessObject) bool { return o.resource == resource && o.of == w.b.name })
	}
	o := w.objects[at]
	original, err := w.at(resource, o.namespace).Get(t.Context(), o.name, metav1.GetOptions{})
	must(t, err)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			copied := &unstructured.Unstructured{Object: withoutStatus(fresh(original.Object))}
			copied.SetName(fmt.Sprintf("m%d", i))
			copied.SetOwnerReferences(nil)
			return w.createCopy(ctx, resource, copied)
		})
	}
	must(t, group.Wait())
}

// createCopy creates an object, and retries if the server asks for that.
func (w *accessWorld) createCopy(ctx context.Context, resource string, obj *unstructured.Unstructured) error {
	for {
		_, err := w.at(resource, obj.GetNamespace()).Create(ctx, obj, created)
		if _, again := apierrors.SuggestsClientDelay(err); again && ctx.Err() == nil {
			continue
		}
		return err
	}
}
