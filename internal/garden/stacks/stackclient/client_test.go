package stackclient

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// TestKeep checks that different archives are different files, also if they have no digest, as those of docker.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	for _, p := range []*stackpackage.Package{{}, {Digest: "sha256:aa"}} {
		for _, archive := range [][]byte{[]byte("one"), []byte("two")} {
			kept, err := keep(p, archive, folder)
			if err != nil {
				t.Fatal(err)
			}
			name := kept.Reference[len(stackpackage.FileScheme):]
			if data, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(data, archive) {
				t.Errorf("%s has %q, %v", name, data, err)
			}
		}
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 3 {
		t.Errorf("there are the files %v, %v", files, err)
	}
}

// TestWaitUninstalledAfterBlock checks that a block that the stack manager has not seen disappear yet is reported and is no error.
func TestWaitUninstalledAfterBlock(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	install := &v1alpha1.StackInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "app"}}
	install.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.Synced, Status: corev1.ConditionFalse,
		Reason: v1alpha1.ReasonDeletionBlocked, Message: "there are instances"}}
	c := Client{fake.NewClientBuilder().WithScheme(scheme).WithObjects(install).Build()}
	reported := ""
	err := c.WaitUninstalled(t.Context(), install, func(message string) {
		reported = message
		if err := c.Delete(t.Context(), install); err != nil { // as the stack manager, when it looks again
			t.Error(err)
		}
	})
	if err != nil || reported != "there are instances" {
		t.Errorf("%v after %q", err, reported)
	}
}
