package stackpackage

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxReasons is the maximum number of reasons for a refusal that are listed.
const maxReasons = 40

// refusalOf returns one error with all reasons for which a package is refused, so that its author can change them at
// once; nil if there is none.
func refusalOf(errs ...error) error {
	reasons := flatten(errors.Join(errs...))
	switch len(reasons) {
	case 0:
		return nil
	case 1:
		return reasons[0]
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d reasons:", len(reasons))
	for _, reason := range reasons[:min(len(reasons), maxReasons)] {
		fmt.Fprintf(&text, "\n- %v", reason)
	}
	if more := len(reasons) - maxReasons; more > 0 {
		fmt.Fprintf(&text, "\n- and %d more", more)
	}
	return errors.New(text.String())
}

// flatten returns the errors that are joined in an error.
func flatten(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, err := range joined.Unwrap() {
		all = append(all, flatten(err)...)
	}
	return all
}

// prefixed puts a prefix before each of the errors that are joined in an error.
func prefixed(prefix string, err error) error {
	all := flatten(err)
	for i, err := range all {
		all[i] = fmt.Errorf("%s%w", prefix, err)
	}
	return errors.Join(all...)
}

var (
	unknownField = regexp.MustCompile(`json: (unknown field ".*")`)
	wrongType    = regexp.MustCompile(`json: cannot unmarshal (\S+) into Go (?:struct field (\S+)|value) of type (\S+)`)
	typeOfField  = regexp.MustCompile(`^[^.]*\.`)
)

// plainly says in the words of YAML what a decoder says in those of Go.
func plainly(name string, err error) error {
	text := err.Error()
	if match := unknownField.FindStringSubmatch(text); match != nil {
		return fmt.Errorf("%s: %s: remove it", name, match[1])
	}
	if match := wrongType.FindStringSubmatch(text); match != nil {
		field := typeOfField.ReplaceAllString(match[2], "")
		if field == "" {
			field = "the file"
		}
		return fmt.Errorf("%s: %s must be %s, and is %s", name, shorten(field), kindOfType(match[3]), kindOfValue(match[1]))
	}
	text = strings.TrimPrefix(text, "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "error unmarshaling JSON: while decoding JSON: ")
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "unmarshal errors: ", "")
	return fmt.Errorf("reading %s: %s", name, text)
}

func kindOfType(goType string) string {
	switch base := strings.TrimLeft(goType, "*"); {
	case strings.HasPrefix(base, "[]"):
		return "a list"
	case base == "bool":
		return "true or false"
	case strings.HasPrefix(base, "int"), strings.HasPrefix(base, "uint"), strings.HasPrefix(base, "float"):
		return "a number"
	case base == "string":
		return "a text"
	case strings.HasPrefix(base, "map["), strings.HasPrefix(base, "stackpackage."):
		return "an object"
	}
	return "of another type"
}

func kindOfValue(jsonType string) string {
	switch strings.TrimSpace(jsonType) {
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "object":
		return "an object"
	case "string":
		return "a text"
	}
	return "a number"
}
