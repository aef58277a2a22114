package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// kubectl expects that kubectl works in a Shoot as in any cluster.
func (p *programs) kubectl(t *testing.T, s *shoot) {
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600)
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, data, 0o600))
	k := &kubectl{programs: p, kubeconfig: kubeconfig}
	t.Run("simulated", k.simulated)
	t.Run("grace period", k.gracePeriod)
	t.Run("process", k.process)
}

type kubectl struct {
	*programs
	kubeconfig string
}

func (k *kubectl) run(t *testing.T, args ...string) result {
	t.Helper()
	return command(t, "", kubectlBinary, append([]string{"--kubeconfig", k.kubeconfig}, args...)...).OK(t)
}

// describes waits until kubectl describe shows some words: Events come later than what they tell of.
func (k *kubectl) describes(t *testing.T, what string, words ...string) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		shown := k.run(t, append([]string{"describe"}, strings.Fields(what)...)...).Stdout
		for _, word := range words {
			if !strings.Contains(shown, word) {
				return fmt.Errorf("kubectl describe %s does not show %q:\n%s", what, word, shown)
			}
		}
		return nil
	})
}

// simulated goes through the life of a Deployment whose Pods are simulated.
func (k *kubectl) simulated(t *testing.T) {
	k.run(t, "create", "deployment", "web", "--image=nginx", "--replicas=2")
	k.run(t, "rollout", "status", "deployment/web", "--timeout=2m").Shows(t, "successfully rolled out")
	k.run(t, "wait", "--for=condition=Available", "deployment/web", "--timeout=2m")
	k.run(t, "set", "resources", "deployment/web", "--requests=cpu=150m,memory=64Mi")
	k.run(t, "scale", "deployment/web", "--replicas=3")
	k.run(t, "rollout", "status", "deployment/web", "--timeout=2m")
	k.describes(t, "deployment/web", "3 available", "ScalingReplicaSet")
	k.describes(t, "pods -l app=web --show-events", "Started container nginx", "Scheduled")
	top := k.run(t, "top", "pods", "-l", "app=web", "--no-headers").Stdout
	if len(regexp.MustCompile(`(?m)^web-\S+ +150m +64Mi`).FindAllString(top, -1)) != 3 {
		t.Errorf("top shows of three Pods with 150m and 64Mi:\n%s", top)
	}
	r := command(t, "", kubectlBinary, "--kubeconfig", k.kubeconfig, "port-forward", "deployment/web", ":80")
	if r.Code == 0 || !strings.Contains(r.Stderr, "the containers of this Pod are simulated: there is no program to connect to") {
		t.Errorf("port-forward of a simulated Pod: %+v", r)
	}
	node := k.podsOf(t, "web")[0].Spec.NodeName
	if top := k.run(t, "top", "node", node).Stdout; !regexp.MustCompile(node + ` +[1-9]\d*m`).MatchString(top) {
		t.Errorf("top shows of a Node with Pods:\n%s", top)
	}
	k.run(t, "cordon", node)
	k.run(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=2m").Shows(t, "drained")
	for _, pod := range k.podsOf(t, "web") {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			t.Errorf("Pod %s is on the Node that was drained", pod.Name)
		}
	}
	k.run(t, "uncordon", node)
	k.run(t, "rollout", "status", "deployment/web", "--timeout=2m")
	k.reachesNothing(t, k.podsOf(t, "web")[0].Name, node)
	k.run(t, "delete", "deployment", "web")
}

