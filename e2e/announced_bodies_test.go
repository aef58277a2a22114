package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// refusalTimeout is how long a refusal may take on a busy machine. A server that waits for the body sends none.
const refusalTimeout = 30 * time.Second

// announceBody announces a body and sends none. It returns the status of the response; the connection stays open.
func announceBody(t *testing.T, config *rest.Config, path, authorization string) (status int, err error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return 0, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	conn, err := tls.Dial("tcp", target.Host, &tls.Config{RootCAs: roots})
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(refusalTimeout)); err != nil {
		return 0, err
	}
	if authorization != "" {
		authorization = "Authorization: " + authorization + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
		path, target.Host, authorization); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// announcedBodies: no API server waits for the body of a request that it does not authenticate, and others go on
// meanwhile.
func (s *shoot) announcedBodies(t *testing.T) {
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600)
	must(t, err)
	shootConfig, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(t, err)
	seedConfig, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.l.dir, "kubeconfig-seed-local"))
	must(t, err)
	kubeconfigPath := "/apis/core.gardener.cloud/v1beta1/namespaces/" + shootNamespace + "/shoots/" + s.name + "/adminkubeconfig"
	for _, test := range []struct {
		name   string
		config *rest.Config
		path   string
	}{
		{"garden", s.l.config(t), kubeconfigPath},
		{"seed", seedConfig, "/api/v1/namespaces"},
		{"shoot", shootConfig, "/api/v1/namespaces"},
	} {
		for authorization, want := range map[string]int{"": http.StatusForbidden, "Bearer wrong": http.StatusUnauthorized} {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if status, err := announceBody(t, test.config, test.path, authorization); err != nil || status != want &&
						status != http.StatusUnauthorized {
						t.Errorf("%s, Authorization %q: %d, %v", test.name, authorization, status, err)
					}
				})
			}
			if _, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600); err != nil {
				t.Errorf("a kubeconfig meanwhile: %v", err)
			}
			all.Wait()
		}
	}
}
