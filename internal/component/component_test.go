package component

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOptions(t *testing.T) {
	o := options(Config{Lease: &client.ObjectKey{Namespace: "garden", Name: "lease"}}, runtime.NewScheme())
	if o.Metrics.BindAddress != "0" || o.HealthProbeBindAddress != "0" || o.PprofBindAddress != "0" || !*o.Controller.SkipNameValidation {
		t.Errorf("it would serve, or be alone in the process: %+v", o.Metrics)
	}
	if !o.LeaderElection || o.LeaderElectionID != "lease" || o.LeaderElectionNamespace != "garden" {
		t.Errorf("lease %s/%s", o.LeaderElectionNamespace, o.LeaderElectionID)
	}
	// A standby has to see that the lease has expired, and to try once more (the period has a jitter of 20 %).
	if takesOver := *o.LeaseDuration + *o.RetryPeriod*6/5*2; takesOver > 20*time.Second {
		t.Errorf("another one takes over after %s", takesOver)
	}
	if options(Config{}, runtime.NewScheme()).LeaderElection {
		t.Error("one that is alone is elected")
	}
}

func TestNeedsClientConfiguration(t *testing.T) {
	if _, err := New(Config{Name: "x", AddToScheme: runtime.NewSchemeBuilder(clientgoscheme.AddToScheme)}); err == nil {
		t.Error("no error")
	}
}

func TestLimited(t *testing.T) {
	given := &rest.Config{}
	if l := WithDefaultRateLimits(given); l.QPS == 0 || l.Burst == 0 || given.QPS != 0 {
		t.Errorf("limits %v and %v, of what was given %v", l.QPS, l.Burst, given.QPS)
	}
	if l := WithDefaultRateLimits(&rest.Config{QPS: -1}); l.QPS != -1 {
		t.Errorf("own limit became %v", l.QPS)
	}
}
