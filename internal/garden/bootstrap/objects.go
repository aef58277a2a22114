package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// object is one document of a file.
type object struct {
	*unstructured.Unstructured
	// source is the file and the document in it, for errors.
	source string
}

// loadFS reads all manifests of a folder.
func loadFS(fsys fs.FS, dir string) (all []object, err error) {
	err = fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isManifest(name) {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		objects, err := decode(name, data)
		all = append(all, objects...)
		return err
	})
	return all, err
}

// loadPath reads a file, or all manifests of a directory.
func loadPath(path string) ([]object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return loadFS(os.DirFS(path), ".")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decode(path, data)
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func decode(name string, data []byte) (all []object, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for document := 1; ; document++ {
		source := fmt.Sprintf("%s, document %d", name, document)
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s: no apiVersion or kind", source)
		}
		if !obj.IsList() {
			all = append(all, object{obj, source})
			continue
		}
		list, err := obj.ToList()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		for i := range list.Items {
			all = append(all, object{&list.Items[i], source})
		}
	}
}
