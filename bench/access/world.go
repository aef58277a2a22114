package main

import (
	"fmt"
	"net/http"
)

const (
	namespace = "garden-dev"
	core      = "/apis/core.gardener.cloud/v1beta1"
	objects   = "/api/v1/namespaces/" + namespace
	// developers is a group with all rights on the Secrets and ConfigMaps of the namespace, and no others.
	developers = "bench:developers"
)

// seeds are the seeds of the measured gardenlets; the shoots run on them in turn.
var seeds = []string{"bench-a", "bench-b"}

func shootName(i int) string { return fmt.Sprintf("s%04d", i) }

// fill creates the seeds, and shoots on them with a Secret and a ConfigMap each, as their gardenlet keeps them.
func fill(admin *user, shoots int) error {
	if err := admin.createRights(); err != nil {
		return err
	}
	if err := admin.create("/api/v1/namespaces/garden/secrets",
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bench-dns"}}`)); err != nil {
		return err
	}
	for _, seed := range seeds {
		if err := admin.createSeed(seed); err != nil {
			return err
		}
	}
	return sixteenAtATime(shoots, func(i int) error {
		if err := admin.createShoot(shootName(i), seeds[i%len(seeds)]); err != nil {
			return err
		}
		err := admin.create(objects+"/secrets", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s.monitoring"},
			"stringData":{"username":"admin","password":"not a password"}}`, shootName(i)))
		if err != nil {
			return err
		}
		return admin.create(objects+"/configmaps", configMap(shootName(i)+".ca-cluster"))
	})
}

func (u *user) createRights() error {
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	err := u.create(roles+"/roles", []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"bench"},
		"rules":[{"apiGroups":[""],"resources":["secrets","configmaps"],"verbs":["*"]}]}`))
	if err != nil {
		return err
	}
	return u.create(roles+"/rolebindings",
		fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bench"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"bench"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":%q}]}`, developers))
}

func (u *user) createSeed(name string) error {
	return u.create(core+"/seeds", fmt.Appendf(nil, `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","metadata":{"name":%q},"spec":{
		"provider":{"type":"local","region":"local"},"ingress":{"domain":"ingress.%s.example.com","controller":{"kind":"nginx"}},
		"networks":{"nodes":"10.240.0.0/16","pods":"10.241.0.0/16","services":"10.242.0.0/16"},
		"dns":{"provider":{"type":"local","credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"bench-dns","namespace":"garden"}},
			"internal":{"type":"local","domain":"internal.bench.example.com",
				"credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"bench-dns","namespace":"garden"}}}}}`, name, name))
}

func (u *user) createShoot(name, seed string) error {
	return u.create(core+"/namespaces/"+namespace+"/shoots", fmt.Appendf(nil, `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot",
		"metadata":{"name":%q},"spec":{"seedName":%q,"cloudProfile":{"kind":"CloudProfile","name":"local"},"credentialsBindingName":"sample",
		"region":"local",
		"networking":{"type":"local","nodes":"10.10.0.0/16","pods":"10.11.0.0/16","services":"10.12.0.0/16"},"kubernetes":{"version":"1.36.0"},
		"provider":{"type":"local","workers":[{"name":"worker","minimum":1,"maximum":2,"machine":{"type":"local",
			"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`, name, seed))
}

func configMap(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"ca.crt":"not a certificate"}}`, name)
}

// ownObject returns the path of a Secret or a ConfigMap of a shoot, in turn; request i is for the seed i%len(seeds).
func ownObject(i, shoots int) string {
	shoot := shootName(i % shoots)
	if i/len(seeds)%2 == 0 {
		return objects + "/secrets/" + shoot + ".monitoring"
	}
	return objects + "/configmaps/" + shoot + ".ca-cluster"
}

// actors are the users who send requests.
type actors struct {
	admin *user
	// gardenlets has one user for each seed.
	gardenlets []*user
	// developer may do by RBAC what the gardenlets do; stranger may do nothing.
	developer, stranger *user
}

// newActors fills the landscape, and creates the users with their certificates.
func newActors(l *landscape, shoots int) (a actors, err error) {
	if a.admin, err = l.administrator(); err != nil {
		return a, err
	}
	if err := fill(a.admin, shoots); err != nil {
		return a, fmt.Errorf("filling the landscape: %w", err)
	}
	if a.developer, err = l.user("bench:developer", developers); err != nil {
		return a, err
	}
	if a.stranger, err = l.user("bench:stranger"); err != nil {
		return a, err
	}
	for _, seed := range seeds {
		gardenlet, err := l.user("gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
		if err != nil {
			return a, err
		}
		a.gardenlets = append(a.gardenlets, gardenlet)
	}
	return a, nil
}

// gardenlet returns the gardenlet that object i belongs to.
func (a actors) gardenlet(i int) *user { return a.gardenlets[i%len(a.gardenlets)] }

// check returns an error unless each gardenlet can read its own objects, and not those of the other one. Otherwise
// the webhook would not be measured.
func (a actors) check(shoots int) error {
	for i := range 2 * shoots {
		if err := a.gardenlet(i).get(ownObject(i, shoots)); err != nil {
			return err
		}
		if err := a.gardenlet(i+1).send(http.MethodGet, ownObject(i, shoots), nil, http.StatusForbidden); err != nil {
			return err
		}
	}
	return nil
}
