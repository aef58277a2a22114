package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"
)

// ReadHostKey reads a host key from a file of the host. If the file is missing, it generates an ed25519 key, which
// write stores.
func ReadHostKey(file string, write func(name string, data []byte, mode os.FileMode) error) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newHostKey(); err == nil {
			err = write(file, data, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SSH host key %s: %w", file, err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("reading the SSH host key %s: %w; remove the file to have a new one made", file, err)
	}
	return signer, nil
}

func newHostKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making an SSH host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, fmt.Errorf("making an SSH host key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}
