// Package plainyaml reads YAML of users. It refuses what makes a small document large: anchors, aliases and deep nesting.
package plainyaml

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// maxDepth is the maximum nesting depth of the values.
const maxDepth = 100

// Unmarshal decodes a document. It ignores unknown keys.
func Unmarshal(data []byte, into any) error {
	if err := checkText(data); err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

// ToJSON converts a document to JSON.
func ToJSON(data []byte) ([]byte, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(data)
}

func checkText(data []byte) error {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(data, &document); err != nil {
		return err
	}
	return Check(&document)
}

// Check returns an error if a document has anchors, aliases or values that are nested too deeply.
func Check(document *yamlv3.Node) error { return check(document, 0) }

func check(node *yamlv3.Node, depth int) error {
	switch {
	case node.Kind == yamlv3.AliasNode || node.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not allowed", node.Line)
	case depth > maxDepth:
		return fmt.Errorf("line %d: values are nested more than %d times", node.Line, maxDepth)
	}
	for _, child := range node.Content {
		if err := check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
