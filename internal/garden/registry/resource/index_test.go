package resource

import (
	"testing"
	"testing/synctest"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TestRecent checks which of the written objects are looked up besides the watch cache.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recent
		write := func(name string, dryRun ...string) {
			r.add(&gardencore.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}, dryRun)
		}
		expect := func(about string, names ...string) {
			t.Helper()
			found := r.keys(func(obj runtime.Object) bool { return obj.(*gardencore.Quota).Name != "other" })
			for _, name := range names {
				if !found.Has(types.NamespacedName{Namespace: "n", Name: name}) {
					t.Errorf("%s: %s is missing", about, name)
				}
			}
			if len(found) != len(names) {
				t.Errorf("%s: %v", about, found)
			}
		}
		expect("nothing")
		write("a")
		write("a")
		write("other")
		write("dry", "All")
		expect("written", "a")
		time.Sleep(recentFor - time.Second)
		write("b")
		expect("later", "a", "b")
		time.Sleep(2 * time.Second)
		expect("when the first is old", "b")
		write("c")
		if len(r.written) != 2 {
			t.Errorf("%d are kept", len(r.written))
		}
	})
}
