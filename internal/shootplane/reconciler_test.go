package shootplane

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

func TestDesiredNetworks(t *testing.T) {
	found := objects{apiServer: &appsv1.Deployment{}, controllers: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{spec.AnnotationPodCIDR: "10.2.0.0/16", spec.AnnotationNodeMask: "26"}}}}
	if d, err := desiredState(found); err != nil || d.PodCIDR.String() != "10.2.0.0/16" || d.NodeMask != 26 {
		t.Errorf("%+v, %v", d, err)
	}
	found.controllers.Annotations[spec.AnnotationNodeMask] = "x"
	if _, err := desiredState(found); err == nil {
		t.Error("no error for a size that is no number")
	}
	delete(found.controllers.Annotations, spec.AnnotationNodeMask)
	if d, err := desiredState(found); err != nil || d.NodeMask != 0 {
		t.Errorf("without a size: %+v, %v", d, err)
	}
}
