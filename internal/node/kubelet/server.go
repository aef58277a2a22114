package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	// Port is the port of the kubelet's API.
	Port = 10250
	// apiServerUser is the user that may access the API: the shoot's API server, as Gardener names it for kubelets.
	apiServerUser = "system:kube-apiserver:kubelet"

	servingLife       = 365 * 24 * time.Hour
	readHeaderTimeout = 10 * time.Second
	maxHeaderBytes    = 16 << 10
	// forwardIdle and forwardCreation are the kubelet's timeouts for forwarded ports.
	forwardIdle     = 4 * time.Hour
	forwardCreation = 30 * time.Second
)

// serve serves the kubelet's API until the context ends.
func (k *Kubelet) serve(ctx context.Context, config node.KubeletConfig) {
	if k.host.Listen == nil || config.ClientCA == "" && !k.host.OnlyAPIServer {
		return
	}
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for ctx.Err() == nil {
		if err := k.serveOnce(ctx, config); err != nil && ctx.Err() == nil {
			k.host.Logf("the API of the kubelet: %v", err)
		}
		if host.Sleep(ctx, k.host.Clock, backoff.Next()) != nil {
			return
		}
	}
}

func (k *Kubelet) serveOnce(ctx context.Context, config node.KubeletConfig) error {
	certificate, err := k.servingCertificate()
	if err != nil {
		return err
	}
	handler, tlsConfig := k.handler(),
		&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
			Time: func() time.Time { return landscapeclock.Real(k.host.Clock) }}
	if !k.host.OnlyAPIServer {
		clients := x509.NewCertPool()
		if !clients.AppendCertsFromPEM([]byte(config.ClientCA)) {
			return fmt.Errorf("there is no certificate in clientCA of %s", node.PathKubeletConfig)
		}
		handler, tlsConfig.ClientAuth, tlsConfig.ClientCAs = onlyAPIServer(handler), tls.RequireAndVerifyClientCert, clients
	}
	listener, err := k.host.Listen(Port)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, MaxHeaderBytes: maxHeaderBytes, TLSConfig: tlsConfig,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // it would contain connections that send nothing
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	return server.ServeTLS(listener, "", "")
}

// servingCertificate returns a self-signed certificate, as kubelets without a signed one use. It need not be trusted:
// the API server authenticates itself, and reaches the machine only through the network of the shoot.
func (k *Kubelet) servingCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("generating the key of the kubelet's API: %w", err)
	}
	now := landscapeclock.Real(k.host.Clock)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: k.host.Hostname}, DNSNames: []string{k.host.Hostname},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(servingLife), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, address := range k.host.Addresses {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of the kubelet's API: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// onlyAPIServer refuses all clients but the API server: nodes and users have certificates of the same authority.
func onlyAPIServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.VerifiedChains[0][0].Subject.CommonName != apiServerUser {
			http.Error(w, "only the API server may ask the kubelet", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (k *Kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.containerLogs)
	mux.HandleFunc("GET /stats/summary", k.summary)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.portForward)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "there is no container to enter: containers are simulated, or processes of this machine", http.StatusNotImplemented)
	})
	return mux
}

func podOf(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
}

// containerLogs serves the log of a container for kubectl logs.
func (k *Kubelet) containerLogs(w http.ResponseWriter, r *http.Request) {
	options := &corev1.PodLogOptions{}
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, options); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options.Container = r.PathValue("container")
	out := &flushed{w: w}
	pod := k.processes.of(podOf(r))
	if pod == nil {
		k.simulatedLogs(out, r, options.Follow)
		return
	}
	if options.Follow {
		out.flush()
	}
	if err := pod.Logs(r.Context(), options, out); err != nil && !out.begun && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// simulatedLogs serves the log of a simulated container, which is empty. With follow, it ends with the Pod.
func (k *Kubelet) simulatedLogs(out *flushed, r *http.Request, follow bool) {
	out.flush()
	if !follow {
		return
	}
	ended := k.running.ended(podOf(r))
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-r.Context().Done():
	}
}

// flushed is a writer that flushes after each write.
type flushed struct {
	w     http.ResponseWriter
	begun bool
}

func (f *flushed) Write(data []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(data)
	_ = http.NewResponseController(f.w).Flush()
	return n, err
}

func (f *flushed) flush() {
	f.w.Header().Set("Content-Type", "text/plain")
	_, _ = f.Write(nil)
}

const noProgram = "the containers of this Pod are simulated: there is no program to connect to"

// portForward serves kubectl port-forward for Pods that run as processes. Gardener's gardenlet checks that a shoot's API server reaches
// the nodes with a forwarder to vpn-shoot that connects to nothing.
func (k *Kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	key := podOf(r)
	pod := k.processes.of(key)
	if pod == nil && (key.Namespace != metav1.NamespaceSystem || !strings.HasPrefix(key.Name, "vpn-shoot-")) {
		http.Error(w, noProgram, http.StatusNotImplemented)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	uid := ""
	if pod != nil {
		uid = pod.UID()
	}
	portforward.ServePortForward(w, r, forwarder{pod}, uid, uid, options, forwardIdle, forwardCreation,
		portforward.SupportedProtocols)
}

// forwarder connects to a port on which a process of the Pod listens. A Pod without processes is nil.
type forwarder struct{ pod *process.Pod }

// PortForward implements portforward.PortForwarder.
func (f forwarder) PortForward(ctx context.Context, _ string, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	if f.pod == nil {
		return errors.New(noProgram)
	}
	if !f.pod.Listens(int(port)) {
		return fmt.Errorf("no process of the Pod listens on port %d", port)
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(connection, stream)
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	})
	_, err = io.Copy(stream, connection)
	_ = stream.Close()
	copying.Wait()
	return err
}

// summary serves the resource usage of the node's processes. It does not contain simulated Pods.
func (k *Kubelet) summary(w http.ResponseWriter, _ *http.Request) {
	summary := stats.Summary{Node: stats.NodeStats{NodeName: k.host.Hostname}, Pods: []stats.PodStats{}}
	for _, pod := range k.processes.all() {
		object := pod.Object()
		summary.Pods = append(summary.Pods, stats.PodStats{
			PodRef:     stats.PodReference{Name: object.Name, Namespace: object.Namespace, UID: string(object.UID)},
			StartTime:  ptr.Deref(object.Status.StartTime, metav1.Time{}),
			Containers: pod.Usage(),
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(summary) // the client is gone if it fails
}
