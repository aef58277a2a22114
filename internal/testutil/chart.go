package testutil

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"
)

// PackChart returns an archive of the files of a chart, as helm package creates it. Their names are relative to the
// chart's folder.
func PackChart(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(files[file]))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatalf("packing the chart %s: %v", name, err)
		}
		if _, err := archive.Write([]byte(files[file])); err != nil {
			t.Fatalf("packing the chart %s: %v", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatalf("packing the chart %s: %v", name, err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatalf("packing the chart %s: %v", name, err)
	}
	return packed.Bytes()
}
