package harness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// MeasureBaseline starts etcd and kube-apiserver in parallel, with defaults. It returns how long it took until /readyz
// was ok, and the resident memory of kube-apiserver then, in bytes.
func MeasureBaseline(ctx context.Context, folder string) (took time.Duration, resident uint64, err error) {
	err = WithBaseline(ctx, folder, func(s BaselineServer) error {
		took, resident = s.Took, s.Resident
		return nil
	})
	return took, resident, err
}

// BaselineServer is a running kube-apiserver with etcd, both with default flags.
type BaselineServer struct {
	// Took is how long it took until /readyz was ok, and Resident the resident memory of kube-apiserver then, in
	// bytes.
	Took     time.Duration
	Resident uint64
	// Config is a client configuration for a user with all rights.
	Config *rest.Config
	// Dir is the folder of the servers, which goes with them.
	Dir string
	// Certificate and Key are the files with which the servers serve at 127.0.0.1.
	Certificate, Key string

	begin     time.Time
	etcd      string
	processes []*Process
}

// WithBaseline starts etcd and kube-apiserver in parallel, calls fn once /readyz is ok, and ends them.
func WithBaseline(ctx context.Context, folder string, fn func(BaselineServer) error) error {
	dir, err := os.MkdirTemp("", "bench-baseline-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := startBaseline(dir, folder)
	defer s.end()
	if err != nil {
		return err
	}
	probe, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return err
	}
	if err := s.wait(ctx, func() bool { return Get(probe, s.Config.Host+"/readyz") == nil }); err != nil {
		return err
	}
	s.Took, s.Resident = time.Since(s.begin), s.processes[1].Resident()
	return fn(*s)
}

// startBaseline starts etcd and kube-apiserver.
func startBaseline(dir, folder string) (*BaselineServer, error) {
	files, err := writeCredentials(dir) // not part of the time: gardenlite's own are
	if err != nil {
		return &BaselineServer{}, err
	}
	client, peer, secure := FreePort(), FreePort(), FreePort()
	s := &BaselineServer{
		Config: &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", secure), BearerToken: files.token, QPS: -1,
			TLSClientConfig: rest.TLSClientConfig{CAData: files.ca}},
		Dir: dir, Certificate: files.cert, Key: files.key, begin: time.Now(), etcd: httpURL(client),
	}
	if err := s.start(folder, "etcd",
		"--data-dir="+filepath.Join(dir, "etcd"), "--log-level=error",
		"--listen-client-urls="+s.etcd, "--advertise-client-urls="+s.etcd,
		"--listen-peer-urls="+httpURL(peer), "--initial-advertise-peer-urls="+httpURL(peer),
		"--initial-cluster=default="+httpURL(peer)); err != nil {
		return s, err
	}
	return s, s.start(folder, "kube-apiserver",
		"--etcd-servers="+s.etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", secure), "--cert-dir="+dir, "--tls-cert-file="+files.cert, "--tls-private-key-file="+files.key,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC,Node",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+files.key,
		"--service-account-signing-key-file="+files.key, "--token-auth-file="+files.tokens,
		"--proxy-client-cert-file="+files.cert, "--proxy-client-key-file="+files.key, "--requestheader-client-ca-file="+files.cert,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-")
}

func (s *BaselineServer) start(folder, program string, args ...string) error {
	p, err := Start(s.Dir, filepath.Join(folder, program), args...)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return err
}

func (s *BaselineServer) end() {
	for _, p := range slices.Backward(s.processes) {
		p.End()
	}
}

// CPU returns the processor time that the servers have used.
func (s BaselineServer) CPU() (sum time.Duration) {
	for _, p := range s.processes {
		sum += p.CPU()
	}
	return sum
}

// Memory returns the resident memory of the servers in bytes.
func (s BaselineServer) Memory() (sum uint64) {
	for _, p := range s.processes {
		sum += p.Resident()
	}
	return sum
}

// wait waits until a condition is met, and returns an error if one of the servers ends.
func (s *BaselineServer) wait(ctx context.Context, condition func() bool) error {
	return Poll(ctx, time.Minute, func() (bool, error) {
		for _, p := range s.processes {
			if p.Ended() {
				return false, fmt.Errorf("%s ended: %s", filepath.Base(p.cmd.Path), p.Log())
			}
		}
		return condition(), nil
	})
}

// credentials are created for the kube-apiserver, which then does not create its own.
type credentials struct {
	cert, key, tokens, token string
	ca                       []byte
}

func writeCredentials(dir string) (c credentials, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "baseline"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return c, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return c, err
	}
	c.cert, c.key, c.tokens, c.token = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"),
		filepath.Join(dir, "tokens.csv"), rand.Text()
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{
		c.cert: c.ca, c.key: keyPEM,
		c.tokens: []byte(c.token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}
