package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// gardenResources is every resource of the garden API.
var gardenResources = []string{
	"core.gardener.cloud/v1beta1/backupbuckets", "core.gardener.cloud/v1beta1/backupentries",
	"core.gardener.cloud/v1beta1/cloudprofiles", "core.gardener.cloud/v1beta1/namespacedcloudprofiles",
	"core.gardener.cloud/v1beta1/controllerdeployments", "core.gardener.cloud/v1/controllerdeployments",
	"core.gardener.cloud/v1beta1/controllerregistrations", "core.gardener.cloud/v1beta1/controllerinstallations",
	"core.gardener.cloud/v1beta1/exposureclasses", "core.gardener.cloud/v1beta1/quotas",
	"core.gardener.cloud/v1beta1/secretbindings", "core.gardener.cloud/v1beta1/internalsecrets",
	"core.gardener.cloud/v1beta1/projects", "core.gardener.cloud/v1beta1/seeds",
	"core.gardener.cloud/v1beta1/shoots", "core.gardener.cloud/v1beta1/shootstates",
	"operations.gardener.cloud/v1alpha1/bastions",
	"security.gardener.cloud/v1alpha1/credentialsbindings", "security.gardener.cloud/v1alpha1/workloadidentities",
	"seedmanagement.gardener.cloud/v1alpha1/gardenlets", "seedmanagement.gardener.cloud/v1alpha1/managedseeds",
	"seedmanagement.gardener.cloud/v1alpha1/managedseedsets",
}

// gardenClient asks a garden with its administrator's kubeconfig.
type gardenClient struct {
	client *http.Client
	host   string
}

// openGarden returns a client once the process has written where it listens.
func openGarden(dir string, pid int) *gardenClient {
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return nil
	}
	var run struct {
		PID int    `json:"pid"`
		URL string `json:"url"`
	}
	if json.Unmarshal(data, &run) != nil || run.PID != pid || run.URL == "" {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil || config.Host != run.URL {
		return nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil
	}
	return &gardenClient{client: client, host: run.URL}
}

// listAll says whether the API server is ready and every resource can be listed.
func (g *gardenClient) listAll() bool {
	if get(g.client, g.host+"/readyz", "") != nil {
		return false
	}
	// Side by side: a consistent list waits up to 100 ms for the watch cache, in every kube-apiserver.
	failed := make(chan bool, len(gardenResources))
	for _, resource := range gardenResources {
		go func() { failed <- get(g.client, g.host+"/apis/"+resource, "") != nil }()
	}
	ok := true
	for range gardenResources {
		ok = !<-failed && ok
	}
	return ok
}

// seedReady says whether the Seed's gardenlet has its identity, and all conditions of the Seed are good.
func (g *gardenClient) seedReady(name string) bool {
	body, err := read(g.client, g.host+"/apis/core.gardener.cloud/v1beta1/seeds/"+name, "")
	if err != nil {
		return false
	}
	var seed struct {
		Status struct {
			Expires    string `json:"clientCertificateExpirationTimestamp"`
			Conditions []struct{ Type, Status string }
		}
	}
	if json.Unmarshal(body, &seed) != nil || seed.Status.Expires == "" {
		return false
	}
	ready := map[string]bool{}
	for _, c := range seed.Status.Conditions {
		ready[c.Type] = c.Status == "True"
	}
	return ready["GardenletReady"] && ready["SeedSystemComponentsHealthy"] && ready["BackupBucketsReady"] && ready["ExtensionsReady"]
}

func get(client *http.Client, url, token string) error {
	_, err := read(client, url, token)
	return err
}

func read(client *http.Client, url, token string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, nil
}

// status is what the benchmark reads of "gardenlite status -o json".
type status struct {
	Memory struct {
		Resident uint64 `json:"resident"`
		LiveHeap uint64 `json:"liveHeap"`
	} `json:"memory"`
	Goroutines int `json:"goroutines"`
	Phases     []struct {
		Name string        `json:"name"`
		Took time.Duration `json:"took"`
	} `json:"phases"`
}

func (s *status) parse(data []byte) error { return json.Unmarshal(data, s) }

// credentials are what the bare kube-apiserver is given, so that it need not make them.
type credentials struct {
	cert, key, tokens, token string
	client                   *http.Client
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
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return c, err
	}
	c.cert, c.key, c.tokens, c.token = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "tokens.csv"), rand.Text()
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{
		c.cert: certPEM, c.key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		c.tokens: []byte(c.token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return c, err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return c, nil
}
