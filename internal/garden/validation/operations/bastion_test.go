package operations

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
	otherKey = key + " somebody"
)

// said lists errors as type and field.
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
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "garden-dev", ResourceVersion: "1", Annotations: map[string]string{"gardener.cloud/created-by": "me"}},
		Spec: gardenoperations.BastionSpec{
			ShootRef:     corev1.LocalObjectReference{Name: "s"},
			SSHPublicKey: key,
			Ingress:      []gardenoperations.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "198.51.100.0/24"}}},
		},
	}
	change(b)
	return b
}

func TestBastion(t *testing.T) {
	type change = func(*gardenoperations.Bastion)
	for name, test := range map[string]struct {
		change  change
		want    string
		updated string // what an update says besides, from the valid one
	}{
		"valid":      {func(*gardenoperations.Bastion) {}, "", ""},
		"name":       {func(b *gardenoperations.Bastion) { b.Name = "b.c" }, "Invalid metadata.name", "Invalid metadata.name"},
		"no shoot":   {func(b *gardenoperations.Bastion) { b.Spec.ShootRef.Name = "" }, "Invalid spec.shootRef.name", "Invalid spec.shootRef.name"},
		"no key":     {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = "" }, "Invalid spec.sshPublicKey", "Invalid spec.sshPublicKey"},
		"bad key":    {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = "ssh-rsa x" }, "Invalid spec.sshPublicKey", "Invalid spec.sshPublicKey"},
		"other key":  {func(b *gardenoperations.Bastion) { b.Spec.SSHPublicKey = otherKey }, "", "Invalid spec.sshPublicKey"},
		"creator":    {func(b *gardenoperations.Bastion) { b.Annotations = nil }, "", "Invalid metadata.annotations"},
		"no ingress": {func(b *gardenoperations.Bastion) { b.Spec.Ingress = nil }, "Invalid spec.ingress", ""},
		"bad ranges": {func(b *gardenoperations.Bastion) {
			b.Spec.Ingress = []gardenoperations.BastionIngressPolicy{{}, {IPBlock: networkingv1.IPBlock{CIDR: "1.2.3.4"}}}
		}, "Invalid spec.ingress, Invalid spec.ingress", ""},
	} {
		if got := said(ValidateBastion(bastion(test.change))); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		want := strings.Split(test.want+", "+test.updated, ", ")
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		slices.Sort(want)
		if got := said(ValidateBastionUpdate(bastion(test.change), bastion(func(*gardenoperations.Bastion) {}))); got != strings.Join(want, ", ") {
			t.Errorf("%s, updated: %s", name, got)
		}
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for want, beat := range map[string]*metav1.Time{
		"":                                       ptr.To(metav1.NewTime(now)),
		"Required status.lastHeartbeatTimestamp": nil,
		"Invalid status.lastHeartbeatTimestamp":  ptr.To(metav1.NewTime(now.Add(time.Second))),
	} {
		b := bastion(func(b *gardenoperations.Bastion) { b.Status.LastHeartbeatTimestamp = beat })
		if got := said(ValidateBastionStatusUpdate(b, now)); got != want {
			t.Errorf("%v: %s", beat, got)
		}
	}
}
