package shootplane

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// TestMovePorts: one shoot of two has a port at which another program listens.
func TestMovePorts(t *testing.T) {
	h := NewHost(HostConfig{Dir: t.TempDir()})
	other, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // a test's
	ports := map[string]int{"taken": other.Addr().(*net.TCPAddr).Port, "elsewhere": other.Addr().(*net.TCPAddr).Port}
	if ports["free"], err = h.ports.take("free"); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithStatusSubresource(&corev1.Service{})
	for id, port := range ports {
		if err := os.MkdirAll(filepath.Join(h.ports.dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := h.ports.keep(id, port); err != nil {
			t.Fatal(err)
		}
		if id == "elsewhere" { // in another seed
			continue
		}
		server := "https://" + net.JoinHostPort(address, strconv.Itoa(port))
		builder.WithObjects(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: spec.ServiceName},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: address, Ports: []corev1.PortStatus{{Port: int32(port)}}}, //nolint:gosec // a port
			}}},
		}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "access"}, Data: map[string][]byte{"kubeconfig": []byte("server: " + server + "\n")},
		})
	}
	seed := builder.Build()
	for range 2 { // the second time there is nothing to do
		if err := h.MovePorts(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
	if now := h.ports.recorded("elsewhere"); now != ports["elsewhere"] {
		t.Errorf("the shoot of another seed was at %d, and is at %d", ports["elsewhere"], now)
	}
	for _, id := range []string{"free", "taken"} {
		now := h.ports.recorded(id)
		if moved := now != ports[id]; moved != (id == "taken") {
			t.Errorf("the shoot %s was at %d, and is at %d", id, ports[id], now)
		}
		at := net.JoinHostPort(address, strconv.Itoa(now))
		service, secret := &corev1.Service{}, &corev1.Secret{}
		if err := seed.Get(t.Context(), client.ObjectKey{Namespace: id, Name: spec.ServiceName}, service); err != nil {
			t.Fatal(err)
		}
		if err := seed.Get(t.Context(), client.ObjectKey{Namespace: id, Name: "access"}, secret); err != nil {
			t.Fatal(err)
		}
		if kubeconfig := string(secret.Data["kubeconfig"]); spec.Endpoint(service) != at || !strings.Contains(kubeconfig, "https://"+at+"\n") {
			t.Errorf("the shoot %s is at %s; %s, %s", id, at, spec.Endpoint(service), kubeconfig)
		}
	}
}
