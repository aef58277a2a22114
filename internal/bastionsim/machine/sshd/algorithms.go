package sshd

import "golang.org/x/crypto/ssh"

// Version is the version string of the server.
const Version = "SSH-2.0-gardenlite"

// The algorithms, the preferred ones first. SHA-1, CBC, MD5, DSA, Diffie-Hellman over integers and encrypt-and-MAC are
// missing on purpose. The library adds strict key exchange by itself.
var (
	keyExchanges = []string{
		ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519,
		ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521,
	}
	ciphers = []string{
		ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM,
		ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR,
	}
	macs           = []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM}
	publicKeyAuths = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
	}
)
