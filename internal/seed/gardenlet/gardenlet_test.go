package gardenlet

import (
	"errors"
	"strings"
	"testing"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestRotationRange(t *testing.T) {
	for name, test := range map[string]struct {
		minimum, maximum *int32
		from, to         float64
	}{
		"not set":             {nil, nil, 0, 0},
		"Gardener's defaults": {ptr.To[int32](70), ptr.To[int32](90), 0, 0},
		"minimum":             {ptr.To[int32](50), ptr.To[int32](90), 0.5, 0.9},
		"maximum":             {ptr.To[int32](70), ptr.To[int32](75), 0.7, 0.75},
	} {
		from, to := rotationRange(&gardenletconfigv1alpha1.KubeconfigValidity{
			AutoRotationJitterPercentageMin: test.minimum, AutoRotationJitterPercentageMax: test.maximum})
		if from != test.from || to != test.to {
			t.Errorf("%s: between %g and %g, want %g and %g", name, from, to, test.from, test.to)
		}
	}
}

// A failed rotation is an event of the Seed, and each rotation triggers a reconciliation of the Seed.
func TestRotationObserver(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).Build()
	recorder, renewed := events.NewFakeRecorder(2), make(chan event.GenericEvent, 1)
	observe := (&Gardenlet{seedName: "a"}).rotationObserver(garden, recorder, renewed)
	observe(time.Time{}, nil)
	observe(time.Time{}, errors.New("denied"))
	if e := <-recorder.Events; !strings.Contains(e, "Warning GardenletCertificateRotationFailed denied") || len(recorder.Events) > 0 {
		t.Errorf("event %q", e)
	}
	if e := <-renewed; e.Object.GetName() != "a" || len(renewed) > 0 {
		t.Errorf("%v triggers a reconciliation", e.Object)
	}
}
