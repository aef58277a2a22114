package charts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// maxRendered is the maximum size of all rendered templates of a chart together: they are stored in a Secret.
const maxRendered = corev1.MaxSecretSize

// Request is a chart with the parameters for rendering it.
type Request struct {
	// Archive is the chart, packed by helm package.
	Archive []byte
	// Release and Namespace are .Release.Name and .Release.Namespace.
	Release, Namespace string
	// KubeVersion is the version of the cluster, such as v1.36.4.
	KubeVersion string
	// Values override those of the chart.
	Values map[string]any
}

// render renders a chart in this process. As in Gardener, hooks and the folder crds are left out.
func render(request Request) ([]*unstructured.Unstructured, error) {
	c, err := load(request.Archive)
	if err != nil {
		return nil, err
	}
	version, err := chartutil.ParseKubeVersion(request.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the cluster: %w", err)
	}
	if err := chartutil.ProcessDependencies(c, request.Values); err != nil {
		return nil, fmt.Errorf("looking for the charts that it depends on: %w", err)
	}
	values, err := chartutil.ToRenderValues(c, request.Values,
		chartutil.ReleaseOptions{Name: request.Release, Namespace: request.Namespace, Revision: 1, IsInstall: true},
		&chartutil.Capabilities{KubeVersion: *version})
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, err
	}
	return decode(files)
}

// decode reads the objects in rendered files.
func decode(files map[string]string) (objects []*unstructured.Unstructured, err error) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		if size += len(files[name]); size > maxRendered {
			return nil, fmt.Errorf("its templates make more than %d bytes", maxRendered)
		}
		found, err := decodeFile(files[name])
		if err != nil {
			return nil, fmt.Errorf("reading what %s makes: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func decodeFile(text string) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 1024)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		switch {
		case len(obj.Object) == 0:
			continue
		case obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "":
			return nil, errors.New("each object needs apiVersion, kind and metadata.name")
		}
		if _, isHook := obj.GetAnnotations()["helm.sh/hook"]; !isHook {
			objects = append(objects, obj)
		}
	}
}