// reachesNothing expects that the API server of the Shoot connects neither to a simulated Pod nor to other servers of this
// machine: here to that of the garden.
func (k *kubectl) reachesNothing(t *testing.T, pod, node string) {
	garden, err := url.Parse(k.l.kube.CoreV1().RESTClient().Get().URL().String())
	must(t, err)
	port := garden.Port()
	k.run(t, "create", "service", "externalname", "host", "--external-name=localhost", "--tcp="+port)
	defer k.run(t, "delete", "service", "host")
	for _, path := range []string{
		"/api/v1/namespaces/default/pods/" + pod + ":80/proxy/",
		"/api/v1/namespaces/default/services/https:host:" + port + "/proxy/version",
		"/api/v1/nodes/https:" + node + ":" + port + "/proxy/version",
	} {
		r := command(t, "", kubectlBinary, "--kubeconfig", k.kubeconfig, "get", "--raw", path)
		// A Service without a selector has no endpoints.
		if r.Code == 0 || !strings.Contains(r.Stderr, "there is nothing at") && !strings.Contains(r.Stderr, `services "host" not found`) {
			t.Errorf("%s: %d %s%s", path, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func (p *programs) podsOf(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	pods, err := p.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	must(t, err)
	return pods.Items
}

// gracePeriod deletes a simulated Pod that takes longer to end than a test lasts, and then shortens its grace period.
func (k *kubectl) gracePeriod(t *testing.T) {
	_, err := k.create(t.Context(), "slow", "nginx", func(spec *corev1.PodSpec) {
		spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3600}}}
		*spec.TerminationGracePeriodSeconds = 7200
	})
	must(t, err)
	k.until(t, "slow", "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	k.run(t, "delete", "pod", "slow", "--wait=false")
	k.run(t, "wait", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=7200", "pod/slow", "--timeout=1m")
	if s := k.until(t, "slow", "running", func(s corev1.ContainerStatus) bool { return s.State.Running != nil }); !s.Ready {
		t.Errorf("the container that ends slowly: %+v", s)
	}
	k.run(t, "delete", "pod", "slow", "--grace-period=1", "--timeout=2m")
	if _, err := k.client.CoreV1().Pods("default").Get(t.Context(), "slow", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Pod is not gone: %v", err)
	}
}

// process checks the log, the usage and a port of a Pod that is a process.
func (k *kubectl) process(t *testing.T) {
	port := testutil.UnusedPort(t)
	_, err := k.programs.create(t.Context(), "shown", programImage, func(spec *corev1.PodSpec) {
		spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/probe", "--exit=0"}},
		}}
		spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			GRPC: &corev1.GRPCAction{Port: int32(port)},
		}}
		spec.Containers[0].StartupProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 100, ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)},
		}}
	}, fmt.Sprintf("--health=%d", port))
	must(t, err)
	k.run(t, "wait", "--for=condition=Ready", "pod/shown", "--timeout=2m")
	eventually(t, waitTimeout, func(context.Context) error {
		r := command(t, "", kubectlBinary, "--kubeconfig", k.kubeconfig, "top", "pod", "shown", "--no-headers")
		if !regexp.MustCompile(`^shown +\d+m +[1-9]\d*Mi`).MatchString(r.Stdout) {
			return fmt.Errorf("top shows %q, %s", r.Stdout, r.Stderr)
		}
		return nil
	})
	k.followed(t)
	k.forwarded(t, port)
	k.run(t, "debug", "pod/shown", "--image=busybox", "--container=debugger")
	k.run(t, "wait", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}", "pod/shown", "--timeout=2m")
	k.describes(t, "pod shown", "process://", "Scheduled", "Started container program")
	k.run(t, "delete", "pod", "shown", "--grace-period=5")
}

// background starts kubectl, which runs until the test ends, and returns its output.
func (k *kubectl) background(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	cmd := exec.Command(kubectlBinary, append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewScanner(out)
}

func (k *kubectl) followed(t *testing.T) {
	for lines := k.background(t, "logs", "-f", "shown"); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "identity system:serviceaccount") {
			return
		}
	}
	t.Error("the log that is followed ends without the identity of the process")
}

// forwarded connects to the HTTP/2 server of the process, which answers its client's preface.
func (k *kubectl) forwarded(t *testing.T, port int) {
	lines := k.background(t, "port-forward", "pod/shown", fmt.Sprintf(":%d", port))
	if !lines.Scan() {
		t.Fatal("port-forward ends without a port")
	}
	_, local, _ := strings.Cut(strings.Fields(lines.Text())[2], ":")
	connection, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", local))
	must(t, err)
	defer connection.Close()
	_, err = connection.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	must(t, err)
	frame := make([]byte, 9)
	if n, err := connection.Read(frame); n == 0 {
		t.Errorf("nothing comes through the forwarded port: %v", err)
	}
}
