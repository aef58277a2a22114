package usercontexts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// kubeconfig returns a kubeconfig with one entry of each kind.
func kubeconfig(name string, authority []byte) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "token"}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// own returns the user's kubeconfig as another tool reads it.
func own(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.NewDefaultPathOptions().GetStartingConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// write writes a kubeconfig into the user's as another tool does.
func write(t *testing.T, config *clientcmdapi.Config) {
	t.Helper()
	if err := clientcmd.ModifyConfig(clientcmd.NewDefaultPathOptions(), *config, true); err != nil {
		t.Fatal(err)
	}
}

func TestSet(t *testing.T) {
	here, elsewhere, gone := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	for name, test := range map[string]struct {
		before  func(*testing.T)
		refused string
	}{
		"nothing":                     {before: func(*testing.T) {}},
		"its own":                     {before: set(Owner{Dir: here}, kubeconfig("x", nil))},
		"of a landscape that is gone": {before: set(Owner{Dir: gone}, kubeconfig("x", nil))},
		"of another landscape": {set(Owner{Dir: elsewhere}, kubeconfig("x", nil)),
			`has a context "x" that is not of the landscape in ` + here},
		"of another tool": {func(t *testing.T) { write(t, kubeconfig("x", nil)) }, `has a context "x"`},
		"a user of another tool": {func(t *testing.T) { write(t, without(kubeconfig("x", nil), "contexts", "clusters")) },
			`has a user "x"`},
		"a cluster of another tool": {func(t *testing.T) { write(t, without(kubeconfig("x", nil), "contexts", "users")) },
			`has a cluster "x"`},
		"another name of another tool": {before: func(t *testing.T) { write(t, kubeconfig("y", nil)) }},
		"an extension of another tool": {before: func(t *testing.T) {
			config := kubeconfig("y", nil)
			config.Contexts["y"].Extensions = map[string]runtime.Object{extension: &runtime.Unknown{Raw: []byte(`"odd"`)}}
			write(t, config)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			t.Setenv("KUBECONFIG", file)
			test.before(t)
			before := own(t)
			written, err := Owner{Dir: here}.Set(kubeconfig("x", []byte("ca")))
			after := own(t)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || after.CurrentContext != before.CurrentContext {
					t.Errorf("it is replaced, or the error is another one: %v", err)
				}
				return
			}
			if err != nil || written != file || after.CurrentContext != "x" ||
				string(after.Clusters["x"].CertificateAuthorityData) != "ca" {
				t.Errorf("the kubeconfig in %s is %+v, %v", written, after, err)
			}
			for name := range before.Contexts {
				if after.Contexts[name] == nil || after.Clusters[name] == nil || after.AuthInfos[name] == nil {
					t.Errorf("%s is lost", name)
				}
			}
		})
	}
}

// set returns a function that sets a kubeconfig.
func set(o Owner, config *clientcmdapi.Config) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if _, err := o.Set(config); err != nil {
			t.Fatal(err)
		}
	}
}

func without(config *clientcmdapi.Config, kinds ...string) *clientcmdapi.Config {
	config.CurrentContext = ""
	for _, kind := range kinds {
		switch kind {
		case "contexts":
			clear(config.Contexts)
		case "clusters":
			clear(config.Clusters)
		case "users":
			clear(config.AuthInfos)
		}
	}
	return config
}

// TestRemove removes the entries of one Shoot, then those of the whole landscape, with one that the user has copied.
func TestRemove(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	here, elsewhere := t.TempDir(), t.TempDir()
	shared, err := pki.Export(pki.Config{Dir: filepath.Join(here, statedir.PKIFolder, "garden"), Name: "garden",
		Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, kubeconfig("kind", nil))
	set(Owner{Dir: elsewhere}, kubeconfig("other", nil))(t)
	set(Owner{Dir: here, Cluster: "shoot dev/b"}, kubeconfig("b", nil))(t)
	set(Owner{Dir: here}, kubeconfig("garden", shared["ca.crt"]))(t)
	set(Owner{Dir: here, Cluster: "shoot dev/a"}, kubeconfig("a", nil))(t)
	copied := own(t)
	copied.Contexts["copied"] = &clientcmdapi.Context{Cluster: "copied", AuthInfo: "copied"}
	copied.Clusters["copied"] = &clientcmdapi.Cluster{
		Server: "https://127.0.0.1:1", CertificateAuthorityData: shared["ca.crt"]}
	copied.AuthInfos["copied"] = &clientcmdapi.AuthInfo{Token: "token"}
	// A context of the user's own, of a user that the landscape has made.
	copied.Contexts["mixed"] = &clientcmdapi.Context{Cluster: "kind", AuthInfo: "garden"}
	write(t, copied)

	for _, step := range []struct {
		remove        Owner
		removed, left []string
		current       string
	}{
		{Owner{Dir: here, Cluster: "shoot dev/b"}, []string{"b"},
			[]string{"a", "copied", "garden", "kind", "mixed", "other"}, "a"},
		{Owner{Dir: here, Cluster: "shoot dev/a"}, []string{"a"}, []string{"copied", "garden", "kind", "mixed", "other"}, ""},
		{Owner{Dir: here}, []string{"copied", "garden"}, []string{"kind", "mixed", "other"}, ""},
		{Owner{Dir: here}, nil, []string{"kind", "mixed", "other"}, ""},
	} {
		removed, err := step.remove.Remove()
		after := own(t)
		if err != nil || !slices.Equal(removed, step.removed) || after.CurrentContext != step.current ||
			!slices.Equal(slices.Sorted(maps.Keys(after.Contexts)), step.left) {
			t.Errorf("%+v: it says %v, %v; left are %v, the current one is %q", step.remove, removed, err,
				slices.Sorted(maps.Keys(after.Contexts)), after.CurrentContext)
		}
	}
	after := own(t)
	if len(after.Clusters) != 2 || len(after.AuthInfos) != 3 || after.AuthInfos["garden"] == nil {
		t.Errorf("left are %v and %v", after.Clusters, after.AuthInfos)
	}
}

// TestUnreadable: a file that is no kubeconfig is left as it is.
func TestUnreadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)
	if err := os.WriteFile(file, []byte("clusters: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, setErr := Owner{Dir: "/x"}.Set(kubeconfig("x", nil))
	_, removeErr := Owner{Dir: "/x"}.Remove()
	if data, err := os.ReadFile(file); setErr == nil || removeErr == nil || err != nil || string(data) != "clusters: 7" {
		t.Errorf("%v, %v; the file has %q, %v", setErr, removeErr, data, err)
	}
}
