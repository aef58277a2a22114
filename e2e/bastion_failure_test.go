package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// inSeed returns the Bastion of the seed that was created for this Bastion of the garden.
func (b *bastion) inSeed(ctx context.Context) (*unstructured.Unstructured, error) {
	data, err := b.s.l.seeds["local"].CoreV1().RESTClient().Get().
		AbsPath("/apis/extensions.gardener.cloud/v1alpha1/namespaces", b.s.id(), "bastions", b.name).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, obj.UnmarshalJSON(data)
}

func (b *bastion) patch(t *testing.T, patch string) {
	t.Helper()
	_, err := b.s.l.at("bastions", shootNamespace).Patch(t.Context(), b.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// waitGone waits until the Bastion is gone from the garden. By then it has to be gone from the seed, and to have no
// listener.
func (b *bastion) waitGone(t *testing.T) {
	t.Helper()
	eventually(t, shootTimeout, func(ctx context.Context) error {
		obj, err := b.s.l.at("bastions", shootNamespace).Get(ctx, b.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("Bastion %s is there: %v", b.name, obj.Object["status"])
		}
		return err
	})
	if _, err := b.inSeed(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("the Bastion %s in the seed: %v", b.name, err)
	}
	if b.address != "" && answers(b.address) {
		t.Errorf("something listens at %s, and the Bastion %s has gone", b.address, b.name)
	}
}

// failureIsTold: an error of the provider is reported in the garden, is retried, and does not prevent a deletion.
func (s *shoot) failureIsTold(t *testing.T) {
	const quota = "always:ERR_INFRA_QUOTA_EXCEEDED no public address is left"
	once := s.wantBastion(t, "once", map[string]any{"gardenlite.dev/fail": "once"}, "127.0.0.0/8")
	once.ready(t) // by itself
	if obj, err := once.inSeed(t.Context()); err != nil || obj.GetAnnotations()["gardenlite.dev/failed"] != "once" {
		t.Errorf("it has not failed before: %v, %v", err, obj)
	}
	once.delete(t)

	always := s.wantBastion(t, "always", map[string]any{"gardenlite.dev/fail": quota}, "127.0.0.0/8")
	always.says(t, "False", "FailedReconciling", "no public address is left")
	always.says(t, "False", "FailedReconciling", "ERR_INFRA_QUOTA_EXCEEDED")
	always.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":null}}}`)
	always.ready(t)
	client, err := login(t.Context(), always.address, "", ssh.PublicKeys(always.signer))
	must(t, err)
	defer client.Close()
	always.delete(t)

	for _, end := range []struct{ name, relief string }{
		{"repaired", `"gardenlite.dev/fail":null`}, {"forced", `"confirmation.gardener.cloud/force-deletion":"true"`},
	} {
		name, relief := end.name, end.relief
		b := s.wantBastion(t, name, map[string]any{"gardenlite.dev/fail": quota}, "127.0.0.0/8")
		b.says(t, "False", "FailedReconciling", "no public address is left")
		must(t, s.l.at("bastions", shootNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
		b.says(t, "False", "DeletionInProgress", "no public address is left")
		b.patch(t, `{"metadata":{"annotations":{`+relief+`}}}`)
		b.waitGone(t)
	}
}

// machineGoesDown: a bastion that a user has powered off from within is not ready, and can still be deleted.
func (s *shoot) machineGoesDown(t *testing.T) {
	b, other := s.newBastion(t, "down", "127.0.0.0/8"), s.newBastion(t, "up", "127.0.0.0/8")
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	session, err := client.NewSession()
	must(t, err)
	_ = session.Run("sudo poweroff") // which cuts the session
	b.says(t, "False", "FailedReconciling", "powered off")
	if answers(b.address) {
		t.Error("it is off, and listens")
	}
	other.ready(t)
	b.delete(t)
	other.delete(t)
}

// moves: a bastion whose address another program uses after a restart has another one.
func (b *bastion) moves(t *testing.T, other net.Listener) {
	t.Helper()
	before := b.address
	eventually(t, shootTimeout, func(context.Context) error {
		if b.ready(t); b.address == before {
			return fmt.Errorf("it says that it is at %s, where another program listens", before)
		}
		return nil
	})
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	_ = client.Close()
	b.delete(t)
	must(t, other.Close())
}

// goesWithBastions deletes the Shoot, which has a Bastion with an open session, and one that the provider fails to
// delete. The Shoot waits for both, reports that, and leaves nothing behind.
func (s *shoot) goesWithBastions(t *testing.T) {
	used, stuck := s.newBastion(t, "used", "127.0.0.0/8"), s.newBastion(t, "stuck", "127.0.0.0/8")
	client, err := login(t.Context(), used.address, "", ssh.PublicKeys(used.signer))
	must(t, err)
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	stuck.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":"always:ERR_INFRA_DEPENDENCIES the address is still in use"}}}`)
	eventually(t, shootTimeout, func(ctx context.Context) error {
		obj, err := stuck.inSeed(ctx)
		if err == nil && obj.GetAnnotations()["gardenlite.dev/fail"] == "" {
			err = fmt.Errorf("the seed's Bastion has not been told to fail yet")
		}
		return err
	})
	s.delete(t)
	used.waitGone(t)
	isCut(t, "its Shoot is being deleted", ended)
	stuck.says(t, "False", "DeletionInProgress", "the address is still in use")
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := s.get(t.Context())
		if err != nil {
			return err
		}
		kind, state, _ := lastOperation(obj)
		told, _, _ := unstructured.NestedString(obj.Object, "status", "lastOperation", "description")
		if kind != "Delete" || state != "Processing" || !strings.Contains(told, "Waiting until Bastions are deleted") {
			return fmt.Errorf("the Shoot does not say what it waits for: %s %s, %s", kind, state, told)
		}
		return nil
	})
	if err := asks(t, s.admin(t)); err != nil { // needed to find out what blocks the deletion
		t.Errorf("a kubeconfig of a Shoot that is being deleted: %v", err)
	}
	stuck.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":null}}}`)
	stuck.waitGone(t)
	s.waitGone(t)
	left, err := os.ReadDir(filepath.Join(s.l.dir, "cloud", "instances"))
	must(t, err)
	for _, entry := range left {
		if strings.Contains(entry.Name(), s.id()) {
			t.Errorf("the cloud has %s still", entry.Name())
		}
	}
}
