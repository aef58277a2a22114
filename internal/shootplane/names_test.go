package shootplane

import "testing"

// TestStatusOf: a control plane is found by its Service and by the names that Gardener's gardenlet advertises.
func TestStatusOf(t *testing.T) {
	h := &Host{planes: map[string]*plane{}}
	for id, hosts := range map[string]string{"shoot--dev--one": "api.one.example.com api.one.dev.internal", "shoot--dev--two": ""} {
		h.planes[id] = &plane{desired: DesiredState{Hosts: hosts}, status: Status{ID: id}}
	}
	for name, want := range map[string]string{
		"kube-apiserver.shoot--dev--one.svc": "shoot--dev--one", "kube-apiserver.shoot--dev--two.svc": "shoot--dev--two",
		"api.one.example.com": "shoot--dev--one", "api.one.dev.internal": "shoot--dev--one",
		"kube-apiserver.shoot--dev--three.svc": "", "example.com": "", "one.example.com": "", "": "",
	} {
		if status, found := h.StatusOf(name); status.ID != want || found != (want != "") {
			t.Errorf("%s: %q, %v", name, status.ID, found)
		}
	}
}
