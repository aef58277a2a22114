package quirks

import (
	"testing"

	"github.com/emicklei/go-restful/v3"
)

// TestSharePatterns checks that two containers with the same path share one pattern, and have two without
// SharePatterns.
func TestSharePatterns(t *testing.T) {
	first, second := containerWith("/a/{name}"), containerWith("/a/{name}")
	a, b := patternOf(first.RegisteredWebServices()[0].Routes()[0]), patternOf(second.RegisteredWebServices()[0].Routes()[0])
	if a == nil || b == nil {
		t.Fatal("the routes' patterns are not found: go-restful keeps them in another place")
	}
	if *a == *b {
		t.Error("go-restful shares patterns itself: SharePatterns is not needed any more")
	}
	for _, c := range []*restful.Container{first, second} {
		SharePatterns(c)
	}
	if *a != *b || !(*a).MatchString("/a/x") {
		t.Errorf("the patterns are %p %s and %p %s", *a, *a, *b, *b)
	}
}

func containerWith(path string) *restful.Container {
	service := new(restful.WebService)
	service.Route(service.GET(path).To(func(*restful.Request, *restful.Response) {}))
	container := restful.NewContainer()
	container.Add(service)
	return container
}
