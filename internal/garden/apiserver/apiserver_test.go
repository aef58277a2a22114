package apiserver

import (
	"slices"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestStorageCodec checks that a ControllerDeployment is stored with what only v1 has of it.
func TestStorageCodec(t *testing.T) {
	codec, _, err := storageCodec()
	if err != nil {
		t.Fatal(err)
	}
	deployment := &gardencore.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Resources: []gardencore.NamedResourceReference{{Name: "credentials"}}}
	data, err := runtime.Encode(codec, deployment)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := stored.(*gardencore.ControllerDeployment); !ok || !slices.Equal(got.Resources, deployment.Resources) {
		t.Errorf("stored as %v, want %v", stored, deployment)
	}
}
