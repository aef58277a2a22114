// Command scale fills a landscape with 5,000 Shoots and 50,000 Secrets, and prints how long creating, listing and watching
// take, and what they cost in memory.
//
//	go run ./scale -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const namespace = "garden-dev"

var shootResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}

func main() {
	shoots := flag.Int("shoots", 5000, "how many Shoots")
	secrets := flag.Int("secrets", 50000, "how many Secrets")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *shoots, *secrets) })
}

type clients struct {
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

func bench(ctx context.Context, shoots, secrets int) error {
	l, err := harness.StartLandscape(ctx, "--seeds=0")
	if err != nil {
		return err
	}
	defer l.Remove()
	config, err := l.Config(ctx)
	if err != nil {
		return err
	}
	c := clients{kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)}

	const atOnce = 16
	begin := time.Now()
	if err := harness.InParallel(ctx, atOnce, secrets, c.createSecret); err != nil {
		return err
	}
	report("create Secrets", secrets, time.Since(begin))
	begin = time.Now()
	if err := harness.InParallel(ctx, atOnce, shoots, c.createShoot); err != nil {
		return err
	}
	report("create Shoots", shoots, time.Since(begin))
	if err := c.measure(ctx); err != nil {
		return err
	}
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-40s %d MiB resident, %d MiB live heap\n", "memory", status.Memory.Resident>>20, status.Memory.LiveHeap>>20)
	begin = time.Now()
	l.Process.End()
	report("stop", 1, time.Since(begin))
	begin = time.Now()
	if err := l.Start(ctx); err != nil {
		return err
	}
	report("start again", 1, time.Since(begin))
	return nil
}

func (c clients) createSecret(ctx context.Context, i int) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("scale-%05d", i)},
		Data: map[string][]byte{"key": []byte("value")}}
	_, err := c.kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

func (c clients) createShoot(ctx context.Context, i int) error {
	return harness.CreateShoot(ctx, c.kube, fmt.Sprintf("s%04d", i), 1, nil)
}

// measure measures list, get and watch with all objects.
func (c clients) measure(ctx context.Context) error {
	shoots := c.dyn.Resource(shootResource).Namespace(namespace)
	for _, m := range []struct {
		name string
		runs int
		do   func() error
	}{
		{"list all Shoots", 5, func() error { return discard(shoots.List(ctx, metav1.ListOptions{})) }},
		{"list 500 Shoots (a page)", 5, func() error { return discard(shoots.List(ctx, metav1.ListOptions{Limit: 500})) }},
		{"list Shoots of one seed", 5, func() error {
			return discard(shoots.List(ctx, metav1.ListOptions{FieldSelector: "spec.seedName=none"}))
		}},
		{"list all Secrets", 3, func() error {
			_, err := c.kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"get a Shoot", 50, func() error { return discard(shoots.Get(ctx, "s0001", metav1.GetOptions{})) }},
		{"update a Shoot until a watch sees it", 20, func() error { return c.updateAndSee(ctx) }},
	} {
		median, err := harness.MedianOf(m.runs, func() (time.Duration, error) {
			begin := time.Now()
			err := m.do()
			return time.Since(begin), err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("%-40s median %11s\n", m.name, harness.MS(median))
	}
	return nil
}

func discard[T any](_ T, err error) error { return err }

func (c clients) updateAndSee(ctx context.Context) error {
	shoots := c.dyn.Resource(shootResource).Namespace(namespace)
	before, err := shoots.Get(ctx, "s0001", metav1.GetOptions{})
	if err != nil {
		return err
	}
	watch, err := shoots.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=s0001", ResourceVersion: before.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watch.Stop()
	before.SetAnnotations(map[string]string{"at": time.Now().String()})
	if _, err := shoots.Update(ctx, before, metav1.UpdateOptions{}); err != nil {
		return err
	}
	<-watch.ResultChan()
	return nil
}

func report(what string, n int, took time.Duration) {
	if n == 1 {
		fmt.Printf("%-40s        %11s\n", what, harness.MS(took))
		return
	}
	fmt.Printf("%-40s %d in %.1f s, %.0f/s\n", what, n, took.Seconds(), float64(n)/took.Seconds())
}
