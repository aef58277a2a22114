package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// killedUnderWrites kills the process while clients write: 3 times, in the soak 20. Every write that was acknowledged must
// be there, none twice, resource versions only grow, and an informer that is not restarted sees everything.
func (l *landscape) killedUnderWrites(t *testing.T, _ *rand.Rand) {
	rounds := 3
	if testutil.Soaking() {
		rounds = 20
	}
	acknowledged := map[string]string{} // name to UID
	lastVersion := uint64(0)
	// One informer for all rounds: its watch ends with each kill, and has to go on.
	factory := informers.NewSharedInformerFactoryWithOptions(l.kube, 0, informers.WithNamespace("default"))
	watched := factory.Core().V1().ConfigMaps().Informer().GetStore()
	factory.Start(t.Context().Done())
	for round := range rounds {
		writeUntilKilled(t, l, round, acknowledged, &lastVersion)
		l.up(t)
		lastVersion = checkSurvivors(t, l.kube, acknowledged, lastVersion)
		checkWatcher(t, watched, acknowledged)
	}
	t.Logf("%d writes acknowledged over %d kills", len(acknowledged), rounds)
}

func writeUntilKilled(t *testing.T, l *landscape, round int, acknowledged map[string]string, lastVersion *uint64) {
	t.Helper()
	var mu sync.Mutex
	var writers sync.WaitGroup
	enough := make(chan struct{})
	wanted := len(acknowledged) + 150 + 37*round%100 // not always at the same point
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("r%d-w%d-%d", round, w, i)
				cm, err := l.kube.CoreV1().ConfigMaps("default").Create(
					t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, created)
				if err != nil {
					if apierrors.IsAlreadyExists(err) {
						t.Errorf("%s: %v", name, err)
					}
					return // killed
				}
				version, err := strconv.ParseUint(cm.ResourceVersion, 10, 64)
				mu.Lock()
				acknowledged[name] = string(cm.UID)
				if err == nil && version > *lastVersion {
					*lastVersion = version
				}
				if len(acknowledged) == wanted {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(waitTimeout):
		t.Error("writes are too slow")
	}
	l.kill()
	writers.Wait()
}

func checkSurvivors(t *testing.T, client kubernetes.Interface, acknowledged map[string]string, lastVersion uint64) uint64 {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	found := map[string]string{}
	for _, cm := range list.Items {
		if _, twice := found[cm.Name]; twice {
			t.Errorf("%s is there twice", cm.Name)
		}
		found[cm.Name] = string(cm.UID)
	}
	for name, uid := range acknowledged {
		if found[name] != uid {
			t.Errorf("%s was acknowledged with UID %s; now it is %q", name, uid, found[name])
		}
	}
	version, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	must(t, err)
	if version < lastVersion {
		t.Errorf("the resource version went back from %d to %d", lastVersion, version)
	}
	return version
}

// checkWatcher waits until the informer, which is not restarted, has seen every write that was acknowledged.
func checkWatcher(t *testing.T, store cache.Store, acknowledged map[string]string) {
	t.Helper()
	// client-go's reflector backs off up to a minute after so many broken connections in a row.
	eventually(t, waitTimeout, func(context.Context) error {
		for name, uid := range acknowledged {
			obj, found, err := store.GetByKey("default/" + name)
			if err != nil || !found || string(obj.(*corev1.ConfigMap).UID) != uid {
				return fmt.Errorf("the informer has not seen %s (UID %s)", name, uid)
			}
		}
		return nil
	})
}
