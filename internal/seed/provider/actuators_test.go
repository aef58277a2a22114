package provider

import (
	"encoding/base64"
	"os/exec"
	"strings"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

func (w *shootWorld) infrastructure(annotations map[string]string) *extensionsv1alpha1.Infrastructure {
	infra := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "a", Annotations: annotations}}
	infra.Spec = extensionsv1alpha1.InfrastructureSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"},
		SecretRef:   corev1.SecretReference{Namespace: technicalID, Name: "cloudprovider"},
	}
	w.create(infra)
	return infra
}

func TestInfrastructure(t *testing.T) {
	w := newShootWorld(t)
	infra := w.infrastructure(nil)
	w.mustSettle()
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil {
		t.Fatal(err)
	}
	status := infra.Status
	if ptr.Deref(status.NodesCIDR, "") != "10.1.0.0/16" || status.Networking == nil ||
		status.Networking.Pods[0] != "10.2.0.0/16" || status.ProviderStatus == nil ||
		string(status.State.Raw) != `{"cidr":"10.1.0.0/16","network":"shoot--dev--a"}` ||
		w.cloud.networks[technicalID].String() != "10.1.0.0/16" {
		t.Errorf("status %+v, networks %v", status, w.cloud.networks)
	}
	annotate(infra, func(a map[string]string) { a["gardener.cloud/operation"] = "migrate" })
	if err := w.seed.Update(t.Context(), infra); err != nil {
		t.Fatal(err)
	}
	w.mustSettle()
	if len(w.cloud.networks) != 1 {
		t.Error("a migration removed the network")
	}
	if err := w.seed.Delete(t.Context(), infra); err != nil {
		t.Fatal(err)
	}
	infra = w.infrastructure(nil)
	w.mustSettle()
	w.deaf = true
	w.cloud.instances["bastion"] = cloud.InstanceSpec{ID: "bastion", Network: technicalID}
	if err := w.seed.Delete(t.Context(), infra); err != nil {
		t.Fatal(err)
	}
	if err := w.round(); err == nil {
		t.Error("a network was deleted that is in use")
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil ||
		len(infra.Status.LastError.Codes) != 1 || infra.Status.LastError.Codes[0] != "ERR_INFRA_DEPENDENCIES" {
		t.Errorf("%v: %+v", err, infra.Status.LastError)
	}
	clear(w.cloud.instances)
	w.mustSettle()
	if len(w.cloud.networks) != 0 {
		t.Error("the network is left")
	}
}

// TestInjectionOfKindsWithCloud checks that injection works for Infrastructure and Worker, and that they first do nothing.
func TestInjectionOfKindsWithCloud(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	infra := w.infrastructure(map[string]string{injection.AnnotationFail: "once:ERR_INFRA_QUOTA_EXCEEDED no more networks"})
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) {
		annotate(worker, func(a map[string]string) {
			a[injection.AnnotationDelay], a[injection.AnnotationFail] = "1m", "once:ERR_INFRA_RESOURCES_DEPLETED"
		})
	})
	if err := w.round(); err == nil || len(w.cloud.networks)+len(w.cloud.instances) > 0 {
		t.Errorf("the Infrastructure did not fail: %v", err)
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil ||
		infra.Status.LastError.Codes[0] != "ERR_INFRA_QUOTA_EXCEEDED" {
		t.Errorf("%v: %+v", err, infra.Status.LastError)
	}
	w.mustSettle()
	if len(w.cloud.networks) != 1 || len(w.cloud.instances) != 0 {
		t.Errorf("%d networks, %d instances during the delay of the Worker", len(w.cloud.networks), len(w.cloud.instances))
	}
	w.clock.Step(time.Minute)
	if err := w.round(); err == nil || w.getWorker().Status.LastError.Codes[0] != "ERR_INFRA_RESOURCES_DEPLETED" ||
		len(w.cloud.instances) != 0 {
		t.Errorf("the Worker did not fail: %v", err)
	}
	w.mustSettle()
	w.clock.Step(time.Minute) // what is tried again is delayed again
	w.mustSettle()
	w.expectSucceeded("Create", 1)
}

