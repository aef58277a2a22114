// Package architecture tests the import directions of the project (docs/architecture.md).
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/gardenlite/gardenlite/"

// allowed has, for each folder, the folders of the project that its packages may import besides the folder itself.
// The longest folder that contains a package counts. A package in no folder fails, so that each new folder needs an
// entry.
var allowed = map[string][]string{
	"cmd/gardenlite":           {"internal/cli"},
	"e2e":                      {"pkg/testenv"},
	"examples":                 {},
	"hack":                     {},
	"internal/architecture":    {},
	"internal/authz":           {"internal/garden/scheme", "internal/httpserver", "internal/usage"},
	"internal/authz/graphview": {"internal/authz/graph", "internal/usage"},
	"internal/authz/server":    {"internal/authz", "internal/controlplane/pki", "internal/fsutil", "internal/usage"},
	"internal/cli": {"internal/component/kubeconfig", "internal/landscape", "internal/control", "internal/snapshot", "internal/statedir",
		"internal/seed/seedhost", "internal/sshclient",
		"internal/garden/bootstraptoken", "internal/authz", "internal/usage", "internal/controlplane", "internal/fsutil",
		"internal/garden/admission",
		"internal/garden/extensionclient", "internal/garden/shootclient", "internal/garden/stacks/stackclient",
		"internal/garden/stacks/stackpackage", "internal/garden/stacks/v1alpha1", "internal/logview", "internal/manpage",
		"internal/node/process", "internal/plainyaml", "internal/seed/provider/injection", "internal/terminal",
		"internal/usercontexts", "internal/version", "manifests"},
	"internal/certificates": {},
	"internal/component":    {},
	"internal/controlplane": {"internal/certificates", "internal/datastore", "internal/fsutil", "internal/httpserver",
		"internal/retry", "manifests"},
	"internal/controlplane/quirks": {},
	"internal/datastore":           {"internal/fsutil", "internal/retry"},
	"internal/fsutil":              {},
	// For tests, whose imports are not checked. No other package may import it.
	"internal/testutil":                {},
	"internal/datastore/datastoretest": {"internal/testutil"},
	"internal/garden": {"internal/certificates", "internal/component", "internal/controlplane", "internal/fsutil",
		"internal/manifest", "internal/node/process", "internal/node/clusternodes", "internal/retry", "internal/version", "manifests"},
	"internal/garbage":     {},
	"internal/httpserver":  {},
	"internal/ociregistry": {},
	"internal/plainyaml":   {},
	"internal/retry":       {},
	"internal/landscape": {"internal/control", "internal/snapshot", "internal/statedir", "internal/supervisor", "internal/garbage",
		"internal/node/process",
		"internal/component",
		"internal/garden", "internal/seed/seedhost", "internal/authz/server", "internal/controlplane", "internal/datastore",
		"internal/fsutil", "internal/usage", "internal/version", "manifests"},
	"internal/snapshot": {"internal/datastore", "internal/fsutil", "internal/node/process", "internal/statedir", "internal/usage",
		"internal/version"},
	"internal/statedir":     {"internal/fsutil"},
	"internal/usercontexts": {"internal/statedir"},
	"internal/control": {"internal/statedir", "internal/controlplane/quirks", "internal/fsutil",
		"internal/node/process", "internal/usage"},
	"internal/supervisor": {"internal/control", "internal/controlplane/quirks", "internal/statedir"},
	"internal/sshclient": {"internal/component/kubeconfig", "internal/component/operation", "internal/fsutil",
		"internal/garden/shootclient"},
	"internal/bastionspec":        {},
	"internal/bastionsim":         {"internal/bastionspec", "internal/component", "internal/fsutil", "internal/garbage"},
	"internal/bastionsim/machine": {"internal/bastionspec", "internal/fsutil", "internal/plainyaml"},
	"internal/logview":            {"internal/statedir"},
	"internal/modules":            {},
	"internal/manifest":           {},
	"internal/manpage":            {},
	"internal/node":               {"internal/certificates", "internal/garbage", "internal/plainyaml"},
	"internal/node/process":       {"internal/fsutil", "internal/node/apiclient", "internal/node/host", "manifests"},
	"internal/node/clusternodes":  {"internal/bastionsim/cloud/memnet", "internal/controlplane", "internal/node"},
	"internal/node/programs":      {"internal/node", "internal/bastionsim/machine"},
	"internal/seed": {"internal/bastionsim", "internal/bastionspec", "internal/certificates", "internal/node",
		"internal/authz/bootstraprules", "internal/authz/seedidentity", "internal/component", "internal/controlplane",
		"internal/manifest", "internal/ociregistry", "internal/retry", "internal/shootplane/spec", "manifests"},
	// seedhost runs seeds and gardenlets, for a landscape and for a gardenlet that runs alone.
	"internal/seed/seedhost": {"internal/control", "internal/statedir",
		"internal/supervisor", "internal/bastionsim/cloud", "internal/certificates", "internal/controlplane", "internal/datastore",
		"internal/component/shootowner", "internal/fsutil", "internal/garden/bootstraptoken",
		"internal/node", "internal/seed", "internal/shootplane", "internal/usage",
		"internal/version"},
	"internal/garden/bootstraptoken": {"internal/authz/bootstraprules", "internal/garden/controllermanager/csrapprover", "internal/usage"},
	"internal/shootplane": {"internal/component", "internal/controlplane", "internal/fsutil", "internal/manifest",
		"manifests"},
	"internal/shootplane/spec": {},
	"internal/terminal":        {},
	"internal/usage":           {},
	"internal/version":         {},
	everywhere:                 {},
	"manifests":                {},
	"pkg/testenv": {"internal/control", "internal/garden/shootclient", "internal/landscape", "internal/manifest",
		"internal/node/process", "internal/statedir", "internal/version"},
	"internal/garden/scheme": {},
	// Packages of stacks are read without the rest of the project.
	"internal/garden/stacks/stackpackage": {"internal/ociregistry", "internal/plainyaml"},
	"internal/garden/stacks/v1alpha1":     {"internal/garden/stacks/stackpackage"},
	"internal/garden/stacks/stackclient": {"internal/fsutil", "internal/garden/stacks/stackpackage", "internal/garden/stacks/v1alpha1",
		"internal/retry"},
	"internal/garden/stacks/stackmanager": {"internal/component", "internal/garden/stacks/stackpackage", "internal/garden/stacks/v1alpha1"},
	// controllermanager decides on certificate requests by the rules of scoped access.
	"internal/garden/controllermanager": {"internal/authz/bootstraprules", "internal/authz/seedidentity",
		"internal/component", "internal/garden/admission", "internal/garden/scheme", "internal/garden/validation"},
	// Validation knows types only, so that everything may use it.
	"internal/garden/validation": {"internal/bastionspec", "internal/garden/scheme"},
	// Admission reads through an interface, not through the registry.
	"internal/garden/admission": {"internal/garden/validation", "internal/garden/scheme"},
	"internal/garden/registry": {"internal/certificates", "internal/garden/validation", "internal/garden/scheme",
		"internal/garden/admission/plugin"},
}

