package seedidentity

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	seeds    = "gardener.cloud:system:seeds"
	accounts = "system:serviceaccounts"
	authed   = "system:authenticated"
)

var none = Identity{}

func gardenlet(seed string) Identity { return Identity{Type: Gardenlet, Seed: seed} }

func extension(seed string) Identity { return Identity{Type: Extension, Seed: seed} }

type identityCase struct {
	about  string
	user   string
	groups []string
	want   Identity
}

func checkIdentities(t *testing.T, cases []identityCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.about, func(t *testing.T) {
			if got := Of(c.user, c.groups); got != c.want {
				t.Errorf("Of(%q, %q) = %v, want %v", c.user, c.groups, got, c.want)
			}
			if got := OfUser(&user.DefaultInfo{Name: c.user, Groups: c.groups}); got != c.want {
				t.Errorf("OfUser(%q, %q) = %v, want %v", c.user, c.groups, got, c.want)
			}
			if got := OfAuthentication(authenticationv1.UserInfo{Username: c.user, Groups: c.groups}); got != c.want {
				t.Errorf("OfAuthentication(%q, %q) = %v, want %v", c.user, c.groups, got, c.want)
			}
		})
	}
}

func TestOfGardenlet(t *testing.T) {
	long := strings.Repeat("a", 254)
	checkIdentities(t, []identityCase{
		{"gardenlet", "gardener.cloud:system:seed:local", []string{seeds, authed}, gardenlet("local")},
		{"gardenlet, group last", "gardener.cloud:system:seed:local", []string{authed, seeds}, gardenlet("local")},
		{"seed name with dash, dot and digit", "gardener.cloud:system:seed:aws-eu1.prod", []string{seeds}, gardenlet("aws-eu1.prod")},
		{"seed called ambiguous", "gardener.cloud:system:seed:ambiguous", []string{seeds}, gardenlet("ambiguous")},
		{"ambiguous gardenlet", "gardener.cloud:system:seed:<ambiguous>", []string{seeds}, none},
		{"no seed", "gardener.cloud:system:seed:", []string{seeds}, none},
		{"no separator", "gardener.cloud:system:seed", []string{seeds}, none},
		{"group without such a name", "admin", []string{seeds}, none},
		{"group without a name", "", []string{seeds}, none},
		{"name without the group", "gardener.cloud:system:seed:local", []string{authed}, none},
		{"name without any group", "gardener.cloud:system:seed:local", nil, none},
		{"group in upper case", "gardener.cloud:system:seed:local", []string{"GARDENER.CLOUD:system:seeds"}, none},
		{"longer group", "gardener.cloud:system:seed:local", []string{seeds + ":local"}, none},
		{"prefix in upper case", "Gardener.cloud:system:seed:local", []string{seeds}, none},
		{"space before the prefix", " gardener.cloud:system:seed:local", []string{seeds}, none},
		{"colon in the seed", "gardener.cloud:system:seed:a:b", []string{seeds}, none},
		{"colon before the seed", "gardener.cloud:system:seed::a", []string{seeds}, none},
		{"colon after the seed", "gardener.cloud:system:seed:a:", []string{seeds}, none},
		{"seed in upper case", "gardener.cloud:system:seed:Local", []string{seeds}, none},
		{"slash in the seed", "gardener.cloud:system:seed:a/b", []string{seeds}, none},
		{"space in the seed", "gardener.cloud:system:seed:a b", []string{seeds}, none},
		{"space after the seed", "gardener.cloud:system:seed:a ", []string{seeds}, none},
		{"newline in the seed", "gardener.cloud:system:seed:a\nb", []string{seeds}, none},
		{"nul in the seed", "gardener.cloud:system:seed:a\x00", []string{seeds}, none},
		{"letters that look alike", "gardener.cloud:system:seed:lоcal", []string{seeds}, none},
		{"star for the seed", "gardener.cloud:system:seed:*", []string{seeds}, none},
		{"dots for the seed", "gardener.cloud:system:seed:..", []string{seeds}, none},
		{"dash at the start", "gardener.cloud:system:seed:-a", []string{seeds}, none},
		{"dash at the end", "gardener.cloud:system:seed:a-", []string{seeds}, none},
		{"seed longer than a name", "gardener.cloud:system:seed:" + long, []string{seeds}, none},
		{"seed as long as a name", "gardener.cloud:system:seed:" + long[1:], []string{seeds}, gardenlet(long[1:])},
	})
}

