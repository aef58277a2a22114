package cli

import (
	"bytes"
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
	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v3"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

// fileKeys are the names of the flags of "up" that a landscape file can set.
var fileKeys = []string{"name", "data-dir", "port", "bind-address", "seeds", "datastore", "apply", "run-image",
	"controllers", "ready-timeout", "log-format", "verbose", "kubeconfig-context",
	"shoot-admin-kubeconfig-max-expiration", "shoot-viewer-kubeconfig-max-expiration", "shoot-kubeconfig-key-algorithm",
	"bastion-time-to-live", "bastion-max-lifetime", resourceAdmissionFlag,
	loopbackRegistryFlag, bareFlag, enableAdmissionFlag, disableAdmissionFlag, featureGatesFlag}

// maxFileBytes is the largest size of a landscape file.
const maxFileBytes = 1 << 20

// applyFile sets the flags that the landscape file contains and the command line does not. Relative paths in the
// file are relative to its folder.
func applyFile(cmd *cobra.Command, name string) error {
	data, err := readFile(name)
	if err != nil {
		return fmt.Errorf("reading the landscape file: %w", err)
	}
	values, err := keysOf(data)
	if err != nil {
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
		if err == nil && len(texts) == 0 && cmd.Flags().Lookup(key).Value.Type() == "stringSlice" {
			texts = []string{""} // none
		}
		for _, text := range texts {
			err = errors.Join(err, explainFlag(cmd.Flags().Set(key, fromFolderOf(name, key, text))))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("landscape file %s: %s: %w", name, key, err))
		}
	}
	return errors.Join(errs...)
}

// keysOf returns the keys and values of a YAML document, which has to be the only one.
func keysOf(data []byte) (map[string]any, error) {
	var document, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		err = plainyaml.Check(&document)
	}
	if err != nil {
		return nil, err
	}
	switch err := decoder.Decode(&next); {
	case err == nil:
		return nil, fmt.Errorf("line %d: there is a second document: a landscape has one file, with one document", next.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	content := document.Content[0]
	if content.Kind == yaml.ScalarNode && content.Tag == "!!null" {
		return nil, nil
	}
	if content.Kind != yaml.MappingNode {
		return nil, errors.New("it has no keys: write one in each line, such as \"port: 7443\"")
	}
	values := map[string]any{}
	return values, content.Decode(&values)
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
	case float64, int, bool:
		return []string{fmt.Sprint(v)}, nil
	}
	return nil, errors.New("it is neither a value nor a list of values")
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

// flagForms says what a value of a flag looks like, by the flag's type.
var flagForms = map[string]string{
	"bool": "true or false", "mapStringBool": "NAME=true or NAME=false",
	"duration": "a duration such as 90s, 10m or 1h30m", "float64": "a number",
	"int": "a whole number", "int32": "a whole number",
}

// explainFlag returns an error for the value of a flag in other words than those of Go's packages.
func explainFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	if form, known := flagForms[flag.Value.Type()]; known {
		return fmt.Errorf("--%s %q: it is not %s", flag.Name, invalid.GetValue(), form)
	}
	return err
}
