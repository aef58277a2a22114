package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

const programImage = "example.com/program"

// TestProcesses runs this test's binary as the program of an image, in the garden, in a seed and in a Shoot.
func TestProcesses(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	l.mapImage(t)
	s := l.newShoot(t, "processes", nil)
	inGarden := &programs{l: l, client: l.kube}
	t.Run("in the garden", inGarden.lives)
	inSeed := &programs{l: l, client: l.seeds["local"]}
	t.Run("in a seed", inSeed.lives)
	s.waitForSucceeded(t)
	inShoot := &programs{l: l, client: clientOf(t, s.admin(t))}
	t.Run("in a Shoot", inShoot.lives)
	t.Run("kubectl", func(t *testing.T) { inShoot.kubectl(t, s) })
	t.Run("fails", inShoot.fails)
	t.Run("follows its Secret", inShoot.follows)
	t.Run("keeps its volume", inShoot.keepsVolume)
	t.Run("loses its identity", inShoot.loses)
	t.Run("webhook", inShoot.webhook)
	t.Run("not by itself", inShoot.notByItself)
	t.Run("killed", func(t *testing.T) { inShoot.killed(t, inSeed, inGarden) })
}

func (l *landscape) mapImage(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	script := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' %s \"$@\"\n", self, processArgument), 0o700))
	gardenlite(t, l.dir, "image", "run", programImage, script).OK(t)
}

// programs are the Pods of a cluster that run as processes.
type programs struct {
	l      *landscape
	client kubernetes.Interface
}

// deploy deploys the program, and waits until it runs.
func (p *programs) deploy(t *testing.T, name string, replicas int32, change func(*corev1.PodSpec), args ...string) {
	t.Helper()
	labels := map[string]string{"app": name}
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](10),
		Containers: []corev1.Container{
			{Name: "program", Image: programImage + ":v1", Command: []string{"/bin/something-else"}, Args: args}},
	}
	if change != nil {
		change(&spec)
	}
	_, err := p.client.AppsV1().Deployments("default").Create(
		t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		}}, created)
	must(t, err)
	p.ready(t, name, replicas)
}

func (p *programs) ready(t *testing.T, name string, replicas int32) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		d, err := p.client.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && (d.Status.ReadyReplicas != replicas || d.Status.ObservedGeneration != d.Generation) {
			err = fmt.Errorf("Deployment %s: %+v", name, d.Status)
		}
		return err
	})
}

// pod returns the only Pod of an app. It waits for it: its predecessor can be gone before a ReplicaSet creates it.
func (p *programs) pod(t *testing.T, name string) (pod *corev1.Pod) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d Pods of %s", len(pods.Items), name)
		}
		pod = &pods.Items[0]
		return nil
	})
	return pod
}

// logs waits until the log of the only Pod of an app has all lines.
func (p *programs) logs(t *testing.T, name string, lines ...string) string {
	t.Helper()
	pod := p.pod(t, name)
	var log string
	eventually(t, waitTimeout, func(ctx context.Context) error {
		data, err := p.client.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return err
		}
		log = string(data)
		for _, line := range lines {
			if !strings.Contains(log, line) {
				return fmt.Errorf("the log of %s does not have %q: %s", pod.Name, line, log)
			}
		}
		return nil
	})
	return log
}

// lives checks the identity, the environment and the files of a process. The files follow their Secret.
func (p *programs) lives(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "told"}, StringData: map[string]string{"word": "first"}}
	_, err := p.client.CoreV1().Secrets("default").Create(t.Context(), secret, created)
	must(t, err)
	p.deploy(t, "lives", 1, func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "told", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "told"}}}}
		c := &spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "told", MountPath: "/etc/told"}}
		c.Env = []corev1.EnvVar{
			{Name: "OWN", Value: "/etc/told/word"}, {Name: "LD_PRELOAD", Value: "/evil.so"}, {Name: "PATH", Value: "/evil"},
			{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}
	}, "--file=/etc/told/word", "$(POD)")
	pod := p.pod(t, "lives")
	log := p.logs(t, "lives", "file first", "identity system:serviceaccount:default:default\n", "secrets secrets is forbidden",
		"arguments ["+pod.Name+"]", "environment OWN="+p.l.dir, "environment HOME="+p.l.dir, "environment KUBERNETES_SERVICE_HOST=127.0.0.1")
	for _, never := range []string{"LD_PRELOAD", "/evil", "GARDENLITE_BINARY", "something-else"} {
		if strings.Contains(log, never) {
			t.Errorf("the process has %s: %s", never, log)
		}
	}
	secret.StringData["word"] = "second"
	_, err = p.client.CoreV1().Secrets("default").Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
	p.logs(t, "lives", "file second")
	must(t, p.client.AppsV1().Deployments("default").Delete(t.Context(), "lives", metav1.DeleteOptions{}))
	p.gone(t, pod)
}

