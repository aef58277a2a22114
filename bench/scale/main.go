// Command scale fills a landscape with 5,000 Shoots and 50,000 Secrets, and prints how long creating, listing and watching
// take, and what they cost in memory.
//
//	go run ./scale -gardenlite ../bin/gardenlite
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gardenlite/gardenlite/bench/harness"
)

var shootResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}

func main() {
	shoots := flag.Int("shoots", 5000, "how many Shoots")
	secrets := flag.Int("secrets", 50000, "how many Secrets")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *shoots, *secrets) })
}

// landscape is a landscape without seeds, and a client for its Shoots.
type landscape struct {
	*harness.Landscape
	shoots dynamic.ResourceInterface
}

func bench(ctx context.Context, shoots, secrets int) error {
	started, err := harness.StartLandscape(ctx, "--seeds=0")
	if err != nil {
		return err
	}
	defer started.Remove()
	config, err := started.Config(ctx)
	if err != nil {
		return err
	}
	l := landscape{started, dynamic.NewForConfigOrDie(config).Resource(shootResource).Namespace(harness.Namespace)}
	if err := fill(ctx, "create Secrets", secrets, secrets, l.createSecret); err != nil {
		return err
	}
	if err := fill(ctx, "create Shoots", shoots, 500, l.createShoot); err != nil {
		return err
	}
	if err := l.measure(ctx); err != nil {
		return err
	}
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	harness.Row("resident memory", harness.MB(float64(status.Memory.Resident)))
	harness.Row("live heap", harness.MB(float64(status.Memory.LiveHeap)))
	begin := time.Now()
	l.Process.End()
	harness.Row("stop", harness.MS(time.Since(begin)))
	begin = time.Now()
	err = l.Start(ctx)
	harness.Row("start again", harness.MS(time.Since(begin)))
	return err
}

// fill creates objects, and prints the rate of each part, with its ratio to that of the first one.
func fill(ctx context.Context, what string, count, part int, create func(context.Context, int) error) error {
	first := 0.0
	for done := 0; done < count; done += part {
		begin, next := time.Now(), min(part, count-done)
		if err := harness.InParallel(ctx, harness.AtOnce, next, func(ctx context.Context, i int) error {
			return create(ctx, done+i)
		}); err != nil {
			return err
		}
		took := time.Since(begin)
		rate := float64(next) / took.Seconds()
		first = cmp.Or(first, rate)
		harness.Row(fmt.Sprintf("%s, up to %d", what, done+next), harness.MS(took), fmt.Sprintf("  %.0f/s", rate),
			harness.Ratio(rate, first))
	}
	return nil
}

func (l landscape) createSecret(ctx context.Context, i int) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("scale-%05d", i)},
		Data: map[string][]byte{"key": []byte("value")}}
	_, err := l.Kube.CoreV1().Secrets(harness.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

func (l landscape) createShoot(ctx context.Context, i int) error {
	return l.CreateShoot(ctx, fmt.Sprintf("s%04d", i), 1, nil)
}

// measure measures list, get and watch with all objects.
func (l landscape) measure(ctx context.Context) error {
	list := func(options metav1.ListOptions) func(int) (time.Duration, error) {
		return harness.Timed(func(int) error { return discard(l.shoots.List(ctx, options)) })
	}
	return harness.Measure("requests with all objects; the ratio is to a get", 5,
		harness.Case{Name: "get a Shoot", Run: harness.Timed(func(int) error {
			return discard(l.shoots.Get(ctx, "s0001", metav1.GetOptions{}))
		})},
		harness.Case{Name: "update a Shoot until a watch sees it", Run: harness.Timed(func(int) error {
			return l.updateAndSee(ctx)
		})},
		harness.Case{Name: "list all Shoots", Run: list(metav1.ListOptions{})},
		harness.Case{Name: "list 500 Shoots (a page)", Run: list(metav1.ListOptions{Limit: 500})},
		harness.Case{Name: "list Shoots of one seed", Run: list(metav1.ListOptions{FieldSelector: "spec.seedName=none"})},
		harness.Case{Name: "list all Secrets", Run: harness.Timed(func(int) error {
			return discard(l.Kube.CoreV1().Secrets(harness.Namespace).List(ctx, metav1.ListOptions{}))
		})})
}

func discard[T any](_ T, err error) error { return err }

func (l landscape) updateAndSee(ctx context.Context) error {
	before, err := l.shoots.Get(ctx, "s0001", metav1.GetOptions{})
	if err != nil {
		return err
	}
	watch, err := l.shoots.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=s0001", ResourceVersion: before.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watch.Stop()
	before.SetAnnotations(map[string]string{"at": time.Now().String()})
	if _, err := l.shoots.Update(ctx, before, metav1.UpdateOptions{}); err != nil {
		return err
	}
	<-watch.ResultChan()
	return nil
}
