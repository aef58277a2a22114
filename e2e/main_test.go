// Package e2e tests the real binary, over TLS and SSH, with client-go and kubectl. Its tests share one landscape, which
// suite.Enter starts, and have namespaces or names of their own in it; or they start landscapes of their own.
package e2e

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// waitTimeout is how long a test waits for something to happen.
const waitTimeout = suite.Timeout

var (
	// config is the administrator's client configuration.
	config *rest.Config
	kube   kubernetes.Interface
	dyn    dynamic.Interface
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processArgument { // as the program that an image is mapped to
		runProgram(os.Args[2:])
		return
	}
	_, config = suite.Enter("--seeds=2", "--datastore=sqlite")
	kube, dyn = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	os.Exit(suite.Run(m))
}

type (
	accessUser = suite.User
	answer     = suite.Answer
	result     = suite.Result
)

var (
	must       = suite.Must
	eventually = testutil.Eventually
	command    = suite.Command
	gardenlite = suite.Gardenlite
	up         = suite.Up
	statusOf   = suite.StatusOf

	binary, kubectlBinary = suite.Binary, suite.Kubectl

	accessVerbs      = suite.Verbs
	accessResources  = suite.Resources
	resourceOf       = suite.ResourceOf
	certificateUser  = suite.CertificateUser
	gardenletUser    = suite.GardenletUser
	tokenUser        = suite.TokenUser
	meta             = suite.Meta
	bucketObject     = suite.BucketObject
	entryObject      = suite.EntryObject
	tokenObject      = suite.TokenObject
	requestObject    = suite.RequestObject
	bootstrapTokenOf = suite.BootstrapTokenOf

	created = metav1.CreateOptions{}
	// confirmed is the patch that confirms a deletion, which many objects need.
	confirmed = []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)

	seedsResource    = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "seeds"}
	projectsResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "projects"}
	shootsResource   = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}

	// sharedSeeds are the seeds of the landscape that the tests share.
	sharedSeeds = []string{"local", "local-2"}
)
