package quirks

import (
	"errors"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// TestUnlessShutdown fails if a failing hook of an API server no longer ends the process, or ends it during a shutdown.
func TestUnlessShutdown(t *testing.T) {
	noticed := make(chan bool)
	exit := klog.OsExit
	defer func() { klog.OsExit = exit }()
	klog.OsExit = func(status int) {
		exits := false
		UnlessShutdown(func(int) { exits = true })(status)
		noticed <- exits
	}
	runFailingHook(t)
	if !<-noticed {
		t.Error("the process goes on without a shutdown")
	}
	BeginShutdown()
	defer shutdowns.Add(-1)
	runFailingHook(t)
	if <-noticed {
		t.Error("the process ends during a shutdown")
	}
}

func runFailingHook(t *testing.T) {
	t.Helper()
	config := genericapiserver.NewConfig(legacyscheme.Codecs)
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &rest.Config{}
	config.SkipOpenAPIInstallation = true
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.36", "", "")
	server, err := config.Complete(informers.NewSharedInformerFactory(fake.NewClientset(), 0)).New(
		"quirks", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.AddPostStartHook(
		"fails", func(genericapiserver.PostStartHookContext) error { return errors.New("stopped meanwhile") }); err != nil {
		t.Fatal(err)
	}
	server.RunPostStartHooks(t.Context())
}
