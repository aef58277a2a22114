package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// fileKeys are the names of the flags of "up" that a landscape file can set.
var fileKeys = []string{"name", "data-dir", "port", "bind-address", "seeds", "datastore", "apply", "run-image",
	"controllers", "ready-timeout", "log-format", "verbose",
	"shoot-admin-kubeconfig-max-expiration", "shoot-viewer-kubeconfig-max-expiration", "shoot-kubeconfig-key-algorithm",
	"bastion-time-to-live", "bastion-max-lifetime", resourceAdmissionFlag}

// maxFileBytes is the largest size of a landscape file.
const maxFileBytes = 1 << 20

// applyFile sets the flags that the landscape file contains and the command line does not. Relative paths in the
// file are relative to its folder.
func applyFile(cmd *cobra.Command, name string) error {
	data, err := readFile(name)
	if err != nil {
		return fmt.Errorf("reading the landscape file: %w", err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		return fmt.Errorf("landscape file %s: %w", name, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(fileKeys, key) {
			errs = append(errs, fmt.Errorf("landscape file %s: unknown key %q: known are %s", name, key, strings.Join(fileKeys, ", ")))
			continue
		}
		if cmd.Flags().Changed(key) {
			continue
		}
		texts, err := asFlagValues(values[key])
		for _, text := range texts {
			err = errors.Join(err, cmd.Flags().Set(key, fromFolderOf(name, key, text)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("landscape file %s: %s: %w", name, key, err))
		}
	}
	return errors.Join(errs...)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}

// asFlagValues returns the texts to which a flag is set, one after the other.
func asFlagValues(value any) ([]string, error) {
	switch v := value.(type) {
	case []any:
		var texts []string
		for _, item := range v {
			text, err := asFlagValues(item)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text...)
		}
		return texts, nil
	case string:
		return []string{v}, nil
	case float64, int64, bool:
		return []string{fmt.Sprint(v)}, nil
	}
	return nil, fmt.Errorf("%v is neither a value nor a list of values", value)
}

// fromFolderOf makes a path in the value of a key relative to the file's folder.
func fromFolderOf(file, key, value string) string {
	before, path, after := "", value, ""
	switch key {
	case "apply", "data-dir", resourceAdmissionFlag:
	case "run-image": // REFERENCE=PROGRAM [ARGUMENT…]
		reference, program, _ := strings.Cut(value, "=")
		before, path = reference+"=", strings.TrimSpace(program)
		if end := strings.IndexFunc(path, unicode.IsSpace); end >= 0 {
			path, after = path[:end], path[end:]
		}
	default:
		return value
	}
	if path == "" || filepath.IsAbs(path) {
		return value
	}
	return before + filepath.Join(filepath.Dir(file), path) + after
}
