package process

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// redirectTo is the variable with which the test is a program that redirects all requests.
const redirectTo = "REDIRECT_TO"

func init() {
	if to := os.Getenv(redirectTo); to != "" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("LISTEN_AT"), http.RedirectHandler(to, http.StatusFound)))
		os.Exit(1)
	}
}

// TestProbeEndsWithPod checks that a Pod ends although its probe waits for the answer of a program that is not one of its
// processes.
func TestProbeEndsWithPod(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	asked := make(chan net.Conn, 1)
	go func() {
		if connection, err := silent.Accept(); err == nil {
			asked <- connection
		}
	}()
	port := testutil.UnusedPort(t)
	at := fmt.Sprintf("127.0.0.1:%d", port)
	w := startWorld(t, t.TempDir(), os.Args[0])
	pod := newPod("p", corev1.RestartPolicyAlways)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: redirectTo, Value: "http://" + silent.Addr().String()}, {Name: "LISTEN_AT", Value: at}}
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{TimeoutSeconds: 3600, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(port)}}}
	p := w.run(pod)
	var connection net.Conn
	testutil.EventuallyTrue(t, "the probe is redirected", func() bool {
		select {
		case connection = <-asked:
			return true
		default:
			w.clock.Step(time.Second)
			return false
		}
	})
	defer connection.Close()
	p.Stop(0)
	testutil.EventuallyTrue(t, "the Pod has ended", func() bool {
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	})
}
