// Command scale fills a landscape with 5,000 Shoots and 50,000 Secrets, and prints how long creating, listing and watching
// take, and what they cost in memory.
//
//	go run ./scale -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "garden-dev"

var shootResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}

func main() {
	gardenlite := flag.String("gardenlite", "../bin/gardenlite", "the binary to measure")
	shoots := flag.Int("shoots", 5000, "how many Shoots")
	secrets := flag.Int("secrets", 50000, "how many Secrets")
	flag.Parse()
	if err := bench(*gardenlite, *shoots, *secrets); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type clients struct {
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

func bench(binary string, shoots, secrets int) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bench-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	run := func(args ...string) error {
		cmd := exec.Command(binary, append(args, "--name=bench", "--data-dir="+dir)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("gardenlite %v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := run("up", "--seeds=0", "--port=0", "-d"); err != nil {
		return err
	}
	defer func() { _ = run("down") }()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	config.QPS = -1
	c := clients{kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)}

	begin := time.Now()
	if err := parallel(ctx, secrets, c.createSecret); err != nil {
		return err
	}
	report("create Secrets", secrets, time.Since(begin))
	begin = time.Now()
	if err := parallel(ctx, shoots, c.createShoot); err != nil {
		return err
	}
	report("create Shoots", shoots, time.Since(begin))
	if err := c.measure(ctx); err != nil {
		return err
	}
	if err := printMemory(binary, dir); err != nil {
		return err
	}
	begin = time.Now()
	if err := run("down"); err != nil {
		return err
	}
	report("stop", 1, time.Since(begin))
	begin = time.Now()
	if err := run("up", "--seeds=0", "--port=0", "-d"); err != nil {
		return err
	}
	report("start again", 1, time.Since(begin))
	return nil
}

// parallel calls create for 0 to n-1, 16 at a time.
func parallel(ctx context.Context, n int, create func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range 16 {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := create(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (c clients) createSecret(ctx context.Context, i int) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("scale-%05d", i)},
		Data: map[string][]byte{"key": []byte("value")}}
	_, err := c.kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

func (c clients) createShoot(ctx context.Context, i int) error {
	shoot := &unstructured.Unstructured{}
	err := json.Unmarshal(fmt.Appendf(nil, `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"s%04d"},"spec":{
		"cloudProfile":{"kind":"CloudProfile","name":"local"},"credentialsBindingName":"sample","region":"local",
		"networking":{"type":"local","nodes":"10.10.0.0/16","pods":"10.11.0.0/16","services":"10.12.0.0/16"},"kubernetes":{"version":"1.36.0"},
		"provider":{"type":"local","workers":[{"name":"worker","minimum":1,"maximum":2,"machine":{"type":"local",
			"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`, i), shoot)
	if err != nil {
		return err
	}
	_, err = c.dyn.Resource(shootResource).Namespace(namespace).Create(ctx, shoot, metav1.CreateOptions{})
	return err
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
		var took []time.Duration
		for range m.runs {
			begin := time.Now()
			if err := m.do(); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		fmt.Printf("%-40s median %8.1f ms\n", m.name, took[len(took)/2].Seconds()*1000)
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

func printMemory(binary, dir string) error {
	out, err := exec.Command(binary, "status", "--collect-garbage", "--name=bench", "--data-dir="+dir, "-o=json").Output()
	if err != nil {
		return err
	}
	var status struct {
		Memory struct{ Resident, LiveHeap uint64 }
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return err
	}
	fmt.Printf("%-40s %d MiB resident, %d MiB live heap\n", "memory", status.Memory.Resident>>20, status.Memory.LiveHeap>>20)
	return nil
}

func report(what string, n int, took time.Duration) {
	if n == 1 {
		fmt.Printf("%-40s        %8.1f ms\n", what, took.Seconds()*1000)
		return
	}
	fmt.Printf("%-40s %d in %.1f s, %.0f/s\n", what, n, took.Seconds(), float64(n)/took.Seconds())
}
