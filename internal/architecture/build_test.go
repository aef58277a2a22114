package architecture

import (
	"os/exec"
	"strings"
	"testing"
)

// maxPackages is the maximum number of packages of the program, those of the standard library included. A build without
// a cache compiles each of them. Kubernetes has most of them.
const maxPackages = 2650

// heavy are the prefixes of packages that bring much for little. kine's endpoint brings servers of etcd and NATS. Helm
// has oras already for OCI registries.
var heavy = []string{"github.com/google/go-containerregistry/", "github.com/k3s-io/kine/pkg/endpoint",
	"github.com/nats-io/", "go.etcd.io/etcd/server/"}

func TestPackagesOfTheProgram(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/gardenlite").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := strings.Fields(string(out))
	if len(all) > maxPackages {
		t.Errorf("the program has %d packages, %d are allowed: \"go mod why\" says what brings them", len(all), maxPackages)
	}
	for _, imported := range all {
		for _, prefix := range heavy {
			if strings.HasPrefix(imported, prefix) {
				t.Errorf("the program has %s", imported)
			}
		}
	}
}
