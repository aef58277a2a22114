package testenv_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// TestEnv uses the package as another module's test would, and starts a second landscape beside the first.
func TestEnv(t *testing.T) {
	expectClosed(t)
	env := testenv.Start(t)
	other := testenv.Start(t, testenv.WithManifests("testdata"))

	cloudProfiles := schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "cloudprofiles"}
	for e, want := range map[*testenv.Env]int{env: 1, other: 2} {
		list, err := dynamic.NewForConfigOrDie(e.Config()).Resource(cloudProfiles).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("%d CloudProfiles, expected %d", len(list.Items), want)
		}
	}
	config, err := env.ConfigFor("alice@example.com")
	if err != nil {
		t.Fatal(err)
	}
	alice := kubernetes.NewForConfigOrDie(config)
	if _, err := alice.CoreV1().Secrets("garden-dev").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a stranger lists secrets")
	}
}
