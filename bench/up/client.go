package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/bench/harness"
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

// gardenClient sends requests to a garden as its administrator.
type gardenClient struct {
	client *http.Client
	host   string
}

// openGarden returns a client, or nil while the process has not written its address.
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

// seedReady reports whether the Seed's gardenlet has its certificate, and all conditions of the Seed are good.
func (g *gardenClient) seedReady(name string) bool {
	body, err := harness.Read(g.client, g.host+"/apis/core.gardener.cloud/v1beta1/seeds/"+name)
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