// everywhere is the clock, which every package may import as it may import the time.
const everywhere = "internal/landscapeclock"

// forbidden are the prefixes of packages that must not be imported, except for gardenerAPIs: internal/retry replaces the
// second.
var forbidden = []string{"github.com/gardener/gardener/", "k8s.io/client-go/util/retry"}

const gardenerAPIs = "github.com/gardener/gardener/pkg/apis"

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImportDirections(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		home := homeOf(path)
		if home == "" {
			t.Errorf("%s is in no folder that this test knows: say what it may import", path)
			continue
		}
		for _, imported := range p.Imports {
			for _, prefix := range forbidden {
				if strings.HasPrefix(imported, prefix) && imported != gardenerAPIs && !strings.HasPrefix(imported, gardenerAPIs+"/") {
					t.Errorf("%s imports %s, which stays out", path, imported)
				}
			}
			target, ours := strings.CutPrefix(imported, module)
			if ours && target != everywhere && !below(target, home) && !belowAny(target, allowed[home]) {
				t.Errorf("%s imports %s; from %s only these may be imported: %v", path, target, home, allowed[home])
			}
		}
	}
}

func homeOf(path string) (home string) {
	for folder := range allowed {
		if below(path, folder) && len(folder) > len(home) {
			home = folder
		}
	}
	return home
}

func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func belowAny(path string, folders []string) bool {
	for _, folder := range folders {
		if below(path, folder) {
			return true
		}
	}
	return false
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}
