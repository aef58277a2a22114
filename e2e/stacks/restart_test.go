package stacks

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// ownLandscape starts a landscape of one test.
func ownLandscape(t *testing.T, dir string, flags ...string) *landscape {
	t.Helper()
	suite.Up(t, dir, append([]string{"--seeds", "0"}, flags...)...).OK(t)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	return newLandscape(dir, config)
}

// expectNothingForbidden expects that no request of a component was forbidden since the process started.
func (l *landscape) expectNothingForbidden(t *testing.T) {
	t.Helper()
	if forbidden, err := suite.Forbidden(l.dir); err != nil || len(forbidden) > 0 {
		t.Errorf("requests of components were forbidden: %v, %v", forbidden, err)
	}
}

// withoutStackManager: the Stack Manager is a component that can be left out.
func withoutStackManager(t *testing.T, dir string) {
	t.Helper()
	l := ownLandscape(t, dir, "--controllers=*,-stack-manager")
	status := suite.Gardenlite(t, l.dir, "status").OK(t)
	if strings.Contains(status.Stdout, "stack-manager") {
		t.Errorf("the Stack Manager runs: %s", status.Stdout)
	}
	l.namespace(t, "idle")
	l.install(t, namespaceInstall, "idle", "buckets", l.write(t, "idle", bucketStack("idle.example.org", "Namespaced", "0.1")))
	l.exists(t, objectsOf(namespaceInstall, "idle", "buckets"), false)
	l.expectNothingForbidden(t)
	suite.Must(t, l.dyn.Resource(stacksResource(namespaceInstall)).Namespace("idle").Delete(t.Context(), "buckets", metav1.DeleteOptions{}))
	suite.Gardenlite(t, dir, "down").OK(t)
}
