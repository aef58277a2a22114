package gardenapi

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// invalidCase is a valid object with something wrong in it, and the field that the server must name for it.
type invalidCase struct {
	what string
	// field is the field that a cause of the error has to name; a field below it is accepted, too. It is empty for
	// an object that cannot be decoded, so that its fields are not checked.
	field string
	// changes make the valid object invalid, see change.
	changes []string
	// update means that an existing object is changed, and no new one is created.
	update bool
}

// bad returns the case of an object that must not be created.
func bad(what, field string, changes ...string) invalidCase {
	return invalidCase{what: what, field: field, changes: changes}
}

// fixed returns the case of a change of an existing object that must be refused with this very field.
func fixed(field, value string) invalidCase {
	return invalidCase{what: field + " does not change", field: field, changes: []string{field + "=" + value}, update: true}
}

// keeps returns the case of any other change of an existing object that must be refused.
func keeps(what, field string, changes ...string) invalidCase {
	return invalidCase{what: what, field: field, changes: changes, update: true}
}

// undecodable returns the case of an object with a value of another type than its field's.
func undecodable(changes ...string) invalidCase {
	return invalidCase{what: "wrong type: " + strings.Join(changes, ", "), changes: changes}
}

// namesItself are the kinds that get a name if they have none.
var namesItself = map[string]bool{"SecretBinding": true, "CredentialsBinding": true, "WorkloadIdentity": true}

// TestInvalid sends invalid objects of every resource. All are dry runs, so the cases do not disturb each other.
func TestInvalid(t *testing.T) {
	prepareProject(t, "bad")
	valid := map[string]*unstructured.Unstructured{}
	for _, obj := range validObjects(t, "bad") {
		r := infoOf(t, obj.GetKind())
		made, err := client(obj, r).Create(t.Context(), obj, created)
		if err != nil {
			t.Fatalf("%s: %v", obj.GetKind(), err)
		}
		valid[obj.GetKind()+"/new"], valid[obj.GetKind()] = obj, made
	}
	for _, r := range gardenResources {
		t.Run(r.kind, func(t *testing.T) {
			cases := invalidObjects[r.kind]
			if len(cases) == 0 {
				t.Fatal("no cases")
			}
			if r.kind != "BackupEntry" { // whose names follow no rule
				cases = append(slices.Clone(cases), bad("a name in capitals", "metadata.name", "metadata.name=Bad_Name"))
			}
			if !namesItself[r.kind] {
				cases = append(slices.Clone(cases), bad("no name", "metadata.name", "-metadata.name"))
			}
			cases = append(slices.Clone(cases), bad("a label with a bad key", "metadata.labels", "metadata.labels[-bad-]=x"))
			for _, c := range cases {
				t.Run(c.what, func(t *testing.T) { refused(t, r, valid, c) })
			}
		})
	}
}

// refused sends an invalid object, and expects an error that names the field.
func refused(t *testing.T, r resourceInfo, valid map[string]*unstructured.Unstructured, c invalidCase) {
	obj, name := valid[r.kind].DeepCopy(), valid[r.kind].GetName()
	if !c.update {
		obj = valid[r.kind+"/new"].DeepCopy()
	}
	for _, text := range c.changes {
		must(t, change(obj.Object, text))
	}
	var (
		err    error
		target = client(obj, r)
		dryRun = []string{metav1.DryRunAll}
	)
	if c.update {
		current, getErr := target.Get(t.Context(), name, metav1.GetOptions{})
		must(t, getErr)
		obj.SetResourceVersion(current.GetResourceVersion())
		_, err = target.Update(t.Context(), obj, metav1.UpdateOptions{DryRun: dryRun})
	} else {
		_, err = target.Create(t.Context(), obj, metav1.CreateOptions{DryRun: dryRun})
	}
	if problem := wrongRefusal(err, c.field); problem != "" {
		t.Error(problem)
	}
}

