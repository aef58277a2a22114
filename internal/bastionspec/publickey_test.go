package bastionspec

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func line(t *testing.T, public any) string {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func rsaLine(t *testing.T, bits int) string {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return line(t, &key.PublicKey)
}

func TestParsePublicKey(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := line(t, public)
	for name, test := range map[string]struct{ text, says string }{
		"ed25519":          {key + "\n", ""},
		"comment":          {key + " me@home with spaces", ""},
		"longest comment":  {key + " " + strings.Repeat("c", MaxComment), ""},
		"ecdsa":            {line(t, &curve.PublicKey), ""},
		"rsa":              {rsaLine(t, 2048), ""},
		"rsa, too short":   {rsaLine(t, 2047), "at least 2048 bits"},
		"comment too long": {key + " " + strings.Repeat("c", MaxComment+1), "at most 1024 bytes"},
		"two keys":         {key + "\n" + line(t, &curve.PublicKey), "one public key"},
		"text before it":   {"# a comment\n" + key, "one public key"},
		"options":          {`command="sh" ` + key, "without options"},
		"nothing":          {"", "must be a public key"},
		"private key":      {"-----BEGIN OPENSSH PRIVATE KEY-----", "must be a public key"},
	} {
		if _, err := ParsePublicKey(test.text); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
