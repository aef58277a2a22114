//go:build soak

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// TestSUSECHost installs a real extension from its published module and chart, both unchanged: its image is mapped
// to its program, and a Shoot with its operating system becomes healthy, with the user data that the extension
// wrote.
func TestSUSECHost(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	l.installExtension(t, "os-suse-chost")
	l.addMachineImage(t, "suse-chost")

	s := l.newShoot(t, "suse", func(spec map[string]any) {
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = 1, 1
		worker["machine"].(map[string]any)["image"].(map[string]any)["name"] = "suse-chost"
	})
	s.waitForSucceeded(t)
	s.healthy(t)
	s.nodes(t, clientOf(t, s.admin(t)), 1)
	l.runsExtension(t, "os-suse-chost")
	s.checkSUSE(t)
	s.delete(t)
	s.waitGone(t)
}

// installExtension maps the image of a published extension to its program, and applies its registration with the chart.
func (l *landscape) installExtension(t *testing.T, name string) {
	t.Helper()
	module, program := buildExtension(t, name)
	gardenlite(t, l.dir, "image", "run", imageOfChart(t, module, name), program).OK(t)
	registration := filepath.Join(module, "example", "controller-registration.yaml")
	command(t, "", kubectlBinary, "--kubeconfig", filepath.Join(l.dir, "kubeconfig"), "apply", "-f", registration).OK(t)
}

// runsExtension expects that an extension is a process.
func (l *landscape) runsExtension(t *testing.T, name string) {
	t.Helper()
	all := (&programs{l: l}).running(t)
	if !slices.ContainsFunc(all, func(s statusProcess) bool { return strings.HasPrefix(s.Pod, "gardener-extension-"+name+"-") }) {
		t.Errorf("the extension %s is no process: %v", name, all)
	}
}

// buildExtension builds an extension in a module of its own, and returns the folder of its module and its program.
// The program serves no metrics, and health on loopback only where a probe needs it: it would listen on all addresses.
func buildExtension(t *testing.T, name string) (module, program string) {
	t.Helper()
	begin := time.Now()
	own, path := filepath.Join("..", "hack", name), "github.com/gardener/gardener-extension-"+name
	folder := t.TempDir()
	built := filepath.Join(folder, name)
	build := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Stderr = own, os.Stderr
		out, err := cmd.Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	build("build", "-ldflags=-s -w", "-o", built, path+"/cmd/gardener-extension-"+name)
	module = build("list", "-m", "-f", "{{.Dir}}", path)
	program = filepath.Join(folder, "program")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" --metrics-bind-address=0 --health-bind-address=%s\n", built,
		map[string]string{"os-suse-chost": "0", "registry-cache": "127.0.0.1:8081"}[name]) // a probe of its chart needs it
	must(t, os.WriteFile(program, []byte(script), 0o700))
	t.Logf("the extension was built in %s", time.Since(begin).Round(time.Second))
	return module, program
}

// imageOfChart returns the image that the extension's chart names.
func imageOfChart(t *testing.T, module, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(module, "charts", "gardener-extension-"+name, "values.yaml"))
	must(t, err)
	var values struct{ Image struct{ Repository string } }
	must(t, yaml.Unmarshal(data, &values))
	return values.Image.Repository
}

// addMachineImage adds an image to the CloudProfile, like the existing one.
func (l *landscape) addMachineImage(t *testing.T, name string) {
	t.Helper()
	profiles := l.core("cloudprofiles", "")
	profile, err := profiles.Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	images, _, err := unstructured.NestedSlice(profile.Object, "spec", "machineImages")
	must(t, err)
	another := map[string]any{"name": name, "versions": images[0].(map[string]any)["versions"]}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"machineImages": append(images, another)}})
	must(t, err)
	_, err = profiles.Patch(t.Context(), "local", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// checkSUSE expects that the extension has written the user data with which the machine has booted.
func (s *shoot) checkSUSE(t *testing.T) {
	t.Helper()
	osc := schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "operatingsystemconfigs"}
	all, err := s.l.seedDynamic(t).Resource(osc).Namespace(s.id()).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	written := 0
	for _, object := range all.Items {
		if purpose, _, _ := unstructured.NestedString(object.Object, "spec", "purpose"); purpose != "provision" {
			continue
		}
		name, _, _ := unstructured.NestedString(object.Object, "status", "cloudConfig", "secretRef", "name")
		secret, err := s.l.seeds["local"].CoreV1().Secrets(s.id()).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if data := string(secret.Data["cloud_config"]); strings.HasPrefix(data, "#!/bin/bash") && strings.Contains(data, "zypper") {
			written++
		}
	}
	if written != 1 {
		t.Errorf("%d OperatingSystemConfigs have user data of the extension", written)
	}
}
