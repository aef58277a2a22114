package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	controllerManager = "gardener.cloud:system:controller-manager"
	scheduler         = "gardener.cloud:system:scheduler"
	resourceManager   = "system:serviceaccount:garden:gardener-resource-manager"
)

// TestControllerManagerAndScheduler: Gardener's programs take over a landscape with a Shoot, as the documentation says, with their
// own users. Then gardenlite's are back, with fewer rights.
func TestControllerManagerAndScheduler(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--audit-log", audit)
	l.run("shoot", "create", "one", "--workers", "1", "--wait")
	l.restart("--audit-log", audit, "--controllers", "*,-controller-manager,-scheduler")
	quotas := "controllers: {project: {quotas: [{config: {spec: {hard: {count/secrets: \"40\"}}}}]}}\n"
	stopManager := l.replace("gardener-controller-manager", l.kubeconfigOf(controllerManager), l.fromPage("controller-manager.yaml")+quotas)
	stopScheduler := l.replace("gardener-scheduler", l.kubeconfigOf(scheduler), l.fromPage("scheduler.yaml"))

	l.eventually("the Seed is ready", l.seedReady)
	l.eventually("the Shoot is healthy", l.shootHealthy)
	team := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: gardencorev1beta1.ProjectSpec{Namespace: new("garden-team")}}
	if err := l.garden.Create(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	l.eventually("the Project is ready, with a quota", func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{}
		return errors.Join(l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-team", Name: "gardener"}, quota), l.projectReady(ctx, team))
	})
	for _, step := range [][]string{{"create", "two", "--workers", "1"}, {"hibernate", "two"}, {"wake", "two"}, {"delete", "two", "--yes"},
		{"hibernate", "one"}} {
		l.run(append(append([]string{"shoot"}, step...), "--wait")...)
	}
	for _, user := range []string{controllerManager, scheduler} {
		l.nothingForbidden(audit, user)
	}

	stopManager()
	stopScheduler()
	l.restart("--audit-log", audit)
	l.run("shoot", "wake", "one", "--wait")
	l.run("shoot", "create", "three", "--wait")
	l.eventually("the Shoot is healthy again", l.shootHealthy)
	if err := l.clientOf("kubeconfig", "--user", controllerManager).List(t.Context(), &corev1.ResourceQuotaList{}); !apierrors.IsForbidden(err) {
		t.Errorf("gardenlite's controller-manager has the rights of Gardener's: %v", err)
	}
}

