package quirks

import (
	"context"
	"crypto"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestReplaceHook checks that a post-start hook is replaced by another that has the first.
func TestReplaceHook(t *testing.T) {
	config := genericapiserver.NewConfig(legacyscheme.Codecs)
	config.ExternalAddress, config.LoopbackClientConfig = "127.0.0.1:443", &rest.Config{}
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan string, 2)
	if err := server.AddPostStartHook("one", func(genericapiserver.PostStartHookContext) error {
		called <- "first"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var replaced genericapiserver.PostStartHookFunc
	with := func(first genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		replaced = func(hook genericapiserver.PostStartHookContext) error {
			called <- "other"
			return first(hook)
		}
		return replaced
	}
	ReplaceHook(server, "none", with)
	if replaced != nil {
		t.Error("a hook that is not there is replaced")
	}
	ReplaceHook(server, "one", with)
	if replaced == nil {
		t.Fatal("the hook is not found: the server keeps it in another place")
	}
	server.RunPostStartHooks(t.Context())
	if other, first := <-called, <-called; other != "other" || first != "first" {
		t.Errorf("called: %s, %s", other, first)
	}
}

// TestReplaceReloader checks that what reloads the authority of a signer is replaced, and that it has a watcher of its own
// without that.
func TestReplaceReloader(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files that are open are in /proc")
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "ca.key")
	writeAuthority(t, certFile, keyFile)
	for _, replace := range []bool{false, true} {
		client := fake.NewClientset()
		requests := informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests()
		s, err := signer.NewKubeletServingCSRSigningController(t.Context(), client, requests, certFile, keyFile, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		running := make(chan struct{})
		if replace {
			ReplaceReloader(s, func(own dynamiccertificates.ControllerRunner) dynamiccertificates.ControllerRunner {
				return reloader{own, running}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx, 1)
		}()
		if replace {
			<-running
			if len(testutil.OpenFiles(t, "inotify")) > 0 {
				t.Error("there is a watcher of files")
			}
		} else {
			testutil.EventuallyTrue(t, "the signer has a watcher of its own, or ReplaceReloader is not needed any more", func() bool {
				return len(testutil.OpenFiles(t, "inotify")) > 0
			})
		}
		cancel()
		<-ended
		testutil.EventuallyTrue(t, "the watcher is closed", func() bool { return len(testutil.OpenFiles(t, "inotify")) == 0 })
	}
}

type reloader struct {
	dynamiccertificates.ControllerRunner
	running chan struct{}
}

func (r reloader) Run(ctx context.Context, workers int) {
	close(r.running)
	<-ctx.Done()
	r.ControllerRunner.Run(ctx, workers)
}

func writeAuthority(t *testing.T, certFile, keyFile string) {
	t.Helper()
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ca"}, key.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, err := cert.EncodeCertificates(authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
}
