package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// asks sends a request to the Shoot's API server, over a connection of its own.
func asks(t *testing.T, config *rest.Config) error {
	t.Helper()
	client := clientOf(t, config)
	_, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1})
	return err
}

// rotates runs one step of a rotation, and expects its phase afterwards.
func (s *shoot) rotates(t *testing.T, what, rotation, wanted string, flags ...string) {
	t.Helper()
	s.rotateByCommand(t, what, flags...)
	phase, _, _ := unstructured.NestedString(s.must(t).Object, "status", "credentials", "rotation", rotation, "phase")
	if phase != wanted {
		t.Errorf("%s %v is done, and the rotation is %q, not %s", what, flags, phase, wanted)
	}
}

// rotatesAuthorities: until the rotation is completed, kubeconfigs from before it work, and afterwards only those
// that were made since it began. It returns a kubeconfig that works. The other credentials are rotated, too.
func (s *shoot) rotatesAuthorities(t *testing.T) *rest.Config {
	t.Helper()
	before := s.admin(t)
	must(t, asks(t, before))
	s.rotates(t, "credentials", "certificateAuthorities", "Prepared")
	during := s.admin(t)
	for when, config := range map[string]*rest.Config{"before": before, "after": during} {
		if err := asks(t, config); err != nil {
			t.Errorf("a rotation has begun, a kubeconfig of %s that: %v", when, err)
		}
	}
	s.rotates(t, "ca", "certificateAuthorities", "Completed", "--complete")
	s.rotates(t, "serviceaccount-key", "serviceAccountKey", "Completed", "--complete")
	after := s.admin(t)
	for when, config := range map[string]*rest.Config{"during": during, "after": after} {
		if err := asks(t, config); err != nil {
			t.Errorf("the rotation is completed, a kubeconfig of %s it: %v", when, err)
		}
	}
	if err := asks(t, before); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("a kubeconfig of before the rotation trusts the Shoot still: %v", err)
	}
	before.CAData = after.CAData // what if its user trusted the new authority?
	if err := asks(t, before); !apierrors.IsUnauthorized(err) {
		t.Errorf("the Shoot takes a certificate of before the rotation: %v", err)
	}
	return after
}

// endsWithShoot: after the Shoot is deleted, its kubeconfig is useless, and there is no other one.
func (s *shoot) endsWithShoot(t *testing.T, last *rest.Config) {
	t.Helper()
	if err := asks(t, last); err == nil || apierrors.ReasonForError(err) == metav1.StatusReasonForbidden {
		t.Errorf("the Shoot is no more, and its kubeconfig: %v", err)
	}
	if _, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600); !apierrors.IsNotFound(err) {
		t.Errorf("the Shoot is no more, and there is a kubeconfig for it: %v", err)
	}
}

// traces returns what the private key of a kubeconfig looks like: as it is, in PEM, in the kubeconfig, and in the
// answer with the kubeconfig. Each line of PEM is a trace of its own, because a datastore may split long values.
func traces(t *testing.T, kubeconfig []byte) (all [][]byte) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	block, _ := pem.Decode(config.KeyData)
	if block == nil || !strings.Contains(block.Type, "PRIVATE KEY") {
		t.Fatal("there is no private key in the kubeconfig")
	}
	all = append(all, block.Bytes[:40]) // the number that is the key is among them
	for line := range bytes.Lines(config.KeyData) {
		if !bytes.HasPrefix(line, []byte("-----")) {
			all = append(all, bytes.TrimSpace(line))
		}
	}
	inside := base64.StdEncoding.EncodeToString(config.KeyData)
	at := bytes.Index(kubeconfig, []byte(inside))
	answer := base64.StdEncoding.EncodeToString(kubeconfig)
	for i := 64; i+64 < len(inside); i += 64 { // the first bytes are the same for all keys
		all = append(all, []byte(inside[i:i+64]), []byte(answer[(at+i)/3*4+4:(at+i)/3*4+68]))
	}
	return all
}

// found returns the files below folders that have one of the traces, and how many files it has read.
func found(t *testing.T, traces [][]byte, folders ...string) (with []string, looked int) {
	t.Helper()
	for _, folder := range folders {
		must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil // it has just gone
			}
			looked++
			content, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			for i, trace := range traces {
				if bytes.Contains(content, trace) {
					with = append(with, fmt.Sprintf("%s (%d)", path, i))
				}
			}
			return nil
		}))
	}
	return with, looked
}

// isNowhereElse looks for the keys of kubeconfigs in everything that the landscape writes: logs, audit logs, and the
// datastores, which have the events as well.
func (s *shoot) isNowhereElse(t *testing.T, audit string) {
	var keys [][]byte
	var last []byte
	for _, kind := range []string{"Admin", "Viewer"} {
		data, err := s.kubeconfig(t.Context(), s.l.kube, kind, 3600)
		must(t, err)
		keys, last = append(keys, traces(t, data)...), data
		if config, err := clientcmd.RESTConfigFromKubeConfig(data); err != nil || asks(t, config) != nil { // so that it could be logged
			t.Errorf("%s: %v", kind, err)
		}
		bad, err := s.kubeconfig(t.Context(), s.l.kube, kind, 599) // and the garden could write it in an error
		if err == nil || bytes.Contains([]byte(err.Error()), []byte("PRIVATE KEY")) {
			t.Errorf("%s: %s, %v", kind, bad, err)
		}
	}
	written := 0
	for _, log := range []string{audit, audit + "." + s.id()} {
		content, err := os.ReadFile(log)
		must(t, err)
		written += bytes.Count(content, []byte("kubeconfig"))
	}
	if written == 0 {
		t.Error("the garden's audit log does not tell of requests for kubeconfigs")
	}
	with, looked := found(t, keys, s.l.dir, filepath.Dir(audit))
	if len(with) > 0 || looked < 10 {
		t.Errorf("of %d files, these have the key: %v", looked, with)
	}

	proof := t.TempDir() // the traces are found in files that have them
	for name, data := range map[string][]byte{"kubeconfig": last, "answer": []byte(base64.StdEncoding.EncodeToString(last))} {
		must(t, os.WriteFile(filepath.Join(proof, name), data, 0o600))
		if with, _ := found(t, keys, filepath.Join(proof, name)); len(with) < 2 {
			t.Errorf("the key is not found in the %s: %v", name, with)
		}
	}
}
