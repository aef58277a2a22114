package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/host"
)

const (
	// Port is where a kubelet answers the API server.
	Port = 10250
	// apiServerUser is who may ask: the shoot's API server, as Gardener names it at kubelets.
	apiServerUser = "system:kube-apiserver:kubelet"

	servingLife       = 365 * 24 * time.Hour
	readHeaderTimeout = 10 * time.Second
	maxHeaderBytes    = 16 << 10
)

// serve answers the API server until the context ends.
func (k *Kubelet) serve(ctx context.Context, config node.KubeletConfig) {
	if config.ClientCA == "" || k.host.Listen == nil {
		return
	}
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for ctx.Err() == nil {
		if err := k.serveOnce(ctx, config); err != nil && ctx.Err() == nil {
			k.host.Say("the API of the kubelet: %v", err)
		}
		if host.Sleep(ctx, k.host.Clock, backoff.Next()) != nil {
			return
		}
	}
}

func (k *Kubelet) serveOnce(ctx context.Context, config node.KubeletConfig) error {
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(config.ClientCA)) {
		return fmt.Errorf("there is no certificate in clientCA of %s", node.PathKubeletConfig)
	}
	certificate, err := k.servingCertificate()
	if err != nil {
		return err
	}
	listener, err := k.host.Listen(Port)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: onlyAPIServer(k.handler()), ReadHeaderTimeout: readHeaderTimeout, MaxHeaderBytes: maxHeaderBytes,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, Time: k.host.Clock.Now,
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // of connections that say nothing
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	return server.ServeTLS(listener, "", "")
}

// servingCertificate is self-signed, as that of a kubelet that gets none: the API server authenticates itself, and reaches
// the machine through the network of the shoot only.
func (k *Kubelet) servingCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("generating the key of the kubelet's API: %w", err)
	}
	now := k.host.Clock.Now()
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

// onlyAPIServer refuses everyone but the API server: nodes and users have certificates of the same authority.
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
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the containers of this Pod are simulated: there is no program to connect to", http.StatusNotImplemented)
	})
	return mux
}

// containerLogs answers kubectl logs: a simulated container writes nothing. With follow, the answer ends with the Pod.
func (k *Kubelet) containerLogs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	if r.URL.Query().Get("follow") != "true" {
		return
	}
	ended := k.running.ended(types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")})
	if ended == nil {
		return
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	select {
	case <-ended:
	case <-r.Context().Done():
	}
}
