package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// podAttempt is something that a Pod tries, with the expected result.
type podAttempt struct {
	name, image string
	change      func(*corev1.PodSpec)
	args        []string
	// The expected result: the API server refuses the Pod with the message refused; or the container is not started,
	// with the reason notStarted and the message says; or it runs. Then it is simulated if its image is not mapped,
	// and otherwise a process whose log does not contain never.
	refused, notStarted, says string
	never                     string
}

// volumeOf returns a change that mounts a volume.
func volumeOf(source corev1.VolumeSource, mount corev1.VolumeMount) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		mount.Name = "v"
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{mount}
	}
}

// target is what attempts want to read: a word, in a file of this machine and in a Secret of another namespace,
// which a Pod on node uses.
type target struct{ self, word, file, node string }

const hiddenSecret = "../../other/secrets/hidden"

// podAttempts returns attempts of Pods to run as a process or another program, or to get more than they may.
func podAttempts(at target) (all []podAttempt) {
	for _, image := range []string{
		"example.com/program2", "example.com/programs/program", "example.org/program", "program", "library/example.com/program",
		"xn--example.com/program", "localhost" + at.self, "file" + at.self, "process" + at.self, "127.0.0.1/program",
		"example.com:443/program", "example.com/program2@sha256:" + strings.Repeat("0", 64),
	} {
		all = append(all, podAttempt{name: "image " + image, image: image, change: func(spec *corev1.PodSpec) {
			spec.Containers[0].Command = []string{at.self, processArgument}
		}})
	}
	environment := func(name, value string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].Env = []corev1.EnvVar{{Name: name, Value: value}} }
	}
	evil := corev1.LocalObjectReference{Name: "evil"}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return append(all, []podAttempt{
		{name: "command with a path", never: at.word, change: func(spec *corev1.PodSpec) {
			spec.Containers[0].Command = []string{"/bin/cat", at.file}
		}},
		{name: "LD_PRELOAD", change: environment("LD_PRELOAD", "/evil.so"), never: "evil"},
		{name: "PATH", change: environment("PATH", "/evil"), never: "evil"},
		{name: "HOME", change: environment("HOME", "/evil"), never: "evil"},
		{name: "KUBECONFIG of the landscape", change: environment("KUBECONFIG", "../../../../../kubeconfig"), never: "KUBECONFIG=../"},
		{name: "KUBECONFIG beyond a mount", never: "/v/..", change: func(spec *corev1.PodSpec) {
			volumeOf(empty, corev1.VolumeMount{MountPath: "/v"})(spec)
			environment("KUBECONFIG", "/v/../../../../../kubeconfig")(spec)
		}},
		{name: "variables of a ConfigMap", never: "evil.so", change: func(spec *corev1.PodSpec) {
			spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: evil}}}
		}},
		{name: "hostPath", args: []string{"--file=" + at.file}, never: at.word, change: volumeOf(
			corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Dir(at.file)}},
			corev1.VolumeMount{MountPath: filepath.Dir(at.file)})},
		{name: "subPath with ..", refused: "must not contain '..'",
			change: volumeOf(empty, corev1.VolumeMount{MountPath: "/v", SubPath: "../x"})},
		{name: "subPathExpr with ..", change: func(spec *corev1.PodSpec) {
			volumeOf(empty, corev1.VolumeMount{MountPath: "/v", SubPathExpr: "$(UP)/etc"})(spec)
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "UP", Value: "../../../../../../../../.."}}
		}, notStarted: "CreateContainerConfigError", says: "subPath of volume v"},
		{name: "link in a volume", change: func(spec *corev1.PodSpec) {
			volumeOf(empty, corev1.VolumeMount{MountPath: "/v", SubPath: "out"})(spec)
			spec.InitContainers = []corev1.Container{{
				Name: "link", Image: programImage, Args: []string{"--link=/v/out"}, VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
			}}
		}, notStarted: "CreateContainerConfigError", says: "subPath of volume v"},
		{name: "path of a key with ..", refused: "must not contain '..'", change: volumeOf(
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: evil, Items: []corev1.KeyToPath{{Key: "LD_PRELOAD", Path: "../../x"}},
			}}, corev1.VolumeMount{MountPath: "/v"})},
		{name: "ServiceAccount of another namespace", refused: "service account", change: func(spec *corev1.PodSpec) {
			spec.ServiceAccountName = "kube-system/default"
		}},
		{name: "Secret of another namespace", notStarted: "ContainerCreating", says: "may not contain '/'", change: func(spec *corev1.PodSpec) {
			secret := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: hiddenSecret}}
			volumeOf(secret, corev1.VolumeMount{MountPath: "/v"})(spec)
			spec.NodeName = at.node
		}, args: []string{"--file=/v/word"}},
		{name: "variable of another namespace", refused: "secretRef.name", change: func(spec *corev1.PodSpec) {
			spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: hiddenSecret},
			}}}
		}},
		{name: "user of the machine", never: at.word, change: func(spec *corev1.PodSpec) {
			spec.HostPID, spec.SecurityContext = true, &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
		}},
		{name: "working folder", args: []string{"--file=word"}, never: at.word, change: func(spec *corev1.PodSpec) {
			spec.Containers[0].WorkingDir = filepath.Dir(at.file)
		}},
	}...)
}

