package manifests

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestShootSample checks that the sample rotates its SSH key pair in the maintenance time window.
func TestShootSample(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	read(t, "samples/shoot.yaml", shoot)
	if rotation := shoot.Spec.Maintenance.AutoRotation.Credentials.SSHKeypair; rotation.RotationPeriod.Duration != 7*24*time.Hour {
		t.Errorf("the rotation of the SSH key pair: %+v", rotation)
	}
}

// TestStorageClass checks that a control plane provisions the volumes of the default StorageClass.
func TestStorageClass(t *testing.T) {
	class := &storagev1.StorageClass{}
	read(t, "cluster/storageclass.yaml", class)
	if class.Provisioner != VolumeProvisioner || class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
		t.Errorf("%+v", class)
	}
}
