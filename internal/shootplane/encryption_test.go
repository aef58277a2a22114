package shootplane_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestEncryption enables encryption in a control plane with unencrypted data, and rotates the key: new data is not
// readable in its files, and in the end everything is encrypted with the new key alone.
func TestEncryption(t *testing.T) {
	w := newWorld(t)
	secret := authorities(t)
	w.create(t, id, secret)
	w.waitFor(t, id, spec.APIServer, 1)
	client, _ := w.client(t, id, secret)
	keepSecret(t, client, "plain")
	if !kept(t, w, "value of plain") {
		t.Fatal("what is not encrypted is not found, so that nothing can be looked for")
	}

	configure := func(checksum string, providers ...string) {
		t.Helper()
		secret[spec.KeyEncryption] = fmt.Appendf(nil, `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration",`+
			`"resources":[{"resources":["secrets"],"providers":[%s]}]}`, strings.Join(providers, ","))
		w.putSecret(t, secret)
		w.change(t, id, spec.APIServer, func(d *appsv1.Deployment) { d.Spec.Template.Annotations[spec.AnnotationChecksum] = checksum })
		w.waitFor(t, id, spec.APIServer, 1)
	}
	const identity = `{"identity":{}}`
	first, second := provider("first"), provider("second")
	configure("first", first, identity)
	keepSecret(t, client, "encrypted")
	if kept(t, w, "value of encrypted") || !kept(t, w, "k8s:enc:aescbc:v1:first:") {
		t.Error("what is written is not encrypted")
	}
	info, err := os.Stat(filepath.Join(w.dir, "pki", "shoots", id, spec.KeyEncryption))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the keys: %v, %v", info, err)
	}
	readable(t, client)
	configure("both", first, second, identity)
	configure("switched", second, first, identity)
	if written := rewritten(t, client); !slices.Contains(written, "plain") || !slices.Contains(written, "encrypted") {
		t.Errorf("only %v were encrypted anew", written)
	}
	if written := rewritten(t, client); len(written) > 0 {
		t.Errorf("%v are written although they are as they should be", written)
	}
	configure("last", second)
	readable(t, client)
	all, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) < 2 {
		t.Errorf("with the new key alone: %v", err)
	}
}

func provider(key string) string {
	return fmt.Sprintf(`{"aescbc":{"keys":[{"name":%q,"secret":%q}]}}`, key,
		base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(key[:1]), 32)))
}

func keepSecret(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"key": []byte("value of " + name)}}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func readable(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for _, name := range []string{"plain", "encrypted"} {
		secret, err := client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || string(secret.Data["key"]) != "value of "+name {
			t.Errorf("Secret %s: %v", name, err)
		}
	}
}

// rewritten sends an empty patch for each Secret, as the gardenlet does, and returns the names of the Secrets that were
// written again.
func rewritten(t *testing.T, client kubernetes.Interface) (names []string) {
	t.Helper()
	all, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range all.Items {
		after, err := client.CoreV1().Secrets(secret.Namespace).Patch(t.Context(), secret.Name, types.MergePatchType,
			[]byte("{}"), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if after.ResourceVersion != secret.ResourceVersion {
			names = append(names, secret.Name)
		}
	}
	return names
}

// kept reports whether a text is in one of the files of the datastore.
func kept(t *testing.T, w *world, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, "data", "shoots", id), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
