package programs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var extensions = flag.String("extensions", "../../bin/extensions", "folder with the programs of published extensions")

// TestExtensions: Gardener's gardenlet installs two published extensions from their charts, whose images are mapped to their
// programs. A Shoot has the operating system of the one and the registry cache of the other.
func TestExtensions(t *testing.T) {
	l := newLandscape(t, "--controllers", "*,-gardenlet")
	config := l.run("gardenlet-config", "local")
	// A port for the health of each: else they would have the same one.
	for name, port := range map[string]int{"os-suse-chost": 0, "registry-cache": 8081} {
		l.install(name, proxyIn(config), port)
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := l.garden.Get(t.Context(), client.ObjectKey{Name: "local"}, profile); err != nil {
		t.Fatal(err)
	}
	image := profile.Spec.MachineImages[0]
	image.Name = "suse-chost"
	profile.Spec.MachineImages = append(profile.Spec.MachineImages, image)
	if err := l.garden.Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	l.startGardenlet(config)
	l.eventually("the Seed is ready", l.seedReady)

	shoot := &gardencorev1beta1.Shoot{}
	if err := yaml.Unmarshal([]byte(l.run("sample", "shoot")), shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Name = "one"
	shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = 1, 1
	shoot.Spec.Provider.Workers[0].Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: image.Name}
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "registry-cache", ProviderConfig: &runtime.RawExtension{Raw: []byte(
		`{"apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryConfig", "caches": [{"upstream": "docker.io"}]}`)}}}
	if err := l.garden.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	l.eventually("the Shoot is healthy", l.shootHealthy)
	l.eventually("its node is ready", l.nodesReady(1))
	for _, name := range []string{"os-suse-chost", "registry-cache"} {
		l.runsAsProcess("gardener-extension-" + name)
	}
	l.eventually("it has the cache", func(ctx context.Context) error {
		caches := &appsv1.StatefulSetList{}
		err := l.clientOf("kubeconfig", "shoot", "one").List(ctx, caches, client.MatchingLabels{"upstream-host": "docker.io"})
		if err == nil && len(caches.Items) != 1 {
			err = fmt.Errorf("%d StatefulSets", len(caches.Items))
		}
		return err
	})
	l.eventually("the user data is that of the extension", func(ctx context.Context) error {
		all := &corev1.SecretList{}
		if err := l.clientOf("kubeconfig", "seed", "local").List(ctx, all, client.InNamespace("shoot--dev--one")); err != nil {
			return err
		}
		for _, secret := range all.Items {
			if strings.Contains(string(secret.Data["cloud_config"]), "zypper") {
				return nil
			}
		}
		return fmt.Errorf("none of %d Secrets has it", len(all.Items))
	})
	l.run("shoot", "delete", "one", "--yes", "--wait")
}

// install maps the image of a published extension to its program, which reaches Shoots through the proxy, and applies its
// registration with the chart.
func (l *landscape) install(name, proxy string, port int) {
	l.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/gardener-extension-"+name)
	list.Dir = filepath.Join("..", "..", "hack", name)
	module, err := list.Output()
	if err != nil {
		l.Fatal(err)
	}
	binary, err := filepath.Abs(filepath.Join(*extensions, "gardener-extension-"+name))
	if err != nil {
		l.Fatal(err)
	}
	folder := strings.TrimSpace(string(module))
	values, err := os.ReadFile(filepath.Join(folder, "charts", "gardener-extension-"+name, "values.yaml"))
	if err != nil {
		l.Fatal(err)
	}
	var chart struct{ Image struct{ Repository string } }
	if err := yaml.Unmarshal(values, &chart); err != nil {
		l.Fatal(err)
	}
	// Else it listens at all addresses.
	program := l.write(name, fmt.Sprintf("#!/bin/sh\nexport %s\nexec '%s' \"$@\" --metrics-bind-address=0 --health-bind-address=127.0.0.1:%d\n",
		proxy, binary, port))
	if err := os.Chmod(program, 0o700); err != nil {
		l.Fatal(err)
	}
	l.run("image", "run", chart.Image.Repository, program)
	registration, err := os.ReadFile(filepath.Join(folder, "example", "controller-registration.yaml"))
	if err != nil {
		l.Fatal(err)
	}
	for document := range strings.SplitSeq(string(registration), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			l.Fatal(err)
		}
		if err := l.garden.Create(l.Context(), object); err != nil {
			l.Fatal(err)
		}
	}
}

// runsAsProcess expects a Pod with such a name that is a process.
func (l *landscape) runsAsProcess(name string) {
	l.Helper()
	var status struct{ Processes []struct{ Pod string } }
	if err := json.Unmarshal([]byte(l.run("status", "-o", "json")), &status); err != nil {
		l.Fatal(err)
	}
	for _, process := range status.Processes {
		if strings.HasPrefix(process.Pod, name+"-") {
			return
		}
	}
	l.Errorf("%s is no process: %+v", name, status)
}
