package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Landscape is a landscape with a process and a folder of its own.
type Landscape struct {
	Dir     string
	Process *Process
	// Kube is the administrator's client of a landscape that StartLandscape has started.
	Kube  kubernetes.Interface
	flags []string
}

// NewLandscape returns a landscape with further flags of "gardenlite up".
func NewLandscape(flags ...string) (*Landscape, error) {
	dir, err := os.MkdirTemp("", "gardenlite-bench-")
	return &Landscape{Dir: dir, flags: flags}, err
}

// StartLandscape starts a new landscape.
func StartLandscape(ctx context.Context, flags ...string) (*Landscape, error) {
	l, err := NewLandscape(flags...)
	if err != nil {
		return nil, err
	}
	if err = l.Start(ctx); err == nil {
		l.Kube, err = l.Client(ctx)
	}
	if err != nil {
		l.Remove()
		return nil, err
	}
	return l, nil
}

// Launch starts the process.
func (l *Landscape) Launch() (err error) {
	args := append([]string{"up", "--port=0", "--name=bench", "--data-dir=" + l.Dir}, l.flags...)
	l.Process, err = Start(l.Dir, *gardenlite, args...)
	return err
}

// Start starts the process, and waits until the landscape is ready.
func (l *Landscape) Start(ctx context.Context) error {
	if err := l.Launch(); err != nil {
		return err
	}
	// The process may not have written run.json yet, which "gardenlite status" needs.
	if err := Poll(ctx, 2*time.Minute, func() (bool, error) {
		if l.Process.Ended() {
			return false, errors.New("it ended")
		}
		_, err := l.Run(ctx, "status", "--wait")
		return err == nil, nil
	}); err != nil {
		return fmt.Errorf("waiting for the landscape: %w: %s", err, l.Process.Log())
	}
	return nil
}

// Remove ends the process and removes the folder.
func (l *Landscape) Remove() {
	if l.Process != nil {
		l.Process.End()
	}
	_ = os.RemoveAll(l.Dir)
}

// Run runs a command of gardenlite for the landscape, and returns what it prints.
func (l *Landscape) Run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, *gardenlite, append(args, "--name=bench", "--data-dir="+l.Dir)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("gardenlite %s: %w: %s", args[0], err, failed.Stderr)
	}
	return out, err
}

// Config returns the client configuration that "gardenlite kubeconfig" prints with these arguments: without any, the
// administrator's.
func (l *Landscape) Config(ctx context.Context, args ...string) (*rest.Config, error) {
	kubeconfig, err := l.Run(ctx, append([]string{"kubeconfig"}, args...)...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config, nil
}

// Client returns a client with the configuration that Config returns.
func (l *Landscape) Client(ctx context.Context, args ...string) (kubernetes.Interface, error) {
	config, err := l.Config(ctx, args...)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Status is the part of the output of "gardenlite status -o json" that benchmarks read. Memory is in bytes.
type Status struct {
	Memory     struct{ Resident, LiveHeap uint64 }
	Goroutines int
	Phases     []struct {
		Name string
		Took time.Duration
	}
}

// Status returns the status after a garbage collection.
func (l *Landscape) Status(ctx context.Context) (status Status, err error) {
	out, err := l.Run(ctx, "status", "--wait", "--collect-garbage", "-o=json")
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	return status, err
}

// Memory returns the resident memory of the process after a garbage collection, in bytes.
func (l *Landscape) Memory(ctx context.Context) (float64, error) {
	status, err := l.Status(ctx)
	return float64(status.Memory.Resident), err
}

const (
	// Namespace is the namespace of the project dev.
	Namespace = "garden-dev"
	// AtOnce is how many clients create objects in parallel.
	AtOnce = 16
	// KubernetesVersion is the version of the Shoots.
	KubernetesVersion = "1.36.0"
	// ShootsPath is the path of the Shoots of the project dev.
	ShootsPath = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots"
)

func shoot(name string, nodes int, fields map[string]any) ([]byte, error) {
	type object = map[string]any
	spec := object{
		"cloudProfile": object{"kind": "CloudProfile", "name": "local"}, "credentialsBindingName": "sample", "region": "local",
		"purpose": "testing", "kubernetes": object{"version": KubernetesVersion},
		"networking": object{"type": "local", "nodes": "10.10.0.0/16", "pods": "10.11.0.0/16", "services": "10.12.0.0/16"},
		"provider": object{"type": "local", "workers": []object{{"name": "worker", "minimum": nodes, "maximum": nodes,
			"machine": object{"type": "local", "image": object{"name": "local", "version": "1.0.0"}}, "zones": []string{"local-a"}}}},
	}
	maps.Copy(spec, fields)
	return json.Marshal(object{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": object{"name": name}, "spec": spec})
}

// Create sends a request that creates an object in JSON, and returns the response.
func Create(ctx context.Context, client kubernetes.Interface, path string, body []byte) ([]byte, error) {
	post := client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body)
	answer, err := post.DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return answer, nil
}

// CreateShoot creates a Shoot of the project dev, with a number of nodes and further fields of the specification.
func (l *Landscape) CreateShoot(ctx context.Context, name string, nodes int, fields map[string]any) error {
	body, err := shoot(name, nodes, fields)
	if err == nil {
		_, err = Create(ctx, l.Kube, ShootsPath, body)
	}
	return err
}

// AwaitShoots waits until a number of Shoots are ready, all that there are.
func (l *Landscape) AwaitShoots(ctx context.Context, shoots int) error {
	const timeout = 10 * time.Minute
	return Poll(ctx, timeout, func() (bool, error) {
		out, err := l.Run(ctx, "status", "-o=json")
		if err != nil {
			return false, nil //nolint:nilerr // it is asked again
		}
		var status struct {
			Clusters []struct{ Kind, State string }
			Shoots   []struct{ State string }
		}
		if err := json.Unmarshal(out, &status); err != nil {
			return false, err
		}
		ready := 0
		for _, cluster := range status.Clusters {
			if cluster.Kind == "shoot" && cluster.State == "Ready" {
				ready++
			}
		}
		for _, shoot := range status.Shoots {
			if shoot.State == "Ready" {
				ready++
			}
		}
		return ready == 2*shoots, nil
	})
}
