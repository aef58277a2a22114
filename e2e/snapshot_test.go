package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSnapshot saves a landscape that runs, has a second one begin with it beside the first, and goes back to it.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	s := l.newShoot(t, "one", func(spec map[string]any) {
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = 1, 1
	})
	s.waitForSucceeded(t)
	s.healthy(t)
	b := s.newBastion(t, "open", "127.0.0.0/8")
	s.ssh(t, "--", "echo before >kept; sync").OK(t)

	l.mark(t, "before")
	var saved struct{ Name, File string }
	must(t, json.Unmarshal([]byte(gardenlite(t, l.dir, "snapshot", "save", "first", "-o", "json").OK(t).Stdout), &saved))
	l.mark(t, "after")
	s.ssh(t, "--", "echo after >kept; sync").OK(t)
	if r := gardenlite(t, l.dir, "snapshot", "save", "first"); r.Code == 0 || !strings.Contains(r.Stderr, "already") {
		t.Errorf("a second one of that name: %+v", r)
	}
	if r := gardenlite(t, l.dir, "snapshot", "list"); !strings.Contains(r.Stdout, "first") {
		t.Errorf("the list: %+v", r)
	}
	if r := gardenlite(t, l.dir, "snapshot", "restore", "first", "--yes"); r.Code == 0 || !strings.Contains(r.Stderr, "gardenlite down") {
		t.Errorf("restored while it runs: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "landscape.tar.zst")
	gardenlite(t, l.dir, "snapshot", "export", "first", "-o", file).OK(t)

	other := stoppedLandscape(t)
	other.up(t, "--name", "other", "--from", file)
	copied := &shoot{l: other, name: s.name}
	moved := &bastion{s: copied, name: b.name, signer: b.signer, keyFile: b.keyFile}
	copied.isElsewhere(t, s)
	moved.isElsewhere(t, b)
	other.marked(t, "before", "after")
	l.marked(t, "after", "")
	copied.works(t, "before")
	s.works(t, "after")
	b.opens(t)
	moved.opens(t)
	if r := gardenlite(t, other.dir, "up", "--from", file); !strings.Contains(r.Stderr+r.Stdout, "is running already") {
		t.Errorf("up with a landscape that runs: %+v", r)
	}
	gardenlite(t, other.dir, "down").OK(t)
	if r := gardenlite(t, other.dir, "up", "--from", file); r.Code == 0 || !strings.Contains(r.Stderr, "without --from") {
		t.Errorf("up with a landscape that has data: %+v", r)
	}

	gardenlite(t, l.dir, "down").OK(t)
	gardenlite(t, l.dir, "snapshot", "restore", "first", "--yes").OK(t)
	l.up(t)
	l.marked(t, "before", "after")
	s.works(t, "before")
	b.ready(t)
	b.opens(t)
	gardenlite(t, l.dir, "snapshot", "delete", "first").OK(t)

	data, err := os.ReadFile(file)
	must(t, err)
	data[len(data)/2] ^= 1
	must(t, os.WriteFile(file, data, 0o600))
	fresh := filepath.Join(t.TempDir(), "fresh")
	if r := gardenlite(t, fresh, "up", "--from", file); r.Code == 0 || !strings.Contains(r.Stderr, "checksum") {
		t.Errorf("up with a damaged file: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(fresh, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has data: %v", err)
	}
}

// mark makes a ConfigMap in the garden.
func (l *landscape) mark(t *testing.T, name string) {
	t.Helper()
	_, err := l.kube.CoreV1().ConfigMaps(shootNamespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// marked expects that there is one ConfigMap, and not another.
func (l *landscape) marked(t *testing.T, is, isNot string) {
	t.Helper()
	if _, err := l.kube.CoreV1().ConfigMaps(shootNamespace).Get(t.Context(), is, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if isNot == "" {
		return
	}
	if _, err := l.kube.CoreV1().ConfigMaps(shootNamespace).Get(t.Context(), isNot, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%s: %v", isNot, err)
	}
}

// works expects that the Shoot is healthy and can be used, and that its node has a text.
func (s *shoot) works(t *testing.T, text string) {
	t.Helper()
	s.waitForSucceeded(t)
	s.healthy(t)
	s.nodes(t, clientOf(t, s.admin(t)), len(s.machines(t)))
	if r := s.ssh(t, "--", "cat kept").OK(t); strings.TrimSpace(r.Stdout) != text {
		t.Errorf("its node has %q, not %q", r.Stdout, text)
	}
}

// isElsewhere waits until the Shoot has another address than its origin.
func (s *shoot) isElsewhere(t *testing.T, origin *shoot) {
	t.Helper()
	at := func(s *shoot) string {
		addresses, _, _ := unstructured.NestedSlice(s.must(t).Object, "status", "advertisedAddresses")
		return fmt.Sprint(addresses)
	}
	first := at(origin)
	eventually(t, shootTimeout, func(context.Context) error {
		if own := at(s); own == first {
			return fmt.Errorf("it is at %s as its origin", own)
		}
		return nil
	})
}

// isElsewhere waits until the Bastion has another address than its origin.
func (b *bastion) isElsewhere(t *testing.T, origin *bastion) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		if b.ready(t); b.address == origin.address {
			return fmt.Errorf("it is at %s as its origin", b.address)
		}
		return nil
	})
}

// opens expects that the Bastion lets in who has its key.
func (b *bastion) opens(t *testing.T) {
	t.Helper()
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	_ = client.Close()
}
