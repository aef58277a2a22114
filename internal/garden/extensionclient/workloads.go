package extensionclient

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

// Container is a container of an extension in a seed.
type Container struct {
	Seed  string `json:"seed"`
	Pod   string `json:"pod"`
	Name  string `json:"name"`
	Image string `json:"image"`
	Ready bool   `json:"ready"`
	// Program is the program of this machine that it runs.
	Program   string `json:"program,omitempty"`
	Simulated bool   `json:"simulated"`
	// State is what it waits for, or why it ended; "Running" otherwise.
	State string `json:"state"`
}

// Images returns the images of the Deployments of an extension, in all seeds.
func (c *Client) Images(ctx context.Context, e *Extension) ([]string, error) {
	var images []string
	for _, i := range e.Installations {
		seed, err := c.seed(ctx, i.Seed)
		if err != nil {
			return nil, err
		}
		all, err := seed.AppsV1().Deployments(i.Namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the Deployments of %s in seed %s: %w", e.Name, i.Seed, err)
		}
		for _, d := range all.Items {
			images = append(images, imagesOf(&d)...)
		}
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

func imagesOf(d *appsv1.Deployment) (images []string) {
	for _, c := range d.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
	}
	return images
}

func (c *Client) seed(ctx context.Context, name string) (kubernetes.Interface, error) {
	config, err := c.Seed(ctx, name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Containers returns the containers of an extension in all seeds.
func (c *Client) Containers(ctx context.Context, e *Extension) ([]Container, error) {
	all := []Container{}
	err := c.eachPod(ctx, e, func(_ kubernetes.Interface, seed string, pod *corev1.Pod) {
		for _, container := range pod.Spec.Containers {
			found := Container{Seed: seed, Pod: pod.Name, Name: container.Name, Image: container.Image, State: string(pod.Status.Phase)}
			for _, status := range pod.Status.ContainerStatuses {
				if status.Name == container.Name {
					found.Ready, found.State = status.Ready, stateOf(status)
					program, isProcess := strings.CutPrefix(status.ImageID, process.IDPrefix)
					if isProcess {
						found.Program = program
					}
					found.Simulated = !isProcess && status.State.Running != nil
				}
			}
			all = append(all, found)
		}
	})
	return all, err
}

func stateOf(status corev1.ContainerStatus) string {
	switch {
	case status.State.Waiting != nil:
		return strings.TrimSuffix(status.State.Waiting.Reason+": "+status.State.Waiting.Message, ": ")
	case status.State.Terminated != nil:
		return fmt.Sprintf("%s, exit code %d", status.State.Terminated.Reason, status.State.Terminated.ExitCode)
	}
	return "Running"
}

// eachPod calls a function for the Pods of an extension that are not being deleted.
func (c *Client) eachPod(ctx context.Context, e *Extension, do func(seed kubernetes.Interface, name string, pod *corev1.Pod)) error {
	for _, i := range e.Installations {
		seed, err := c.seed(ctx, i.Seed)
		if err != nil {
			return err
		}
		pods, err := seed.CoreV1().Pods(i.Namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("reading the Pods of %s in seed %s: %w", e.Name, i.Seed, err)
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				do(seed, i.Seed, &pod)
			}
		}
	}
	return nil
}

// Restart deletes the Pods whose containers with the given images run as processes: their programs may have changed.
func (c *Client) Restart(ctx context.Context, e *Extension, images []string) error {
	var failed error
	err := c.eachPod(ctx, e, func(seed kubernetes.Interface, name string, pod *corev1.Pod) {
		for _, status := range pod.Status.ContainerStatuses {
			if !strings.HasPrefix(status.ImageID, process.IDPrefix) || !slices.Contains(images, status.Image) {
				continue
			}
			options := metav1.NewPreconditionDeleteOptions(string(pod.UID))
			if err := seed.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options); err != nil && !apierrors.IsNotFound(err) {
				failed = fmt.Errorf("restarting Pod %s in seed %s: %w", pod.Name, name, err)
			}
			return
		}
	})
	return cmp.Or(err, failed)
}

// WaitPrograms waits until the containers of an extension with the given images run as processes, and are ready.
func (c *Client) WaitPrograms(ctx context.Context, e *Extension, images []string, report func(string)) error {
	return c.poll(ctx, "running", report, func(ctx context.Context) (string, error) {
		containers, err := c.Containers(ctx, e)
		if err != nil {
			return "", err
		}
		count := 0
		for _, container := range containers {
			switch {
			case !slices.Contains(images, container.Image):
			case container.Simulated:
				return fmt.Sprintf("Pod %s in seed %s waits to be replaced", container.Pod, container.Seed), nil
			case !container.Ready:
				return fmt.Sprintf("container %s of Pod %s in seed %s: %s", container.Name, container.Pod, container.Seed, container.State), nil
			default:
				count++
			}
		}
		if count == 0 && len(e.Installations) > 0 {
			return "there is no Pod yet", nil
		}
		return "", nil
	})
}

// Logs copies the logs of an extension's containers. With more than one, each line begins with the seed, the Pod and the
// container.
func (c *Client) Logs(ctx context.Context, e *Extension, options corev1.PodLogOptions, out io.Writer) error {
	type source struct {
		prefix string
		open   func() (io.ReadCloser, error)
	}
	var sources []source
	if err := c.eachPod(ctx, e, func(seed kubernetes.Interface, name string, pod *corev1.Pod) {
		for _, container := range pod.Spec.Containers {
			of := options
			of.Container = container.Name
			sources = append(sources, source{fmt.Sprintf("%s/%s/%s: ", name, pod.Name, container.Name), func() (io.ReadCloser, error) {
				return seed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &of).Stream(ctx)
			}})
		}
	}); err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("the extension %s has no Pods: see \"gardenlite extension describe %s\"", e.Name, e.Name)
	}
	var copying sync.WaitGroup
	var mutex sync.Mutex
	failures := make([]error, len(sources))
	for i, s := range sources {
		if len(sources) == 1 {
			s.prefix = ""
		}
		copying.Go(func() {
			stream, err := s.open()
			if err != nil {
				failures[i] = fmt.Errorf("reading the log of %s: %w", strings.TrimSuffix(s.prefix, ": "), err)
				return
			}
			defer stream.Close()
			for lines := bufio.NewReader(stream); ; {
				line, err := lines.ReadString('\n')
				if line != "" {
					mutex.Lock()
					_, _ = io.WriteString(out, s.prefix+strings.TrimSuffix(line, "\n")+"\n")
					mutex.Unlock()
				}
				if err != nil {
					return
				}
			}
		})
	}
	copying.Wait()
	for _, err := range failures {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