func TestOfExtension(t *testing.T) {
	checkIdentities(t, []identityCase{
		{"extension", "system:serviceaccount:seed-local:extension-provider-local",
			[]string{accounts, "system:serviceaccounts:seed-local", authed}, extension("local")},
		{"extension, groups the other way round", "system:serviceaccount:seed-local:extension-x",
			[]string{authed, "system:serviceaccounts:seed-local", accounts}, extension("local")},
		{"extension on a seed called seed-x", "system:serviceaccount:seed-seed-x:extension-y",
			[]string{accounts, "system:serviceaccounts:seed-seed-x"}, extension("seed-x")},
		{"extension without a rest", "system:serviceaccount:seed-local:extension-",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"account without the prefix", "system:serviceaccount:seed-local:provider-local",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"prefix without the dash", "system:serviceaccount:seed-local:extension",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"prefix in the middle", "system:serviceaccount:seed-local:my-extension-x",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"no account", "system:serviceaccount:seed-local:",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"no account and no separator", "system:serviceaccount:seed-local",
			[]string{accounts, "system:serviceaccounts:seed-local"}, none},
		{"namespace without the prefix", "system:serviceaccount:garden:extension-x",
			[]string{accounts, "system:serviceaccounts:garden"}, none},
		{"namespace of no seed", "system:serviceaccount:seed-:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-"}, none},
		{"no group of all accounts", "system:serviceaccount:seed-local:extension-x",
			[]string{"system:serviceaccounts:seed-local"}, none},
		{"no group of the namespace", "system:serviceaccount:seed-local:extension-x", []string{accounts}, none},
		{"group of another seed", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-b"}, none},
		{"groups of two seeds", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-a", "system:serviceaccounts:seed-b"}, none},
		{"groups of two seeds, its own last", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-b", "system:serviceaccounts:seed-a"}, none},
		{"group of its own twice", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-a", "system:serviceaccounts:seed-a"}, extension("a")},
		{"group of no namespace", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:", "system:serviceaccounts:seed-a"}, none},
		{"colon in the namespace's group", "system:serviceaccount:seed-a:extension-b:extension-c",
			[]string{accounts, "system:serviceaccounts:seed-a:extension-b"}, none},
		{"colon in the account", "system:serviceaccount:seed-a:extension-b:extension-c",
			[]string{accounts, "system:serviceaccounts:seed-a"}, none},
		{"extension in the user name only", "system:serviceaccount:default:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:default"}, none},
		{"groups without such a name", "extension-x", []string{accounts, "system:serviceaccounts:seed-a"}, none},
		{"ambiguous extension", "system:serviceaccount:seed-<ambiguous>:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-<ambiguous>"}, none},
	})
}

func TestOfBothOrNeither(t *testing.T) {
	checkIdentities(t, []identityCase{
		{"gardenlet in the accounts' groups too", "gardener.cloud:system:seed:a",
			[]string{accounts, "system:serviceaccounts:seed-b", seeds}, gardenlet("a")},
		{"extension in the gardenlets' group too", "system:serviceaccount:seed-a:extension-x",
			[]string{accounts, "system:serviceaccounts:seed-a", seeds}, none},
		{"gardenlet's name in the accounts' groups", "gardener.cloud:system:seed:a",
			[]string{accounts, "system:serviceaccounts:seed-a"}, none},
		{"administrator", "kubernetes-admin", []string{"system:masters", authed}, none},
		{"nothing at all", "", nil, none},
	})
}

func TestOfUserNil(t *testing.T) {
	if got := OfUser(nil); got != none {
		t.Errorf("OfUser(nil) = %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		identity   Identity
		kind, text string
	}{
		{Identity{}, "none", "neither a gardenlet nor an extension on a seed"},
		{Identity{Type: Gardenlet, Seed: "a"}, "gardenlet", "gardenlet of seed a"},
		{Identity{Type: Extension, Seed: "a"}, "extension", "extension on seed a"},
	} {
		if got := c.identity.Type.String(); got != c.kind {
			t.Errorf("Type.String() = %q, want %q", got, c.kind)
		}
		if got := c.identity.String(); got != c.text {
			t.Errorf("String() = %q, want %q", got, c.text)
		}
	}
}

func TestOfDoesNotAllocate(t *testing.T) {
	groups := []string{authed, accounts, "system:serviceaccounts:seed-local"}
	if n := testing.AllocsPerRun(100, func() { Of("system:serviceaccount:seed-local:extension-x", groups) }); n != 0 {
		t.Errorf("%v allocations for an extension", n)
	}
	if n := testing.AllocsPerRun(100, func() { Of("gardener.cloud:system:seed:local", []string{seeds}) }); n != 0 {
		t.Errorf("%v allocations for a gardenlet", n)
	}
}
