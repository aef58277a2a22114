package sshclient

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KeyPair is the key pair for a bastion.
type KeyPair struct {
	// Public is the public key as a line of authorized_keys.
	Public string
	// Signer is nil if only another program, for example an agent, can use the private key.
	Signer ssh.Signer
	// File is the file of the private key or, if there is none, of the public key. PEM is the private key if it is in
	// no file.
	File string
	PEM  []byte
}

// NewKeyPair generates an ed25519 key pair.
func NewKeyPair() (KeyPair, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("making a key pair: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return KeyPair{}, fmt.Errorf("writing the private key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return KeyPair{}, fmt.Errorf("using the private key: %w", err)
	}
	return KeyPair{Public: line(signer.PublicKey()), Signer: signer, PEM: pem.EncodeToMemory(block)}, nil
}

func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }

// ReadKeyPair reads a key pair of the user. One of the files is enough: a private key contains its public key, and the
// private key of NAME.pub is in NAME. If there is no private key, or if it is encrypted, there is no Signer.
func ReadKeyPair(publicFile, privateFile string) (KeyPair, error) {
	if privateFile == "" {
		if name, is := strings.CutSuffix(publicFile, ".pub"); is {
			if _, err := os.Stat(name); err == nil {
				privateFile = name
			}
		}
	}
	pair := KeyPair{}
	if publicFile != "" {
		key, err := readPublic(publicFile)
		if err != nil {
			return KeyPair{}, err
		}
		pair.Public, pair.File = line(key), publicFile
	}
	if privateFile != "" {
		if err := pair.readPrivate(privateFile); err != nil {
			return KeyPair{}, err
		}
		pair.File = privateFile
	}
	absolute, err := filepath.Abs(pair.File)
	if err != nil {
		return KeyPair{}, fmt.Errorf("finding %s: %w", pair.File, err)
	}
	pair.File = absolute
	return pair, nil
}

func readPublic(file string) (ssh.PublicKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no public key as ssh-keygen writes it: %w", file, err)
	}
	return key, nil
}

func (p *KeyPair) readPrivate(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the private key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted):
		if p.Public == "" && encrypted.PublicKey == nil {
			return fmt.Errorf("%s is encrypted: say with --public-key-file what its public key is", file)
		}
		if p.Public == "" {
			p.Public = line(encrypted.PublicKey)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%s is no private key that can be used: %w", file, err)
	}
	public := line(signer.PublicKey())
	if p.Public != "" && p.Public != public {
		return fmt.Errorf("the private key in %s does not belong to the public key", file)
	}
	p.Public, p.Signer = public, signer
	return nil
}