// keepsVolume shows that the data of a claim outlives the Pod, and ends with the claim.
func (p *programs) keepsVolume(t *testing.T) {
	claims := p.client.CoreV1().PersistentVolumeClaims("default")
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "counter"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, created)
	must(t, err)
	p.deploy(t, "counter", 1, func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "counter"},
		}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/counter", SubPath: "starts"}}
	}, "--count=/var/lib/counter/file")
	p.logs(t, "counter", "start 1 <nil>")
	claim, err := claims.Get(t.Context(), "counter", metav1.GetOptions{})
	must(t, err)
	volume, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
	must(t, err)
	data := filepath.Join(p.l.dir, "processes", "volumes", "shoot--dev--processes", string(volume.UID))
	if info, err := os.Stat(filepath.Join(data, "starts", "file")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the data of the volume: %v, %v", info, err)
	}
	first := p.pod(t, "counter")
	must(t, p.client.CoreV1().Pods("default").Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	p.gone(t, first)
	p.ready(t, "counter", 1)
	p.logs(t, "counter", "start 2 <nil>")
	last := p.pod(t, "counter")
	must(t, p.client.AppsV1().Deployments("default").Delete(t.Context(), "counter", metav1.DeleteOptions{}))
	must(t, claims.Delete(t.Context(), "counter", metav1.DeleteOptions{}))
	p.gone(t, last)
	eventually(t, waitTimeout, func(context.Context) error {
		if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the data of the volume is still there: %v", err)
		}
		return nil
	})
}

// statusProcess is a process in the status.
type statusProcess struct {
	Pod string
	PID int
}

func (p *programs) running(t *testing.T) []statusProcess {
	t.Helper()
	var status struct{ Processes []statusProcess }
	must(t, json.Unmarshal([]byte(gardenlite(t, p.l.dir, "status", "-o", "json").OK(t).Stdout), &status))
	return status.Processes
}

// gone waits until a Pod and its process are gone.
func (p *programs) gone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventuallyGonePod(t, p.client, pod)
	for _, process := range p.running(t) {
		if process.Pod == pod.Name {
			t.Errorf("the process %d of %s still runs", process.PID, pod.Name)
		}
	}
}

func eventuallyGonePod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if _, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("Pod %s is still there: %v", pod.Name, err)
		}
		return nil
	})
}

// webhook expects that the API server calls a webhook behind a Service, that it calls it again after its process was
// killed, and that the failure policy decides while there is no process.
func (p *programs) webhook(t *testing.T) {
	port := testutil.UnusedPort(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("hook.default.svc", nil, nil)
	must(t, err)
	_, err = p.client.CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key}}, created)
	must(t, err)
	p.deploy(t, "hook", 1, func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "hook", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hook"}}}}
		c := &spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "hook", MountPath: "/certificates"}}
		c.ReadinessProbe = &corev1.Probe{
			PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}}
	}, "--certificates=/certificates", fmt.Sprintf("--port=%d", port))
	_, err = p.client.CoreV1().Services("default").Create(
		t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "hook"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt(port)}},
		}}, created)
	must(t, err)
	hooks := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.example.com", SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: certificate, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hook"}},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hook": "yes"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}}}, created)
	must(t, err)
	p.answers(t, "refused by the program")
	p.comesBack(t)
	must(t, p.client.AppsV1().Deployments("default").Delete(t.Context(), "hook", metav1.DeleteOptions{}))
	p.answers(t, "service default/hook has no ready Pod that runs as a process")
	ignore := []byte(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
	_, err = hooks.Patch(t.Context(), "hook", types.JSONPatchType, ignore, metav1.PatchOptions{})
	must(t, err)
	p.answers(t, allowed)
	must(t, hooks.Delete(t.Context(), "hook", metav1.DeleteOptions{}))
}

// allowed is the answer to a request that is not refused.
const allowed = "allowed"

// answers waits until the creation of a ConfigMap is refused with a message, or allowed.
func (p *programs) answers(t *testing.T, message string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "hooked-", Labels: map[string]string{"hook": "yes"}}}
		_, err := p.client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		answer := allowed
		if err != nil {
			answer = err.Error()
		}
		if !strings.Contains(answer, message) {
			return fmt.Errorf("the answer is %q, want %q", answer, message)
		}
		return nil
	})
}
