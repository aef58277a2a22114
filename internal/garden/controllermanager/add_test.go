package controllermanager

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

// TestAddToManager checks that an empty Reconciler of each controller can be added to a manager, even if the API server
// does not respond.
func TestAddToManager(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		Scheme:         kittest.New(t).Scheme(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range controllers(Config{}) {
		if err := c.reconciler.AddToManager(mgr); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
