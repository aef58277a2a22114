package quirks

import (
	"context"
	"errors"
	"testing"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	"k8s.io/apiextensions-apiserver/pkg/controller/establish"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/webhook"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// accepted returns a CRD whose names are accepted, and which is established or not.
func accepted(name string, established apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinition {
	crd := definition(name, "1", false, "")
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: established}}
	return crd
}

// TestEstablishAfterStart checks that kube-apiserver establishes a CRD that was not established before it started, that the
// other CRDs are not changed, and that it does not do so by itself.
func TestEstablishAfterStart(t *testing.T) {
	client := fake.NewSimpleClientset(accepted("killed", apiextensionsv1.ConditionFalse),
		accepted("established", apiextensionsv1.ConditionTrue), definition("new", "1", false, ""))
	factory := informers.NewSharedInformerFactory(client, 0)
	crds := factory.Apiextensions().V1().CustomResourceDefinitions()
	controller := establish.NewEstablishingController(crds, client.ApiextensionsV1())
	if _, err := apiserver.NewCustomResourceDefinitionHandler(nil, nil, crds, nil, nil, nil, controller, nil,
		webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, nil, nil), 1, nil, 0, 0, nil, 0); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(t.Context().Done())
	}()
	t.Cleanup(func() { <-ended })

	// The handler has seen all CRDs once it has seen a later one.
	later, definitions := accepted("later", apiextensionsv1.ConditionFalse), client.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(t.Context(), later, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	later.Labels = map[string]string{"changed": "yes"}
	if _, err := definitions.Update(t.Context(), later, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expectEstablished(t, client, "later")
	if crd, err := crds.Lister().Get("killed"); err != nil || apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		t.Errorf("kube-apiserver establishes a CRD after its start: EstablishAfterStart is not needed any more (%v)", err)
	}
	client.ClearActions()
	if err := EstablishAfterStart(crds, client, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	expectEstablished(t, client, "killed")
	for _, action := range client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok {
			if name := update.GetObject().(*apiextensionsv1.CustomResourceDefinition).Name; name != "killed" {
				t.Errorf("%s is changed", name)
			}
		}
	}
}

func expectEstablished(t *testing.T, client *fake.Clientset, name string) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err == nil && !apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			err = errors.New("it is not established")
		}
		return err
	})
}
