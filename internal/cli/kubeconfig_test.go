package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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
	if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config, ""); err != nil {
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
		if err := mergeKubeconfig(&globals{streams: streams{err: &bytes.Buffer{}}}, config, ""); err != nil {
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

// TestContextSetting checks what turns --kubeconfig-context on: the command line counts more than the variable.
func TestContextSetting(t *testing.T) {
	for name, test := range map[string]struct {
		setting string
		args    []string
		want    bool
		refused bool
	}{
		"nothing":         {},
		"the variable":    {setting: "1", want: true},
		"the flag":        {args: []string{"--kubeconfig-context"}, want: true},
		"the flag is off": {setting: "true", args: []string{"--kubeconfig-context=false"}},
		"neither":         {setting: "sometimes", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(contextEnv, test.setting)
			var output string
			wanted, cmd := false, &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil },
				SilenceErrors: true, SilenceUsage: true}
			addOutputFlag(cmd, &output, "text")
			addContextFlag(cmd, &wanted)
			cmd.SetArgs(test.args)
			if err := cmd.Execute(); (err != nil) != test.refused || wanted != test.want {
				t.Errorf("%t, %v", wanted, err)
			}
			cmd.SetArgs(append(test.args, "-o", "xml"))
			if err := cmd.Execute(); err == nil {
				t.Error("the output is not checked any more")
			}
		})
	}
}

// Names from a cluster get into the user's kubeconfig only if every program reads them as one word.
func TestMergeRefusesNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)
	for _, name := range []string{"a\nb", "a b", "$(reboot)", "-x", ""} {
		config := clientcmdapi.NewConfig()
		config.Contexts[name], config.CurrentContext = clientcmdapi.NewContext(), "fine"
		if err := mergeFromCluster(&globals{streams: streams{err: &bytes.Buffer{}}}, config, ""); err == nil {
			t.Errorf("%q is a context", name)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is written: %v", err)
	}
}