// wrongRefusal returns what is wrong with an error that should name the field, or "".
func wrongRefusal(err error, field string) string {
	var status apierrors.APIStatus
	switch {
	case err == nil || apierrors.IsAlreadyExists(err): // validation comes before the check for the name
		return "accepted"
	case !errors.As(err, &status):
		return fmt.Sprintf("not an answer of the API: %v", err)
	case field == "":
		if status.Status().Code != http.StatusBadRequest {
			return fmt.Sprintf("code %d instead of 400: %v", status.Status().Code, err)
		}
		return ""
	case status.Status().Code < http.StatusUnprocessableEntity && strings.Contains(status.Status().Message, field):
		return "" // an admission plugin refused it before the validation, and has no causes
	case status.Status().Code != http.StatusUnprocessableEntity:
		return fmt.Sprintf("code %d instead of 422: %v", status.Status().Code, err)
	}
	var fields []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			below, found := strings.CutPrefix(cause.Field, field)
			if found && (below == "" || below[0] == '.' || below[0] == '[') {
				return ""
			}
			fields = append(fields, cause.Field)
		}
	}
	return fmt.Sprintf("names the fields %q instead of %s: %v", fields, field, err)
}

var pathSegment = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// change changes an object as text says, with paths like those of field errors:
//
//	-path          removes a field or an item
//	path=value     sets it to a value, written in YAML; an index one past the end appends, and missing parents are made
//	path=@other    sets it to a copy of another field
func change(obj map[string]any, text string) error {
	path, value, set := strings.Cut(text, "=")
	if !set {
		_, err := replace(obj, pathSegment.FindAllString(strings.TrimPrefix(path, "-"), -1), nil, true)
		return err
	}
	var parsed any
	if other, isCopy := strings.CutPrefix(value, "@"); isCopy {
		var err error
		if parsed, err = lookUp(obj, pathSegment.FindAllString(other, -1)); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	} else if err := yaml.Unmarshal([]byte(value), &parsed); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	_, err := replace(obj, pathSegment.FindAllString(path, -1), parsed, false)
	return err
}

// replace returns the node with the field at path changed.
func replace(node any, path []string, value any, remove bool) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	last := len(path) == 1
	if index, isIndex := indexOf(path[0]); isIndex {
		items, _ := node.([]any)
		switch {
		case index > len(items), remove && index == len(items):
			return nil, fmt.Errorf("no item %d among %d", index, len(items))
		case remove && last:
			return slices.Delete(items, index, index+1), nil
		case index == len(items):
			items = append(items, nil)
		}
		item, err := replace(items[index], path[1:], value, remove)
		items[index] = item
		return items, err
	}
	fields, _ := node.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	key := strings.Trim(path[0], "[]")
	if _, exists := fields[key]; remove && !exists {
		return nil, fmt.Errorf("no field %s", key)
	}
	if remove && last {
		delete(fields, key)
		return fields, nil
	}
	child, err := replace(fields[key], path[1:], value, remove)
	fields[key] = child
	return fields, err
}

func lookUp(node any, path []string) (any, error) {
	for _, segment := range path {
		if index, isIndex := indexOf(segment); isIndex {
			items, _ := node.([]any)
			if index >= len(items) {
				return nil, fmt.Errorf("no item %s", segment)
			}
			node = items[index]
			continue
		}
		fields, _ := node.(map[string]any)
		node = fields[strings.Trim(segment, "[]")]
	}
	if node == nil {
		return nil, fmt.Errorf("no field %s", strings.Join(path, "."))
	}
	return (&unstructured.Unstructured{Object: map[string]any{"copy": node}}).DeepCopy().Object["copy"], nil
}

// indexOf returns the index in a segment like [0]; segments like [key] are keys.
func indexOf(segment string) (int, bool) {
	if !strings.HasPrefix(segment, "[") {
		return 0, false
	}
	index, err := strconv.Atoi(strings.Trim(segment, "[]"))
	return index, err == nil && index >= 0
}