// TestResourceManager: Gardener's resource-manager takes over the ManagedResources of a seed with a Shoot, and gives them back.
func TestResourceManager(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--audit-log", audit)
	l.run("shoot", "create", "one", "--workers", "1", "--wait")
	seed := l.clientOf("kubeconfig", "seed", "local")
	l.manage(seed, "before", "seed", "garden")
	l.restart("--audit-log", audit, "--controllers", "*,-resource-manager")
	seed = l.clientOf("kubeconfig", "seed", "local")
	stop := l.replaceResourceManager(l.fromPage("resource-manager.yaml"))

	l.manage(seed, "meanwhile", "seed", "garden")
	l.addsObject(seed, "before")
	l.manage(seed, "shoots", "", "shoot--dev--one")
	for _, step := range [][]string{{"create", "two", "--workers", "1"}, {"hibernate", "two"}, {"wake", "two"}, {"delete", "two", "--yes"}} {
		l.run(append(append([]string{"shoot"}, step...), "--wait")...)
	}
	l.eventually("the Seed is ready", l.seedReady)
	l.nothingForbidden(audit+".seed-local", resourceManager)

	stop()
	l.restart("--audit-log", audit)
	seed = l.clientOf("kubeconfig", "seed", "local")
	l.addsObject(seed, "meanwhile")
	for _, name := range []string{"before", "meanwhile"} {
		if err := seed.Delete(t.Context(), managedResource(name, "garden")); err != nil {
			t.Fatal(err)
		}
		l.eventually("the objects of "+name+" are gone", func(ctx context.Context) error {
			err := seed.Get(ctx, client.ObjectKey{Namespace: "garden", Name: name}, &corev1.ConfigMap{})
			if err == nil {
				return errors.New("the ConfigMap exists")
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// TestAllPrograms: Gardener's four programs run one landscape, each as its own user.
func TestAllPrograms(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--audit-log", audit,
		"--controllers", "*,-controller-manager,-scheduler,-gardenlet,-resource-manager")
	// A slow machine does not renew a Lease in time while the seed gets its CustomResourceDefinitions: the program would end.
	const alone = "leaderElection: {leaderElect: false}\n"
	l.replace("gardener-controller-manager", l.kubeconfigOf(controllerManager), l.fromPage("controller-manager.yaml")+alone)
	l.replace("gardener-scheduler", l.kubeconfigOf(scheduler), l.fromPage("scheduler.yaml")+alone)
	elected := "leaderElection:\n  resourceNamespace: garden\n"
	l.replaceResourceManager(strings.Replace(l.fromPage("resource-manager.yaml"), elected, alone, 1))
	l.startGardenlet(l.run("gardenlet-config", "local"))
	l.eventually("the Seed is ready", l.seedReady)
	l.run("shoot", "create", "one", "--workers", "1")
	l.eventually("the Shoot is healthy", l.shootHealthy)
	l.run("shoot", "delete", "one", "--yes", "--wait")
	for _, user := range []string{controllerManager, scheduler, "gardener.cloud:system:seed:local"} {
		l.nothingForbidden(audit, user)
	}
	l.nothingForbidden(audit+".seed-local", resourceManager)
}

// fromPage returns a file that docs/develop-gardener.md shows.
func (l *landscape) fromPage(name string) string {
	l.Helper()
	page, err := os.ReadFile("../../docs/develop-gardener.md")
	if err != nil {
		l.Fatal(err)
	}
	found := regexp.MustCompile("<!-- test: save: " + name + " -->\n```yaml\n([^`]*)```").FindSubmatch(page)
	if found == nil {
		l.Fatalf("the page shows no file %s", name)
	}
	return string(found[1])
}

// replace starts a program of Gardener with a configuration, in place of gardenlite's, until stop is called.
func (l *landscape) replace(program, kubeconfig, config string) (stop func()) {
	l.Helper()
	environment := []string{"KUBECONFIG=" + kubeconfig, "TARGET_KUBECONFIG=" + kubeconfig}
	return l.start(environment, program, "--config", l.write(program+".yaml", config))
}

// replaceResourceManager starts Gardener's resource-manager in place of gardenlite's.
func (l *landscape) replaceResourceManager(config string) (stop func()) {
	l.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("gardener-resource-manager", nil, nil)
	if err != nil {
		l.Fatal(err)
	}
	l.write("tls.crt", string(certificate))
	l.write("tls.key", string(key))
	return l.replace("gardener-resource-manager", l.kubeconfigOf(resourceManager, "seed", "local"), config)
}

func (l *landscape) projectReady(ctx context.Context, project *gardencorev1beta1.Project) error {
	err := l.garden.Get(ctx, client.ObjectKeyFromObject(project), project)
	if err == nil && project.Status.Phase != gardencorev1beta1.ProjectReady {
		err = fmt.Errorf("the Project is %q", project.Status.Phase)
	}
	return err
}

func managedResource(name, namespace string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// manage creates a ManagedResource with a ConfigMap, and waits until it is applied.
func (l *landscape) manage(seed client.Client, name, class, namespace string) {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{
		"objects.yaml": fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: %s}, data: {is: applied}}", name)}}
	if class != "" {
		secret.StringData["objects.yaml"] = strings.Replace(secret.StringData["objects.yaml"], "kube-system", namespace, 1)
	}
	resource := managedResource(name, namespace)
	resource.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: name}}
	if class != "" {
		resource.Spec.Class = &class
	}
	if err := errors.Join(seed.Create(l.Context(), secret), seed.Create(l.Context(), resource)); err != nil {
		l.Fatal(err)
	}
	l.eventually("the objects of "+name+" are healthy", func(ctx context.Context) error {
		if err := seed.Get(ctx, client.ObjectKeyFromObject(resource), resource); err != nil {
			return err
		}
		return allTrue(resource.Status.Conditions, resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy)
	})
}

// addsObject adds an object to the Secret of a ManagedResource, and waits until it is applied.
func (l *landscape) addsObject(seed client.Client, name string) {
	l.Helper()
	secret := &corev1.Secret{}
	if err := seed.Get(l.Context(), client.ObjectKey{Namespace: "garden", Name: name}, secret); err != nil {
		l.Fatal(err)
	}
	secret.Data["objects.yaml"] = slices.Concat(secret.Data["objects.yaml"],
		fmt.Appendf(nil, "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {namespace: garden, name: %s-more}}", name))
	if err := seed.Update(l.Context(), secret); err != nil {
		l.Fatal(err)
	}
	l.eventually("the change of "+name+" is applied", func(ctx context.Context) error {
		return seed.Get(ctx, client.ObjectKey{Namespace: "garden", Name: name + "-more"}, &corev1.ConfigMap{})
	})
}
