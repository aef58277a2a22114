package seed

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gardenlite/gardenlite/manifests"
)

func wantedCRDs(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := loadCRDs(manifests.Seed, "seed/crds")
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

func TestTheSeedsCustomResources(t *testing.T) {
	var names []string
	for _, crd := range wantedCRDs(t) {
		names = append(names, crd.Name)
		if crd.Labels["gardener.cloud/deletion-protected"] != "true" {
			t.Errorf("%s is not labelled as protected", crd.Name)
		}
	}
	slices.Sort(names)
	want := []string{
		"backupbuckets.extensions.gardener.cloud", "backupentries.extensions.gardener.cloud", "bastions.extensions.gardener.cloud",
		"clusters.extensions.gardener.cloud", "containerruntimes.extensions.gardener.cloud", "controlplanes.extensions.gardener.cloud",
		"dnsrecords.extensions.gardener.cloud", "extensions.extensions.gardener.cloud", "infrastructures.extensions.gardener.cloud",
		"machineclasses.machine.sapcloud.io", "machinedeployments.machine.sapcloud.io", "machines.machine.sapcloud.io",
		"machinesets.machine.sapcloud.io", "managedresources.resources.gardener.cloud", "networks.extensions.gardener.cloud",
		"operatingsystemconfigs.extensions.gardener.cloud", "selfhostedshootexposures.extensions.gardener.cloud",
		"servicemonitors.monitoring.coreos.com",
		"verticalpodautoscalers.autoscaling.k8s.io", "workers.extensions.gardener.cloud",
	}
	if !slices.Equal(names, want) {
		t.Errorf("there are\n%v, want\n%v", names, want)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"a field that is none": {"# comment\n---\napiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspecs: {}\n",
			`crds/a.yaml, document 2`},
		"no YAML": {"a: [", `crds/a.yaml, document 1`},
		"nothing": {"# nothing\n", "no CustomResourceDefinition in crds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadCRDs(fstest.MapFS{"crds/a.yaml": {Data: []byte(test.content)}}, "crds")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestWriteCRDs(t *testing.T) {
	wanted := wantedCRDs(t)[:1]
	changed := func(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
		crd := wanted[0].DeepCopy()
		setEstablished(crd)
		change(crd)
		return crd
	}
	for name, test := range map[string]struct {
		there  *apiextensionsv1.CustomResourceDefinition
		writes []string
	}{
		// The update is the one that sets the definition to established.
		"none there":       {nil, []string{"create", "update"}},
		"there as it is":   {changed(func(*apiextensionsv1.CustomResourceDefinition) {}), nil},
		"not established":  {wanted[0], []string{"create", "update"}},
		"with more labels": {changed(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Labels["mine"] = "kept" }), nil},
		"without a label":  {changed(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Labels = nil }), []string{"create", "update"}},
		"another schema": {changed(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Labels["mine"] = "kept"
			crd.Spec.Versions[0].Schema = nil
		}), []string{"create", "update"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if test.there != nil {
				objects = append(objects, test.there.DeepCopy())
			}
			client := fake.NewSimpleClientset(objects...)
			crds := client.ApiextensionsV1().CustomResourceDefinitions()
			if err := writeCRDs(t.Context(), crds, wanted); err != nil {
				t.Fatal(err)
			}
			if writes := writesTo(client); !slices.Equal(writes, test.writes) {
				t.Errorf("writes: %v, want %v", writes, test.writes)
			}
			got, err := crds.Get(t.Context(), wanted[0].Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !upToDate(got, wanted[0]) || !isEstablished(got) {
				t.Errorf("there is %v", got)
			}
			if test.there != nil && got.Labels["mine"] != test.there.Labels["mine"] {
				t.Errorf("the labels are %v", got.Labels)
			}
		})
	}
}

func writesTo(client *fake.Clientset) (verbs []string) {
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

func TestWriteCRDsBesideOthers(t *testing.T) {
	wanted := wantedCRDs(t)[:1]
	old := wanted[0].DeepCopy()
	setEstablished(old)
	old.Spec.Scope = ""
	client := fake.NewSimpleClientset(old)
	// The list is stale, and another client writes first.
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &apiextensionsv1.CustomResourceDefinitionList{}, nil
	})
	conflicts := 2
	client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{}, old.Name, errors.New("changed"))
		}
		return false, nil, nil
	})
	if err := writeCRDs(t.Context(), client.ApiextensionsV1().CustomResourceDefinitions(), wanted); err != nil {
		t.Fatal(err)
	}
	if writes, want := writesTo(client), []string{"create", "update", "update", "update"}; !slices.Equal(writes, want) {
		t.Errorf("writes: %v, want %v", writes, want)
	}
}

func TestMergeKeepsAConversionWebhook(t *testing.T) {
	wanted := wantedCRDs(t)[0]
	current := wanted.DeepCopy()
	current.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	if !upToDate(current, wanted) {
		t.Error("a conversion webhook would be removed")
	}
}

func TestNotServed(t *testing.T) {
	wanted := wantedCRDs(t)
	disco := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	for _, crd := range wanted[1:] {
		disco.Resources = append(disco.Resources, &metav1.APIResourceList{
			GroupVersion: crd.Spec.Group + "/" + crd.Spec.Versions[0].Name,
			APIResources: []metav1.APIResource{{Name: crd.Spec.Names.Plural}},
		})
	}
	missing, err := notServed(disco, wanted)
	if err != nil || names(missing) != wanted[0].Name {
		t.Fatalf("not served: %s, %v; want %s", names(missing), err, wanted[0].Name)
	}
	refused := wanted[0].DeepCopy()
	refused.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Message: "the kind is taken",
	}}
	crds := fake.NewSimpleClientset(refused).ApiextensionsV1().CustomResourceDefinitions()
	if got, want := explain(crds, missing), "\n"+refused.Name+": NamesAccepted: the kind is taken"; got != want {
		t.Errorf("explained as %q, want %q", got, want)
	}
}

// TestSetEstablished checks that requests for a new kind are not delayed, and that a refused name stays refused.
func TestSetEstablished(t *testing.T) {
	crd := wantedCRDs(t)[0].DeepCopy()
	crd.CreationTimestamp = metav1.Now()
	setEstablished(crd)
	established := apiextensionshelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	if !apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) ||
		time.Since(established.LastTransitionTime.Time) < 2*time.Second {
		t.Errorf("%+v", crd.Status)
	}
	apiextensionshelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "Conflict"})
	setEstablished(crd)
	if apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) {
		t.Errorf("names of another definition: %+v", crd.Status)
	}
}
