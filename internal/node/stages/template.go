package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

// maxOutput is the maximum output of a template in bytes.
const maxOutput = 64 << 10

// pure are the functions of sprig that Stages may call: they only read their arguments, and their results are not much
// larger. KWOK allows all functions of sprig, some of which read the environment and query name servers; with set, a map
// could contain itself.
var pure = []string{
	"add", "add1", "append", "atoi", "b64dec", "b64enc", "camelcase", "ceil", "coalesce", "compact", "concat", "contains", "default",
	"dict", "div", "duration", "empty", "fail", "first", "float64", "floor", "get", "has", "hasKey", "hasPrefix", "hasSuffix", "initial",
	"int", "int64", "join", "keys", "kindIs", "last", "list", "lower", "max", "min", "mod", "mul", "omit", "pick", "pluck", "prepend",
	"quote", "replace", "rest", "reverse", "round", "sha256sum", "slice", "sortAlpha", "splitList", "squote", "sub", "ternary",
	"title", "toDecimal", "toJson", "toString", "toStrings", "trim", "trimAll", "trimPrefix", "trimSuffix", "trunc", "typeIs", "uniq",
	"upper", "values",
}

// Addresses are the addresses of a Pod and of its node.
type Addresses struct{ Node, Pod []string }

// renderer renders the templates of a Stage.
type renderer struct{ funcs template.FuncMap }

func newRenderer(now time.Time, addresses Addresses) renderer {
	end := time.Now().Add(timeout)
	funcs := template.FuncMap{
		checkTime: func() (string, error) {
			if time.Now().After(end) {
				return "", fmt.Errorf("the templates take longer than %s", timeout)
			}
			return "", nil
		},
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
	return renderer{funcs}
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
func (r renderer) ToText(text string, original any) ([]byte, error) {
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
func (r renderer) ToJSON(text string, original any) ([]byte, error) {
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
