package operationsvalidation

import (
	"slices"
	"strings"
	"testing"
	"time"

	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const (
	key      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAQNvsbG8nyhtKnl7BgHF9kAX6W7ZZ3EvZqRgtvri9RF"
	otherKey = key + " comment"
)

// said returns the errors as a list of type and field.
func said(errs field.ErrorList) string {
	var list []string
	for _, err := range errs {
		list = append(list, string(err.Type)[len("FieldValue"):]+" "+err.Field)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func bastion(change func(*gardenoperations.Bastion)) *gardenoperations.Bastion {
	b := &gardenoperations.Bastion{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "garden-dev", ResourceVersion: "1",
			Annotations: map[string]string{"gardener.cloud/created-by": "me"}},
		Spec: gardenoperations.BastionSpec{
			ShootRef:     corev1.LocalObjectReference{Name: "s"},
			SSHPublicKey: key,
			Ingress:      []gardenoperations.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "198.51.100.0/24"}}},
		},
	}
	change(b)
	return b
}

func ingress(cidr string, except ...string) gardenoperations.BastionIngressPolicy {
	return gardenoperations.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

func excepting(except string) func(*gardenoperations.Bastion) {
	return func(b *gardenoperations.Bastion) { b.Spec.Ingress[0].IPBlock.Except = []string{except} }
}

func TestBastion(t *testing.T) {
	type change = func(*gardenoperations.Bastion)
	for name, test := range map[string]struct {
		change  change
		want    string
		updated string // further errors of an update of the valid bastion
	}{
		"valid":    {func(*gardenoperations.Bastion) {}, "", ""},
		"name":     {func(b *gardenoperations.Bastion) { b.Name = "b.c" }, "Invalid metadata.name", "Invalid metadata.name"},
		"no shoot": {func(b *gardenoperations.Bastion) { b.Spec.ShootRef.Name = "" }, "Invalid spec.shootRef.name", "Invalid spec.shootRef.name"},
		"no key":   {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = "" }, "Invalid spec.sshPublicKey", "Invalid spec.sshPublicKey"},
		"two keys": {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey += "\n" + key }, "Invalid spec.sshPublicKey",
			"Invalid spec.sshPublicKey"},
		"options": {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = "no-pty " + key }, "Invalid spec.sshPublicKey",
			"Invalid spec.sshPublicKey"},
		"long comment": {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = key + " " + strings.Repeat("c", 1025) },
			"Invalid spec.sshPublicKey", "Invalid spec.sshPublicKey"},
		"leading zero":   {func(b *gardenoperations.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "10.0.0.0/08" }, "Invalid spec.ingress", ""},
		"too many rules": {func(b *gardenoperations.Bastion) { b.Spec.Ingress = slices.Repeat(b.Spec.Ingress, 257) }, "TooMany spec.ingress", ""},
		"bad key": {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = "ssh-rsa x" }, "Invalid spec.sshPublicKey",
			"Invalid spec.sshPublicKey"},
		"other key":  {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = otherKey }, "", "Invalid spec.sshPublicKey"},
		"creator":    {func(b *gardenoperations.Bastion) { b.Annotations = nil }, "", "Invalid metadata.annotations"},
		"no ingress": {func(b *gardenoperations.Bastion) { b.Spec.Ingress = nil }, "Invalid spec.ingress", ""},
		"bad ranges": {func(b *gardenoperations.Bastion) {
			b.Spec.Ingress = []gardenoperations.BastionIngressPolicy{{}, {IPBlock: networkingv1.IPBlock{CIDR: "1.2.3.4"}}}
		}, "Invalid spec.ingress, Invalid spec.ingress", ""},
		"other ranges": {func(b *gardenoperations.Bastion) {
			b.Spec.Ingress = append(b.Spec.Ingress, ingress("2001:db8::/32", "2001:db8:1::/48"), ingress("10.0.0.0/8", "10.1.0.0/16", "10.2.3.4/32"))
		}, "", ""},
		"excepts no range": {func(b *gardenoperations.Bastion) { b.Spec.Ingress[0].IPBlock.Except = []string{"198.51.100.1", ""} },
			"Invalid spec.ingress, Invalid spec.ingress", ""},
		"excepts what is elsewhere":       {excepting("198.51.101.0/25"), "Invalid spec.ingress", ""},
		"excepts all of it":               {excepting("198.51.100.0/24"), "Invalid spec.ingress", ""},
		"excepts more":                    {excepting("198.51.0.0/16"), "Invalid spec.ingress", ""},
		"excepts what is of another kind": {excepting("2001:db8::/32"), "Invalid spec.ingress", ""},
		"excepts a part":                  {excepting("198.51.100.128/25"), "", ""},
	} {
		if got := said(ValidateBastion(bastion(test.change))); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		want := strings.Split(test.want+", "+test.updated, ", ")
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		slices.Sort(want)
		if got := said(ValidateBastionUpdate(bastion(test.change), bastion(func(*gardenoperations.Bastion) {}))); got != strings.Join(
			want, ", ") {
			t.Errorf("%s, updated: %s", name, got)
		}
	}
}

// TestAcceptedBefore checks that the finalizer of a Bastion can be removed even if its spec is not valid any more.
func TestAcceptedBefore(t *testing.T) {
	before := bastion(func(b *gardenoperations.Bastion) {
		b.Spec.SSHPublicKey, b.Spec.Ingress[0].IPBlock.CIDR = "no-pty "+key, "10.0.0.0/08"
		b.Finalizers = []string{"gardener.cloud/gardener"}
	})
	after := before.DeepCopy()
	after.Finalizers = nil
	if got := said(ValidateBastionUpdate(after, before)); got != "" {
		t.Error(got)
	}
	after.Spec.Ingress = append(after.Spec.Ingress, ingress("10.0.0.0/8"))
	if got := said(ValidateBastionUpdate(after, before)); got != "Invalid spec.ingress, Invalid spec.sshPublicKey" {
		t.Error(got)
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(d))) }
	for name, test := range map[string]struct {
		old, beat *metav1.Time
		creator   string
		want      string
	}{
		"as it was":           {at(-time.Minute), at(-time.Minute), "me", ""},
		"now":                 {at(-time.Minute), at(0), "me", ""},
		"none":                {at(-time.Minute), nil, "me", ""},
		"never had one":       {nil, nil, "me", ""},
		"to come":             {at(-time.Minute), at(time.Second), "me", "Invalid status.lastHeartbeatTimestamp"},
		"to come, as it was":  {at(time.Second), at(time.Second), "me", ""},
		"first and to come":   {nil, at(time.Second), "me", "Invalid status.lastHeartbeatTimestamp"},
		"made by another one": {at(0), at(0), "you", "Invalid metadata.annotations"},
		"without a creator":   {at(0), at(0), "", "Invalid metadata.annotations"},
	} {
		old := bastion(func(b *gardenoperations.Bastion) { b.Status.LastHeartbeatTimestamp = test.old })
		b := bastion(func(b *gardenoperations.Bastion) {
			b.Status.LastHeartbeatTimestamp, b.Annotations["gardener.cloud/created-by"] = test.beat, test.creator
		})
		if got := said(ValidateBastionStatusUpdate(b, old, now)); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
