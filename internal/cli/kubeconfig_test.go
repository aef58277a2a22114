package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
)

// writeLandscape makes a state directory with the kubeconfig of a landscape, and returns the path of that.
func writeLandscape(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, statedir.KubeconfigFile)
	if err := os.WriteFile(file, kubeconfigOf(t, "gardenlite-default", "https://127.0.0.1:6443"), 0o600); err != nil {
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
	config, err := readGardenKubeconfig(writeLandscape(t))
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

// TestMergeIntoLandscapesKubeconfig checks that the garden is found after the kubeconfig of a Shoot was merged into the
// landscape's own file.
func TestMergeIntoLandscapesKubeconfig(t *testing.T) {
	file := writeLandscape(t)
	t.Setenv("KUBECONFIG", file) // as the README says
	config, err := clientcmd.Load(kubeconfigOf(t, "shoot", "https://127.0.0.1:23456"))
	if err != nil {
		t.Fatal(err)
	}
	if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config); err != nil {
		t.Fatal(err)
	}
	garden, err := readGardenKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(garden.Clusters) != 1 || garden.Clusters["gardenlite-default"].Server != "https://127.0.0.1:6443" {
		t.Errorf("the garden's clusters are %+v", garden.Clusters)
	}
}
