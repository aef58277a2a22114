package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Object is one document of a file.
type Object struct {
	*unstructured.Unstructured
	// Source is the file and the document in it, for errors.
	Source string
}

// LoadFS reads all manifests of a folder. The error names each file that cannot be read.
func LoadFS(fsys fs.FS, dir string) (all []Object, err error) {
	var errs []error
	_ = fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && isManifest(name) {
			var data []byte
			if data, err = fs.ReadFile(fsys, name); err == nil {
				var objects []Object
				objects, err = decode(name, data)
				all = append(all, objects...)
			}
		}
		errs = append(errs, err)
		return nil
	})
	return all, errors.Join(errs...)
}

// Check returns an error that names each manifest of a file or directory that cannot be read, if any. It does not look
// into pipes, which can be read only once.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	_, err := loadPath(path)
	return err
}

// loadPath reads a file, or all manifests of a directory and below.
func loadPath(path string) ([]Object, error) {
	objects, err := readPath(path)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("there is no manifest in %s (files end in .yaml, .yml or .json)", path)
	}
	return objects, err
}

func readPath(path string) ([]Object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		objects, err := LoadFS(os.DirFS(path), ".")
		if err != nil {
			return nil, fmt.Errorf("in %s: %w", path, err)
		}
		for i := range objects {
			objects[i].Source = filepath.Join(path, objects[i].Source)
		}
		return objects, nil
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

func decode(name string, data []byte) (all []Object, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for document := 1; ; document++ {
		source := fmt.Sprintf("%s, document %d", name, document)
		var content json.RawMessage
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if len(content) == 0 {
			continue
		}
		if content[0] != '{' && string(content) != "null" {
			return nil, fmt.Errorf("%s: it is no object with apiVersion, kind and metadata", source)
		}
		obj := &unstructured.Unstructured{}
		// Integers stay integers, as in objects that an API server returns.
		if err := utiljson.Unmarshal(content, &obj.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		items := []unstructured.Unstructured{*obj}
		if obj.IsList() {
			list, err := obj.ToList()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			items = list.Items
		}
		for i := range items {
			if err := check(&items[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			all = append(all, Object{&items[i], source})
		}
	}
}

func check(obj *unstructured.Unstructured) error {
	switch {
	case obj.GetAPIVersion() == "" || obj.GetKind() == "":
		return errors.New("no apiVersion or kind")
	case obj.GetName() == "" && obj.GetGenerateName() != "":
		return errors.New("metadata.generateName would make a new object each time: give it a metadata.name")
	case obj.GetName() == "":
		return fmt.Errorf("the %s has no metadata.name", obj.GetKind())
	default:
		return nil
	}
}

// split separates the namespaces from the other objects, and keeps the order of both.
func split(objects []Object) (namespaces, others []Object) {
	for _, obj := range objects {
		if obj.GetKind() == "Namespace" && obj.GetAPIVersion() == "v1" {
			namespaces = append(namespaces, obj)
		} else {
			others = append(others, obj)
		}
	}
	return namespaces, others
}
