package seedstatus_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/extensionclusterrole"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/finalizer"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/installation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seed"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedbackupbucketscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedextensionscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedlifecycle"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedreference"
)

// TestAddToManager: the controllers for Seeds can be made of nothing but a manager.
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
	all := map[string]interface{ AddToManager(manager.Manager) error }{
		installation.ControllerName: &installation.Reconciler{}, extensionclusterrole.ControllerName: &extensionclusterrole.Reconciler{},
		seed.ControllerName: &seed.Reconciler{}, seedlifecycle.ControllerName: &seedlifecycle.Reconciler{},
		seedextensionscheck.ControllerName: &seedextensionscheck.Reconciler{}, seedreference.ControllerName: &seedreference.Reconciler{},
		seedbackupbucketscheck.ControllerName: &seedbackupbucketscheck.Reconciler{},
	}
	for _, kind := range finalizer.Kinds() {
		all[kind.ControllerName] = &finalizer.Reconciler{Kind: kind}
	}
	for name, c := range all {
		if err := c.AddToManager(mgr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
