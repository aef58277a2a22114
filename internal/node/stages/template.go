package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

const (
	// maxOutput is the maximum output of a template in bytes.
	maxOutput = 64 << 10
	// maxArguments is the maximum size of all arguments of functions that the templates of one Stage call, in bytes. It
	// limits the memory that their results take.
	maxArguments = 4 << 20
)

// pure are the functions of sprig that Stages may call: they only read their arguments, in a time that grows as the
// arguments do. KWOK allows all functions of sprig, some of which read the environment and query name servers; with set,
// a map could contain itself.
var pure = []string{
	"add", "add1", "append", "atoi", "b64dec", "b64enc", "camelcase", "ceil", "coalesce", "compact", "concat", "contains", "default",
	"dict", "div", "duration", "empty", "fail", "first", "float64", "floor", "get", "has", "hasKey", "hasPrefix", "hasSuffix", "initial",
	"int", "int64", "join", "keys", "kindIs", "last", "list", "lower", "max", "min", "mod", "mul", "omit", "pick", "pluck", "prepend",
	"quote", "replace", "rest", "reverse", "round", "sha256sum", "slice", "sortAlpha", "splitList", "squote", "sub", "ternary",
	"title", "toDecimal", "toJson", "toString", "toStrings", "trim", "trimPrefix", "trimSuffix", "trunc", "typeIs", "upper", "values",
}

// multiplying are the functions whose results may be as large as the product of the sizes of their arguments.
var multiplying = []string{"join", "printf", "replace"}

// Addresses are the addresses of a Pod and of its node.
type Addresses struct{ Node, Pod []string }

// renderer renders the templates of a Stage.
type renderer struct {
	funcs template.FuncMap
	// spent is the time that earlier templates have taken, begin is when the current one began. Requests between them,
	// which may wait for the API server, do not count.
	spent time.Duration
	begin time.Time
}

func newRenderer(now time.Time, addresses Addresses) *renderer {
	r := &renderer{}
	funcs := template.FuncMap{
		checkTime: func() (string, error) {
			if r.spent+time.Since(r.begin) > timeout {
				return "", fmt.Errorf("the templates take longer than %s", timeout)
			}
			return "", nil
		},
		"html": template.HTMLEscaper, "js": template.JSEscaper, "print": fmt.Sprint, "printf": printf, "println": fmt.Sprintln,
		"urlquery": template.URLQueryEscaper,

		"Now":     func() string { return now.Format(time.RFC3339Nano) },
		"Quote":   quote,
		"YAML":    func(v any, _ ...int) (string, error) { data, err := json.Marshal(v); return string(data), err },
		"NodeIP":  func() string { return first(addresses.Node) },
		"PodIP":   func() string { return first(addresses.Pod) },
		"Version": func() string { return "v0.8.0" },
		// A kubelet knows the Pods of its own node only.
		"NodeIPWith":  func(string) string { return first(addresses.Node) },
		"NodeIPsWith": func(string) []string { return addresses.Node },
		"PodIPWith":   func(...any) string { return first(addresses.Pod) },
		"PodIPsWith":  func(...any) []string { return addresses.Pod },
	}
	all := sprig.TxtFuncMap()
	for _, name := range pure {
		funcs[name] = all[name]
	}
	left := maxArguments
	for name, f := range funcs {
		funcs[name] = limitArguments(f, slices.Contains(multiplying, name), &left)
	}
	r.funcs = funcs
	return r
}

// limitArguments returns a function that subtracts the size of its arguments from what is left, and fails if that is too
// little. A template turns the panic into an error.
func limitArguments(f any, multiplies bool, left *int) any {
	call := reflect.ValueOf(f)
	return reflect.MakeFunc(call.Type(), func(args []reflect.Value) []reflect.Value {
		cost, largest := 0, 0
		for _, arg := range args {
			size := sizeOf(arg, *left)
			cost += size
			largest = max(largest, size)
		}
		if multiplies {
			cost = max(cost, largest*(cost-largest))
		}
		if *left -= cost; *left < 0 {
			panic(fmt.Errorf("the arguments of functions in templates have more than %d bytes", maxArguments))
		}
		if call.Type().IsVariadic() {
			return call.CallSlice(args)
		}
		return call.Call(args)
	}).Interface()
}

// sizeOf returns the size of a value with all values in it, or more than the maximum if it is larger.
func sizeOf(v reflect.Value, most int) int {
	size := 16
	add := func(v reflect.Value) bool {
		size += sizeOf(v, most-size)
		return size <= most
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return sizeOf(v.Elem(), most)
		}
	case reflect.String:
		size += v.Len()
	case reflect.Slice:
		for i := 0; i < v.Len() && add(v.Index(i)); i++ {
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next() && add(each.Key()) && add(each.Value()); {
		}
	}
	return size
}

// wide matches a verb of a format with a width or precision that has more than three digits, or is an argument.
var wide = regexp.MustCompile(`%[^%A-Za-z]*([0-9]{4}|\*)`)

func printf(format string, args ...any) (string, error) {
	if wide.MatchString(format) {
		return "", fmt.Errorf("printf: %q has a width or precision of more than three digits", format)
	}
	return fmt.Sprintf(format, args...), nil
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// quote returns a value as a quoted string in YAML.
func quote(v any) string {
	data, err := json.Marshal(v)
	switch {
	case err != nil:
		return strconv.Quote(fmt.Sprint(v))
	case len(data) > 0 && data[0] == '"':
		return string(data)
	}
	return strconv.Quote(string(data))
}

// ToText implements gotpl.Renderer.
func (r *renderer) ToText(text string, original any) ([]byte, error) {
	r.begin = time.Now()
	defer func() { r.spent += time.Since(r.begin) }()
	t, err := template.New("stage").Funcs(r.funcs).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			if err := interruptible(defined.Tree.Root); err != nil {
				return nil, err
			}
		}
	}
	data, err := json.Marshal(original)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	out := &limited{}
	if err := t.Execute(out, plain); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ToJSON implements gotpl.Renderer.
func (r *renderer) ToJSON(text string, original any) ([]byte, error) {
	data, err := r.ToText(text, original)
	if err != nil {
		return nil, err
	}
	return plainyaml.ToJSON(data)
}

// limited is a buffer for at most maxOutput bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > maxOutput {
		return 0, fmt.Errorf("the template writes more than %d bytes", maxOutput)
	}
	return l.Buffer.Write(data)
}

// checkTime is the template function that fails when the templates take too long.
const checkTime = "checkTime"

// interruptible inserts a call of checkTime at the beginning of a template and of each branch and loop body, because a
// running template cannot be stopped in another way.
func interruptible(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	check, err := template.New("").Funcs(template.FuncMap{checkTime: func() string { return "" }}).Parse("{{" + checkTime + "}}")
	if err != nil {
		return err
	}
	for _, node := range list.Nodes {
		var branch *parse.BranchNode
		switch node := node.(type) {
		case *parse.RangeNode:
			branch = &node.BranchNode
		case *parse.IfNode:
			branch = &node.BranchNode
		case *parse.WithNode:
			branch = &node.BranchNode
		default:
			continue
		}
		if err := errors.Join(interruptible(branch.List), interruptible(branch.ElseList)); err != nil {
			return err
		}
	}
	list.Nodes = append([]parse.Node{check.Tree.Root.Nodes[0]}, list.Nodes...)
	return nil
}
