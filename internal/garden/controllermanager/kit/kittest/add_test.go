package kittest_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/bastion"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/extensionclusterrole"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/installation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/eventcleaner"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/gardenletlifecycle"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/managedseedset"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/projectactivity"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/projectstale"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedbackupbucketscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedextensionscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedreference"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedsecrets"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootconditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shoothibernation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootmaintenance"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootmigration"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootquota"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootreference"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootretry"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatefinalizer"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatuslabel"
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
	all := map[string]interface{ AddToManager(manager.Manager) error }{
		projectactivity.ControllerName: &projectactivity.Reconciler{}, projectstale.ControllerName: &projectstale.Reconciler{},
		eventcleaner.ControllerName: &eventcleaner.Reconciler{}, shootstatefinalizer.ControllerName: &shootstatefinalizer.Reconciler{},
		managedseedset.ControllerName: &managedseedset.Reconciler{}, shootconditions.ControllerName: &shootconditions.Reconciler{},
		shootstatuslabel.ControllerName: &shootstatuslabel.Reconciler{}, shootreference.ControllerName: &shootreference.Reconciler{},
		shootretry.ControllerName: &shootretry.Reconciler{}, shootquota.ControllerName: &shootquota.Reconciler{},
		shootmigration.ControllerName: &shootmigration.Reconciler{}, shoothibernation.ControllerName: &shoothibernation.Reconciler{},
		shootmaintenance.ControllerName: &shootmaintenance.Reconciler{},
		installation.ControllerName:     &installation.Reconciler{}, extensionclusterrole.ControllerName: &extensionclusterrole.Reconciler{},
		seedsecrets.ControllerName: &seedsecrets.Reconciler{}, gardenletlifecycle.ControllerName: &gardenletlifecycle.Reconciler{},
		seedextensionscheck.ControllerName: &seedextensionscheck.Reconciler{}, seedreference.ControllerName: &seedreference.Reconciler{},
		bastion.ControllerName: &bastion.Reconciler{},

		seedbackupbucketscheck.ControllerName: &seedbackupbucketscheck.Reconciler{},
	}
	for _, kind := range finalizers.Kinds() {
		all[kind.Name] = &finalizers.Reconciler{Kind: kind}
	}
	for name, c := range all {
		if err := c.AddToManager(mgr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
