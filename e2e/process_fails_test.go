package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// create creates a Pod with one container, or returns why it is refused.
func (p *programs) create(ctx context.Context, name, image string, change func(*corev1.PodSpec), args ...string) (*corev1.Pod, error) {
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](1), Containers: []corev1.Container{{Name: "program", Image: image, Args: args}},
	}
	if change != nil {
		change(&spec)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: spec}
	return p.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
}

// until waits until is returns true for the first container of a Pod.
func (p *programs) until(t *testing.T, name, what string, is func(corev1.ContainerStatus) bool) corev1.ContainerStatus {
	t.Helper()
	var status corev1.ContainerStatus
	eventually(t, waitTimeout, func(ctx context.Context) error {
		pod, err := p.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 || !is(pod.Status.ContainerStatuses[0]) {
			return fmt.Errorf("the container of %s is not %s: %+v", name, what, pod.Status)
		}
		status = pod.Status.ContainerStatuses[0]
		return nil
	})
	return status
}

func (p *programs) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, p.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
}

// fails checks the status of containers that do not run: one that fails again and again, and ones whose program is
// gone or cannot be executed.
func (p *programs) fails(t *testing.T) {
	_, err := p.create(t.Context(), "crashes", programImage, nil, "--exit=7")
	must(t, err)
	s := p.until(t, "crashes", "in a crash loop", func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && s.RestartCount > 0
	})
	last := s.LastTerminationState.Terminated
	if last == nil || last.ExitCode != 7 || !strings.HasPrefix(s.State.Waiting.Message, "back-off 10s") {
		t.Errorf("the container that fails: %+v", s)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		events, err := p.client.CoreV1().Events("default").List(
			ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=crashes,reason=BackOff"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("there is no Event that says so")
		}
		return err
	})
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove, "not-executable": func(path string) error { return os.Chmod(path, 0o600) },
	} {
		program := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
		gardenlite(t, p.l.dir, "image", "run", "example.com/"+name, program).OK(t)
		must(t, spoil(program))
		_, err := p.create(t.Context(), name, "example.com/"+name, nil)
		must(t, err)
		s := p.until(t, name, "in error", func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerError"
		})
		if !strings.Contains(s.State.Waiting.Message, program) {
			t.Errorf("the message of the program that is %s is %q", name, s.State.Waiting.Message)
		}
	}
	p.remove(t, "crashes", "missing", "not-executable")
}

// loses expects that a process is refused once its ServiceAccount is gone.
func (p *programs) loses(t *testing.T) {
	accounts := p.client.CoreV1().ServiceAccounts("default")
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "short"}}, created)
	must(t, err)
	_, err = p.create(t.Context(), "loses", programImage, func(spec *corev1.PodSpec) { spec.ServiceAccountName = "short" }, "--ask")
	must(t, err)
	p.until(t, "loses", "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	p.logs(t, "loses", "asked system:serviceaccount:default:short")
	must(t, accounts.Delete(t.Context(), "short", metav1.DeleteOptions{}))
	p.logs(t, "loses", "asked Unauthorized")
	p.remove(t, "loses")
}

// soon expects that one of three attempts takes at most two seconds, so that delays by other programs do not count.
func soon(t *testing.T, what string, attempt func(i int) time.Duration) {
	t.Helper()
	const attempts, limit = 3, 2 * time.Second
	var took []time.Duration
	for i := range attempts {
		took = append(took, attempt(i))
		if took[i] <= limit {
			t.Logf("%s after %v", what, took)
			return
		}
	}
	t.Errorf("%s after %v, not within %s", what, took, limit)
}

// follows measures how soon a file has the new content of its Secret.
func (p *programs) follows(t *testing.T) {
	secrets := p.client.CoreV1().Secrets("default")
	secret, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "changes"}, StringData: map[string]string{"word": "none"},
	}, created)
	must(t, err)
	_, err = p.create(t.Context(), "follows", programImage, func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "changes"}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	}, "--file=/v/word")
	must(t, err)
	p.until(t, "follows", "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	p.logs(t, "follows", "file none")
	soon(t, "a Secret is in a file", func(i int) time.Duration {
		word := fmt.Sprintf("word-%d", i)
		secret.StringData = map[string]string{"word": word}
		begin := time.Now()
		secret, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		must(t, err)
		p.logs(t, "follows", "file "+word)
		return time.Since(begin)
	})
	p.remove(t, "follows")
}

// comesBack measures how soon a webhook is called again when its Pod is ready again, after its process was killed.
func (p *programs) comesBack(t *testing.T) {
	soon(t, "a webhook is called again", func(int) time.Duration {
		before := p.pod(t, "hook")
		for _, process := range p.running(t) {
			if process.Pod == before.Name {
				must(t, syscall.Kill(process.PID, syscall.SIGKILL))
			}
		}
		p.until(t, before.Name, "ready again", func(s corev1.ContainerStatus) bool {
			return s.Ready && s.RestartCount > before.Status.ContainerStatuses[0].RestartCount
		})
		begin := time.Now()
		p.answers(t, "refused by the program")
		return time.Since(begin)
	})
}
