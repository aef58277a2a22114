package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// writeLandscape makes a state directory with a kubeconfig of a landscape, and returns the path of that.
func writeLandscape(t *testing.T, context string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, statedir.KubeconfigFile)
	if err := os.WriteFile(file, kubeconfigOf(t, context, "https://127.0.0.1:6443"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := statedir.WriteRun(dir, &statedir.Run{Name: "default"}); err != nil {
		t.Fatal(err)
	}
	return file
}

func kubeconfigOf(t *testing.T, context, url string) []byte {
	t.Helper()
	data, err := clientcmd.Write(*controlplane.Kubeconfig(context, url, []byte("ca"), []byte("cert"), []byte("key")))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestMergeKubeconfig checks that all of a kubeconfig that was read from a file is merged into the user's own file.
func TestMergeKubeconfig(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	t.Setenv("KUBECONFIG", own)
	config, err := readKubeconfig(writeLandscape(t, "gardenlite-default"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config); err != nil {
		t.Fatal(err)
	}
	client, err := clientcmd.BuildConfigFromFlags("", own)
	if err != nil || client.Host != "https://127.0.0.1:6443" || string(client.CertData) != "cert" {
		t.Errorf("the user's file leads to %+v, %v", client, err)
	}
}

// TestMergeIntoLandscapesKubeconfig checks that the garden and a seed are found after the kubeconfig of a Shoot was merged into
// the landscape's own file.
func TestMergeIntoLandscapesKubeconfig(t *testing.T) {
	for seed, context := range map[string]string{"": "gardenlite-default", "local": "gardenlite-default-seed-local"} {
		file := writeLandscape(t, context)
		t.Setenv("KUBECONFIG", file) // as the README says
		config, err := clientcmd.Load(kubeconfigOf(t, "shoot", "https://127.0.0.1:23456"))
		if err != nil {
			t.Fatal(err)
		}
		if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config); err != nil {
			t.Fatal(err)
		}
		own, err := readKubeconfig(file, seed)
		if err != nil {
			t.Fatal(err)
		}
		if len(own.Clusters) != 1 || own.Clusters[context].Server != "https://127.0.0.1:6443" {
			t.Errorf("the clusters are %+v", own.Clusters)
		}
	}
}

// TestForgetContexts checks that a reset removes the contexts of the landscape's clusters from the user's own kubeconfig, and
// leaves those of other clusters.
func TestForgetContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "own"))
	shared := map[string]pki.Shared{}
	for _, name := range []string{"garden", "shoots/shoot--dev--a", "elsewhere"} {
		folder := filepath.Join(dir, statedir.PKIFolder, name)
		if name == "elsewhere" {
			folder = t.TempDir()
		}
		var err error
		if shared[name], err = pki.Export(pki.Config{Dir: folder, Name: name, Clock: clock.RealClock{}}); err != nil {
			t.Fatal(err)
		}
		config := controlplane.Kubeconfig("context-"+name, "https://127.0.0.1:1", shared[name]["ca.crt"], []byte("cert"), []byte("key"))
		if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config); err != nil {
			t.Fatal(err)
		}
	}
	if err := clientcmd.ModifyConfig(clientcmd.NewDefaultPathOptions(), *ownKubeconfig(t, "context-garden"), true); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, nothing is left to be removed
		said := &bytes.Buffer{}
		forgetContexts(&globals{streams: streams{err: said}}, ofLandscape(dir))
		own := ownKubeconfig(t, "")
		if len(own.Contexts) != 1 || len(own.Clusters) != 1 || len(own.AuthInfos) != 1 || own.Contexts["context-elsewhere"] == nil ||
			own.CurrentContext != "" || strings.Contains(said.String(), "WARNING") {
			t.Errorf("it says %q; the kubeconfig has %v, %v, %v", said, own.Contexts, own.Clusters, own.AuthInfos)
		}
	}
}

// ownKubeconfig returns the user's own kubeconfig, with a current context if one is given.
func ownKubeconfig(t *testing.T, current string) *clientcmdapi.Config {
	t.Helper()
	own, err := clientcmd.NewDefaultPathOptions().GetStartingConfig()
	if err != nil {
		t.Fatal(err)
	}
	if current != "" {
		own.CurrentContext = current
	}
	return own
}

// Names from a cluster get into the user's kubeconfig only if every program reads them as one word.
func TestMergeRefusesNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)
	for _, name := range []string{"a\nb", "a b", "$(reboot)", "-x", ""} {
		config := clientcmdapi.NewConfig()
		config.Contexts[name], config.CurrentContext = clientcmdapi.NewContext(), "fine"
		if err := mergeFromCluster(&globals{streams: streams{err: &bytes.Buffer{}}}, config); err == nil {
			t.Errorf("%q is a context", name)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is written: %v", err)
	}
}
