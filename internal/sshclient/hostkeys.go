package sshclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// maxKnownHosts is the maximum size of a file with host keys, in bytes.
const maxKnownHosts = 1 << 20

// HostKeys are the keys that hosts have shown. They are stored in a file in OpenSSH's format, or only in memory.
type HostKeys struct {
	file string
	mu   sync.Mutex
	keys map[string]ssh.PublicKey
}

// NewHostKeys reads the host keys in a file, which may be missing. If file is empty, the keys are only in memory.
func NewHostKeys(file string) (*HostKeys, error) {
	h := &HostKeys{file: file, keys: map[string]ssh.PublicKey{}}
	if file == "" {
		return h, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the known host keys: %w", err)
	}
	if len(data) > maxKnownHosts {
		return nil, fmt.Errorf("%s has more than %d bytes: remove it", file, maxKnownHosts)
	}
	for len(data) > 0 {
		_, hosts, key, _, rest, err := ssh.ParseKnownHosts(data)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s has a line that is no host key, remove it: %w", file, err)
		}
		for _, host := range hosts {
			h.keys[host] = key
		}
		data = rest
	}
	return h, nil
}

// Check returns a callback that accepts the first key that a host shows, and refuses all others.
func (h *HostKeys) Check(host string) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if len(validation.IsDNS1123Subdomain(host)) > 0 { // a line break in it would be another line of the file
			return fmt.Errorf("%q cannot be a name in a file of host keys", host)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if known := h.keys[host]; known == nil {
			h.keys[host] = key
			return h.save()
		} else if slices.Equal(known.Marshal(), key.Marshal()) {
			return nil
		} else {
			return fmt.Errorf("%s has shown another host key than before (%s, before it was %s): this may be an attack; if you know why, remove %s",
				host, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(known), h.file)
		}
	}
}

func (h *HostKeys) save() error {
	if h.file == "" {
		return nil
	}
	var lines []string
	for host, key := range h.keys {
		lines = append(lines, knownhosts.Line([]string{host}, key)+"\n")
	}
	slices.Sort(lines)
	if err := fsutil.WriteFile(h.file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return fmt.Errorf("keeping a host key: %w", err)
	}
	return nil
}
