package bastionspec

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// MinRSABits is the minimum size of an RSA key in bits.
	MinRSABits = 2048
	// MaxComment is how many bytes the comment of a public key may have.
	MaxComment = 1 << 10
)

// keyTypes are the types of public keys that a bastion's SSH server accepts.
var keyTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSA,
}

// ParsePublicKey reads spec.sshPublicKey of a Bastion: one key, as in a file of authorized keys, without options.
func ParsePublicKey(text string) (ssh.PublicKey, error) {
	line := strings.TrimSpace(text)
	if strings.ContainsAny(line, "\r\n") {
		return nil, errors.New("must be one public key, in one line")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return nil, errors.New("must be a public key as in authorized_keys, like: ssh-ed25519 AAAA…")
	case len(options) > 0:
		return nil, errors.New("must be a public key without options")
	case !slices.Contains(keyTypes, key.Type()):
		return nil, fmt.Errorf("must be a key of one of the types %s", strings.Join(keyTypes, ", "))
	case IsWeakKey(key):
		return nil, fmt.Errorf("must be an RSA key of at least %d bits", MinRSABits)
	case len(comment) > MaxComment:
		return nil, fmt.Errorf("must have a comment of at most %d bytes", MaxComment)
	}
	return key, nil
}

// IsWeakKey reports whether a key is an RSA key of less than MinRSABits.
func IsWeakKey(key ssh.PublicKey) bool {
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return false
	}
	public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	return ok && public.N.BitLen() < MinRSABits
}
