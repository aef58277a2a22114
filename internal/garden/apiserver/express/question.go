package express

import (
	"encoding/binary"
	"maps"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// question is whether somebody may do something: all that an authorizer is told of a request on the short way. Requests that
// ask the same share the answer, as long as it was found after they came.
type question struct{ who, path string }

func questionOf(a authorizer.Attributes) question {
	return question{string(appendUser(make([]byte, 0, 512), a.GetUser())), a.GetPath()}
}

// appendUser appends all that is known of a user, in a form that no other user has.
func appendUser(b []byte, u user.Info) []byte {
	b = appendString(b, u.GetName())
	b = appendString(b, u.GetUID())
	b = appendStrings(b, u.GetGroups())
	extra := u.GetExtra()
	b = appendStrings(b, slices.Sorted(maps.Keys(extra)))
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		b = appendStrings(b, extra[key])
	}
	return b
}

func appendStrings(b []byte, all []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendString(b, s)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
