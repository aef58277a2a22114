package quirks

import (
	"reflect"
	"regexp"
	"sync"

	"github.com/emicklei/go-restful/v3"
)

// patterns has the compiled patterns of paths by their text.
var patterns sync.Map

// SharePatterns makes all servers of the process share the compiled patterns of their paths, which are equal and a
// fifth of the memory of a server. go-restful compiles one for each route, and has no option to set it; the router of
// API servers does not use it. If another version of go-restful stores patterns elsewhere, SharePatterns does nothing.
// The container must not serve yet.
//
// Upstream: newPathExpression in https://github.com/emicklei/go-restful/blob/v3.13.0/path_expression.go
func SharePatterns(container *restful.Container) {
	for _, service := range container.RegisteredWebServices() {
		for _, route := range service.Routes() {
			if pattern := patternOf(route); pattern != nil {
				shared, _ := patterns.LoadOrStore((*pattern).String(), *pattern)
				*pattern = shared.(*regexp.Regexp)
			}
		}
	}
}

// patternOf returns a pointer to the pattern of a route, nil if there is none. Routes are copied by value, but the
// copies share the object that contains the pattern.
func patternOf(route restful.Route) **regexp.Regexp {
	expression := reflect.ValueOf(route).FieldByName("pathExpr")
	if !expression.IsValid() || expression.Kind() != reflect.Pointer || expression.IsNil() {
		return nil
	}
	matcher := expression.Elem().FieldByName("Matcher")
	if !matcher.IsValid() || matcher.Type() != reflect.TypeFor[*regexp.Regexp]() || matcher.IsNil() {
		return nil
	}
	return (**regexp.Regexp)(matcher.Addr().UnsafePointer())
}
