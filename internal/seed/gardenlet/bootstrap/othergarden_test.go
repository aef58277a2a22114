package bootstrap

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestOtherGarden(t *testing.T) {
	g := newGarden(t)
	config, err := parseKubeconfig(g.withToken(t, ownToken))
	if err != nil {
		t.Fatal(err)
	}
	otherCA, _, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	// kubeconfig returns that of the garden with an address and an authority in place of its own.
	kubeconfig := func(server string, ca []byte) []byte {
		text := strings.Replace(string(g.withToken(t, ownToken)), g.URL, server, 1)
		if ca == nil {
			return []byte(strings.Replace(text, "certificate-authority-data: "+encode(config.CAData), "insecure-skip-tls-verify: true", 1))
		}
		return []byte(strings.Replace(text, encode(config.CAData), encode(ca), 1))
	}
	const elsewhere = "https://192.0.2.1:6443"
	valid, expired := g.kubeconfig(t, me, start), g.kubeconfig(t, me, start.Add(-life))
	for name, test := range map[string]struct {
		kept, kubeconfig []byte
		want             string // the address of the other garden
	}{
		"the same":                             {valid, kubeconfig(g.URL, config.CAData), ""},
		"at another address":                   {valid, kubeconfig(elsewhere, config.CAData), ""},
		"with a further authority":             {valid, kubeconfig(elsewhere, append(otherCA, config.CAData...)), ""},
		"another":                              {valid, kubeconfig(elsewhere, otherCA), elsewhere},
		"another at the same address":          {valid, kubeconfig(g.URL, otherCA), g.URL},
		"the same without an authority":        {valid, kubeconfig(g.URL, nil), ""},
		"another without an authority":         {valid, kubeconfig(elsewhere, nil), elsewhere},
		"another in place of an expired one":   {expired, kubeconfig(elsewhere, otherCA), ""},
		"another in place of that of a seed b": {g.kubeconfig(t, "gardener.cloud:system:seed:b", start), kubeconfig(elsewhere, otherCA), ""},
		"the first":                            {nil, kubeconfig(elsewhere, otherCA), ""},
	} {
		seed := seedWith(inSeed(KubeconfigSecret, test.kept))
		kept, wanted, err := OtherGarden(t.Context(), seed, "a", test.kubeconfig, clocktesting.NewFakePassiveClock(start))
		if err != nil || wanted != test.want || (kept == g.URL) != (test.want != "") {
			t.Errorf("%s: %q and %q (%v), want %q", name, kept, wanted, err, test.want)
		}
	}
	if _, _, err := OtherGarden(t.Context(), seedWith(), "a", []byte("token: {4c40cb.0123456789abcdef"), clocktesting.NewFakePassiveClock(start)); err == nil ||
		!strings.Contains(err.Error(), "bootstrap kubeconfig") || hasSecret(err.Error()) {
		t.Errorf("a kubeconfig that cannot be read: %v", err)
	}
}
