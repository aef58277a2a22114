package quirks

import (
	"reflect"
	"regexp"
	"sync"

	"github.com/emicklei/go-restful/v3"
)

// patterns are the compiled patterns of paths, by their text.
var patterns sync.Map

// SharePatterns has all servers of the process share the patterns of the paths that they serve, which are equal and a fifth
// of what a server keeps in memory. go-restful compiles one for each route, has no way to give it one, and (with the router
// that API servers have) does not use it. A go-restful that keeps them in another place is left alone. The container must
// not serve yet.
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

// patternOf is where a route has its pattern. A route is copied by value, and the copies have what this is in in common.
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
