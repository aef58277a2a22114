package controllerinstallation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

const (
	// ProviderDeployment is the name of the ControllerDeployment of the landscape's own provider.
	ProviderDeployment = "provider-local"
	// AnnotationSimulated makes any other ControllerDeployment one that this process serves, if it is "true".
	AnnotationSimulated = "gardenlite.dev/simulated"
)

// Simulated says whether what is deployed is served by this process: there is no chart that would have to be right.
func Simulated(deployment *gardencorev1.ControllerDeployment) bool {
	simulated, _ := strconv.ParseBool(deployment.Annotations[AnnotationSimulated])
	return simulated || deployment.Name == ProviderDeployment
}

// NeedsGardenAccess says whether the extension has an identity in the garden: if it asks for one. The landscape's own
// provider has one unless it says that it needs none.
func NeedsGardenAccess(deployment *gardencorev1.ControllerDeployment) bool {
	return ptr.Deref(deployment.InjectGardenKubeconfig, Simulated(deployment))
}

// responsible says whether the gardenlet is who deploys this. Deployments of other types than helm are somebody else's.
func responsible(deployment *gardencorev1.ControllerDeployment) bool {
	return deployment.Helm != nil || Simulated(deployment)
}

// validate is the condition Valid of who is deployed like this.
func validate(deployment *gardencorev1.ControllerDeployment) conditions.Condition {
	invalid := func(reason, format string, args ...any) conditions.Condition {
		return condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionFalse, reason,
			fmt.Sprintf("ControllerDeployment "+deployment.Name+": "+format, args...))
	}
	if !Simulated(deployment) {
		helm := deployment.Helm
		values := map[string]any{}
		switch {
		case helm.Values != nil && json.Unmarshal(helm.Values.Raw, &values) != nil:
			return invalid("ChartInformationInvalid", "helm.values must be an object")
		case len(helm.RawChart) == 0 && helm.OCIRepository == nil:
			return invalid("ChartInformationInvalid", "it needs a chart: set helm.rawChart or helm.ociRepository")
		case len(helm.RawChart) == 0 && helm.OCIRepository.Ref == nil && helm.OCIRepository.Repository == nil:
			return invalid("OCIChartCannotBePulled", "helm.ociRepository names no chart: set ref, or repository with tag or digest")
		case len(helm.RawChart) > 0:
			if err := checkChart(helm.RawChart); err != nil {
				return invalid("ChartCannotBeRendered", "helm.rawChart: %v", err)
			}
		}
	}
	return condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, "RegistrationValid",
		"The deployment is complete. No workload runs in this seed, so no chart is rendered.")
}

// maxChart is what is read of a chart that is packed, bytes: charts are far smaller, and bombs are not.
const maxChart = 20 << 20

// checkChart wants the packed folder of a chart, which has a Chart.yaml.
func checkChart(archive []byte) error {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("unpacking it, a .tgz in base64 is expected: %w", err)
	}
	files := tar.NewReader(io.LimitReader(unpacked, maxChart))
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("there is no Chart.yaml in it; pack it with helm package")
		}
		if err != nil {
			return fmt.Errorf("unpacking it, a .tgz in base64 is expected: %w", err)
		}
		if path.Base(file.Name) == "Chart.yaml" {
			return nil
		}
	}
}
