package express

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestQuestions: two requests ask the same only if all is the same that decides what they may do.
func TestQuestions(t *testing.T) {
	const path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/x/adminkubeconfig"
	ask := func(u user.DefaultInfo, path string) question {
		return questionOf(authorizer.AttributesRecord{User: &u, Path: path, ResourceRequest: true})
	}
	seen := map[question]int{}
	for i, q := range []question{
		ask(user.DefaultInfo{}, path),
		ask(user.DefaultInfo{}, path+"x"),
		ask(user.DefaultInfo{Name: "a"}, path),
		ask(user.DefaultInfo{UID: "a"}, path),
		ask(user.DefaultInfo{Groups: []string{"a"}}, path),
		ask(user.DefaultInfo{Groups: []string{"a", "b"}}, path),
		ask(user.DefaultInfo{Groups: []string{"b", "a"}}, path),
		ask(user.DefaultInfo{Groups: []string{"ab"}}, path),
		ask(user.DefaultInfo{Groups: []string{"a", ""}}, path),
		ask(user.DefaultInfo{Name: "a", Groups: []string{"b"}}, path),
		ask(user.DefaultInfo{Name: "a\x01\x01b"}, path),
		ask(user.DefaultInfo{Extra: map[string][]string{"a": nil}}, path),
		ask(user.DefaultInfo{Extra: map[string][]string{"a": {"b"}}}, path),
		ask(user.DefaultInfo{Extra: map[string][]string{"a": {"b", "c"}}}, path),
		ask(user.DefaultInfo{Extra: map[string][]string{"a": {"b"}, "c": nil}}, path),
		ask(user.DefaultInfo{Extra: map[string][]string{"a": nil, "c": {"b"}}}, path),
	} {
		if other, same := seen[q]; same {
			t.Errorf("%d asks the same as %d", i, other)
		}
		seen[q] = i
	}
	extra := map[string][]string{"a": {"1"}, "b": {"2"}, "c": {"3"}}
	for range 20 {
		if ask(user.DefaultInfo{Extra: extra}, path) != ask(user.DefaultInfo{Extra: map[string][]string{"c": {"3"}, "b": {"2"}, "a": {"1"}}}, path) {
			t.Fatal("the same is asked in two ways")
		}
	}
}
