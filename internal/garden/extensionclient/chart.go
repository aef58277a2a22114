package extensionclient

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// maxChart is the maximum size of a packed chart that a gardenlet renders.
const maxChart = 4 << 20

// layoutScheme is the prefix of references to a folder with an OCI layout in the landscape's state directory.
const layoutScheme = "layout://"

// ReadChart returns the Helm part of a ControllerDeployment and the name of the chart: for a folder with a chart, for an archive
// that helm package makes, or for a reference to a registry.
func ReadChart(text string) (*gardencorev1.HelmControllerDeployment, string, error) {
	info, err := os.Stat(text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return referenceOf(text)
	case err != nil:
		return nil, "", fmt.Errorf("reading the chart: %w", err)
	}
	file := text
	if info.IsDir() {
		packed, err := pack(text)
		if err != nil {
			return nil, "", fmt.Errorf("packing the chart in %s: %w", text, err)
		}
		defer os.RemoveAll(filepath.Dir(packed))
		file = packed
	} else if info.Size() > maxChart {
		return nil, "", tooLarge(text, info.Size())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("reading the chart: %w", err)
	}
	if len(data) > maxChart {
		return nil, "", tooLarge(text, int64(len(data)))
	}
	c, err := loader.LoadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("%s is no chart: %w", text, err)
	}
	return &gardencorev1.HelmControllerDeployment{RawChart: data}, c.Name(), nil
}

func tooLarge(chart string, size int64) error {
	return fmt.Errorf("the chart %s has %d bytes, %d are allowed", chart, size, maxChart)
}

// pack writes the chart of a folder as an archive into a temporary folder.
func pack(dir string) (string, error) {
	var c *chart.Chart
	c, err := loader.LoadDir(dir)
	if err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp("", "gardenlite-chart-")
	if err != nil {
		return "", err
	}
	file, err := chartutil.Save(c, temporary)
	if err != nil {
		_ = os.RemoveAll(temporary)
	}
	return file, err
}

// referenceOf returns the Helm part for a reference. The chart's name is the last part of the repository's.
func referenceOf(text string) (*gardencorev1.HelmControllerDeployment, string, error) {
	ref := strings.TrimPrefix(text, "oci://")
	named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(ref, layoutScheme))
	if err != nil || !strings.Contains(ref, "/") || reference.IsNameOnly(named) {
		return nil, "", fmt.Errorf("%s is neither a folder with a chart, nor an archive of one, nor a reference with a tag or digest", text)
	}
	helm := &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{Ref: &ref}}
	return helm, path.Base(named.Name()), nil
}
