package bastionsim

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
)

func TestInstanceID(t *testing.T) {
	long := strings.Repeat("n", 253)
	var ids []string
	for _, name := range [][2]string{{"shoot--a--b", "c"}, {"shoot--a--b-bastion-c", "d"}, {"shoot--a--b", "c-bastion-d"},
		{"shoot--a--b", long}, {"shoot--a--b", long[1:]}, {"shoot--a--b", long[200:]}} {
		obj := &metav1.ObjectMeta{Namespace: name[0], Name: name[1]}
		id := InstanceID(obj)
		if hostname := bastionHostname(id, obj.Name); slices.Contains(ids, id) || len(id) > cloud.MaxID ||
			!strings.HasPrefix(id, "shoot--a--b-bastion-") || len(hostname) > 63 {
			t.Errorf("%v: %s, %s", name, id, hostname)
		}
		ids = append(ids, id)
	}
}
