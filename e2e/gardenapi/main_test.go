// Package gardenapi tests a garden in which no controllers of Gardener run: its API, and who may use it. Its tests create the
// objects that the controllers would create or change.
package gardenapi

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// waitTimeout is how long a test waits for something to happen.
const waitTimeout = suite.Timeout

// withoutControllers is the flag of such a garden.
const withoutControllers = "--controllers=*,-controller-manager,-scheduler"

var (
	// kubeconfig and config are the administrator's.
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	dyn        dynamic.Interface
)

func TestMain(m *testing.M) {
	kubeconfig, config = suite.Enter("--seeds=0", withoutControllers)
	kube, dyn = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	os.Exit(suite.Run(m))
}

type (
	answer = suite.Answer
	result = suite.Result
)

var (
	must       = suite.Must
	eventually = testutil.Eventually
	command    = suite.Command
	gardenlite = suite.Gardenlite
	up         = suite.Up
	statusOf   = suite.StatusOf

	binary, kubectlBinary = suite.Binary, suite.Kubectl

	accessResources  = suite.Resources
	accessVerbs      = suite.Verbs
	resourceOf       = suite.ResourceOf
	meta             = suite.Meta
	bucketObject     = suite.BucketObject
	entryObject      = suite.EntryObject
	secretObject     = suite.SecretObject
	tokenObject      = suite.TokenObject
	requestObject    = suite.RequestObject
	bootstrapTokenOf = suite.BootstrapTokenOf

	created   = metav1.CreateOptions{}
	confirmed = []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
)
