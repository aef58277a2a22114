package stages

import (
	"errors"
	"fmt"
	"slices"

	"github.com/itchyny/gojq"
)

// checkJQ refuses jq expressions that could take much memory: jq can repeat strings and build values that contain others
// many times. What is allowed reads, selects and compares values of the Pod.
func checkJQ(expression string) error {
	query, err := gojq.Parse(expression)
	if err == nil {
		err = checkQuery(query)
	}
	if err != nil {
		return fmt.Errorf("jq expression %q: %w", expression, err)
	}
	return nil
}

var (
	operators = []gojq.Operator{0, gojq.OpPipe, gojq.OpComma, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe,
		gojq.OpAnd, gojq.OpOr, gojq.OpAlt}
	terms = []gojq.TermType{gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeIndex,
		gojq.TermTypeFunc, gojq.TermTypeNumber, gojq.TermTypeString, gojq.TermTypeQuery}
	functions = []string{"all", "any", "empty", "endswith", "first", "has", "last", "length", "not", "select", "startswith", "tonumber"}
)

func checkQuery(query *gojq.Query) error {
	switch {
	case query == nil:
		return nil
	case len(query.FuncDefs)+len(query.Imports)+len(query.Patterns) > 0:
		return errors.New("definitions and variables are not supported")
	case !slices.Contains(operators, query.Op):
		return fmt.Errorf("the operator %s is not supported", query.Op)
	}
	return errors.Join(checkQuery(query.Left), checkQuery(query.Right), checkTerm(query.Term))
}

func checkTerm(term *gojq.Term) error {
	if term == nil {
		return nil
	}
	if !slices.Contains(terms, term.Type) {
		return fmt.Errorf("%s is not supported", term)
	}
	errs := []error{checkQuery(term.Query), checkIndex(term.Index), checkString(term.Str)}
	for _, suffix := range term.SuffixList {
		errs = append(errs, checkIndex(suffix.Index))
	}
	if term.Func != nil {
		if !slices.Contains(functions, term.Func.Name) {
			return fmt.Errorf("the function %s is not supported", term.Func.Name)
		}
		for _, arg := range term.Func.Args {
			errs = append(errs, checkQuery(arg))
		}
	}
	return errors.Join(errs...)
}

func checkIndex(index *gojq.Index) error {
	if index == nil {
		return nil
	}
	return errors.Join(checkQuery(index.Start), checkQuery(index.End), checkString(index.Str))
}

func checkString(text *gojq.String) error {
	if text != nil && len(text.Queries) > 0 {
		return errors.New("string interpolation is not supported")
	}
	return nil
}