// TestShootFailsOnce checks that a failure of a Shoot that happens once happens to one of its resources, also after a
// restart.
func TestShootFailsOnce(t *testing.T) {
	w := newShootWorld(t, pool("one", 1))
	shoot := &metav1.ObjectMeta{Annotations: map[string]string{injection.AnnotationFail: "once.1:ERR_INFRA_DEPENDENCIES"}}
	annotations := &metav1.ObjectMeta{}
	injection.PassFromShoot(shoot, annotations, "Infrastructure")
	infra := w.infrastructure(annotations.Annotations)
	if err := w.round(); err == nil {
		t.Error("the Infrastructure did not fail")
	}
	w.start()
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { injection.PassFromShoot(shoot, worker, "Worker") })
	w.mustSettle()
	w.expectSucceeded("Create", 1)
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil ||
		infra.Status.LastOperation.State != "Succeeded" {
		t.Errorf("%v: %+v", err, infra.Status.LastOperation)
	}
	shoot.Annotations[injection.AnnotationFail] = "once.2:ERR_INFRA_DEPENDENCIES"
	w.ask("reconcile", func(worker *extensionsv1alpha1.Worker) { injection.PassFromShoot(shoot, worker, "Worker") })
	if err := w.round(); err == nil {
		t.Error("another failure did not happen")
	}
}

// TestProvisioning runs the script in a real shell, in a folder of its own.
func TestProvisioning(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"line": "a line\n", "no line": "no end of line", "quotes": `it's "$HOME" \ <<BOOTSTRAP_TOKEN>>`, "empty": "", "binary": "\x00\xff",
		"end": heredoc + "\n", "encoded": "encoded\n",
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "init"}}
	for name, content := range files {
		inline := &extensionsv1alpha1.FileContentInline{Data: content}
		if name == "encoded" || name == "binary" {
			inline = &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString([]byte(content))}
		}
		osc.Spec.Files = append(osc.Spec.Files, extensionsv1alpha1.File{Path: dir + "/f/" + name,
			Permissions: ptr.To[uint32](0o600), Content: extensionsv1alpha1.FileContent{Inline: inline}})
	}
	osc.Spec.Units = []extensionsv1alpha1.Unit{{Name: "a.service", Enable: ptr.To(true)}}
	script, err := provisioning(t.Context(), newSeed(), osc)
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "sh", "-c", "systemctl() { echo \"$@\"; }\n"+script).CombinedOutput()
	if err != nil || string(output) != "daemon-reload\nenable a.service\nstart a.service\n" {
		t.Fatalf("%v: %s", err, output)
	}
	for name, content := range files {
		got, err := exec.CommandContext(t.Context(), "cat", dir+"/f/"+name).Output()
		if err != nil || string(got) != content {
			t.Errorf("%s: %q %v, want %q", name, got, err, content)
		}
	}
	if !strings.Contains(script, "<<BOOTSTRAP_TOKEN>>") {
		t.Error("what is to be replaced cannot be found")
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		zones, total int32
		value        intstr.IntOrString
		want         []string
	}{
		{3, 7, intstr.FromInt32(2), []string{"1", "1", "0"}},
		{2, 4, intstr.FromString("25%"), []string{"25%", "25%"}},
		{2, 3, intstr.FromString("30%"), []string{"40%", "20%"}},
		{2, 0, intstr.FromString("30%"), []string{"30%", "30%"}},
	} {
		for i, want := range test.want {
			if got := spread(int32(i), test.zones, test.total, test.value); got.String() != want {
				t.Errorf("zone %d of %d, %s of %d: %s, want %s", i, test.zones, test.value.String(), test.total, got.String(), want)
			}
		}
	}
}

func TestCheckRecord(t *testing.T) {
	for value, test := range map[string]struct {
		kind  extensionsv1alpha1.DNSRecordType
		valid bool
	}{"127.0.0.1": {"A", true}, "::1": {"A", false}, "fe80::1": {"AAAA", true}, "a.example.org.": {"CNAME", true},
		"a b": {"CNAME", false}, "anything": {"TXT", true}} {
		if err := checkRecord(test.kind, value); (err == nil) != test.valid {
			t.Errorf("%s %s: %v", test.kind, value, err)
		}
	}
}