// notByItself expects that Pods cannot make themselves run as a process or another program, or get more than they
// may.
func (p *programs) notByItself(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	at := target{self: self, word: "a-word-of-this-machine", file: filepath.Join(t.TempDir(), "word")}
	must(t, os.WriteFile(at.file, []byte(at.word), 0o600))
	at.node = p.hide(t, at.word)
	_, err = p.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Data: map[string]string{"LD_PRELOAD": "/evil.so"},
	}, created)
	must(t, err)
	p.noneEnds(t)
	before := p.running(t)
	attempts := podAttempts(at)
	refused := make([]error, len(attempts))
	name := func(i int) string { return fmt.Sprintf("attempt-%d", i) }
	for i, a := range attempts { // all at once, so that this does not take long
		image := a.image
		if image == "" {
			image = programImage
		}
		_, refused[i] = p.create(t.Context(), name(i), image, a.change, a.args...)
	}
	for i, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			if a.refused != "" || refused[i] != nil {
				if a.refused == "" || refused[i] == nil || !strings.Contains(refused[i].Error(), a.refused) {
					t.Errorf("the Pod is refused with %v, not with %q", refused[i], a.refused)
				}
				return
			}
			p.came(t, name(i), a)
			p.remove(t, name(i))
		})
	}
	t.Run("ConfigMap that changes", func(t *testing.T) { p.changes(t, at) })
	eventually(t, waitTimeout, func(context.Context) error {
		if now := p.running(t); !slices.Equal(before, now) {
			return fmt.Errorf("the processes were %v and are %v", before, now)
		}
		return nil
	})
}

// noneEnds waits until no Pod is being deleted: a Pod that is gone has no process any more.
func (p *programs) noneEnds(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("the Pod %s is being deleted", pod.Name)
			}
		}
		return nil
	})
}

// hide creates a Pod in another namespace that uses a Secret, and returns its Node, which can read this Secret.
func (p *programs) hide(t *testing.T, word string) (node string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	_, err := p.client.CoreV1().Namespaces().Create(t.Context(), namespace, created)
	must(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, StringData: map[string]string{"word": word}}
	_, err = p.client.CoreV1().Secrets("other").Create(t.Context(), secret, created)
	must(t, err)
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "simulated", Image: "nginx"}}}
	volumeOf(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hidden"}}, corev1.VolumeMount{MountPath: "/v"})(&spec)
	pods := p.client.CoreV1().Pods("other")
	eventually(t, waitTimeout, func(ctx context.Context) error { // not before the namespace has its ServiceAccount
		_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "has"}, Spec: spec}, created)
		return err
	})
	eventually(t, waitTimeout, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "has", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("the Pod is %s", pod.Status.Phase)
		}
		if err == nil {
			node = pod.Spec.NodeName
		}
		return err
	})
	return node
}

// came waits for the expected result of an attempt that was not refused.
func (p *programs) came(t *testing.T, name string, a podAttempt) {
	t.Helper()
	if a.notStarted != "" {
		p.until(t, name, a.notStarted+" "+a.says, func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == a.notStarted && strings.Contains(s.State.Waiting.Message, a.says)
		})
		return
	}
	s := p.until(t, name, "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	if isProcess := strings.HasPrefix(s.ContainerID, "process://"); isProcess != (a.image == "") {
		t.Errorf("the container is %s", s.ContainerID)
	}
	if a.image != "" {
		return
	}
	if log := p.logs(t, name, "arguments", "secrets secrets is forbidden"); strings.Contains(log, a.never) {
		t.Errorf("the process has %s: %s", a.never, log)
	}
}

// changes expects that a process reads the new text of a mounted ConfigMap that changes, and no other file.
func (p *programs) changes(t *testing.T, at target) {
	configMaps := p.client.CoreV1().ConfigMaps("default")
	cm, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "changes"}, Data: map[string]string{"word": "first"},
	}, created)
	must(t, err)
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "changes"}}}
	_, err = p.create(t.Context(), "changes", programImage, volumeOf(source, corev1.VolumeMount{MountPath: "/v"}), "--file=/v/word")
	must(t, err)
	p.until(t, "changes", "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	p.logs(t, "changes", "file first")
	for _, key := range []string{"..data", "../word", "/word"} {
		other := cm.DeepCopy()
		other.Data[key] = "other"
		_, err := configMaps.Update(t.Context(), other, metav1.UpdateOptions{})
		if err == nil || !strings.Contains(err.Error(), "data["+key+"]") {
			t.Errorf("a ConfigMap with the key %q: %v", key, err)
		}
	}
	cm.Data["word"] = "kind: Config # " + at.file // paths of mounts are replaced in kubeconfigs, others are not
	_, err = configMaps.Update(t.Context(), cm, metav1.UpdateOptions{})
	must(t, err)
	if log := p.logs(t, "changes", "file kind: Config # "+at.file); strings.Contains(log, at.word) {
		t.Errorf("the process has %s: %s", at.word, log)
	}
	p.remove(t, "changes")
}
