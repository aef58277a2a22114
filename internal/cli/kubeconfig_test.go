package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/controlplane"
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
