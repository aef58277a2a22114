package stackpackage

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// maxDepth is the maximum nesting depth of the values in a YAML file.
const maxDepth = 100

// decode reads a YAML file with exactly one document. It refuses unknown and duplicate keys, and aliases, with which a
// small file can have values of any size.
func decode(name string, data []byte, into any) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var document, next yamlv3.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is empty", name)
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more than one document", name)
	}
	if err := checkNode(&document, 0); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

func checkNode(node *yamlv3.Node, depth int) error {
	switch {
	case node.Kind == yamlv3.AliasNode || node.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not allowed", node.Line)
	case depth > maxDepth:
		return fmt.Errorf("line %d: values are nested more than %d times", node.Line, maxDepth)
	}
	for _, child := range node.Content {
		if err := checkNode(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
