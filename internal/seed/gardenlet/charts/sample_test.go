package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gardenlite/gardenlite/manifests"
)

// TestSample checks that the chart in the sample of an extension equals the one in the folder, and can be rendered.
func TestSample(t *testing.T) {
	sample, err := fs.ReadFile(manifests.FS, "samples/extension.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployment := &gardencorev1.ControllerDeployment{}
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(sample), 1024).Decode(deployment); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	err = fs.WalkDir(manifests.FS, "charts/extension", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(manifests.FS, name)
		want[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := unpack(t, deployment.Helm.RawChart); !maps.Equal(got, want) {
		t.Errorf("rawChart is not the folder: pack it again. It has\n%v, the folder\n%v", got, want)
	}
	r := request(deployment.Helm.RawChart)
	r.Values = map[string]any{"gardener": map[string]any{"version": "1"}}
	if objects, err := Render(t.Context(), r); err != nil || len(objects) != 4 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}

func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files, all := tar.NewReader(unpacked), map[string]string{}
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			all[path.Join("charts", header.Name)] = string(data)
		}
	}
}
