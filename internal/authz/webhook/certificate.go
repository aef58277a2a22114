package webhook

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// certificate is the serving certificate, which is reloaded when its files change. Connections of API servers are
// long-lived, so checking the files at each handshake is cheap.
type certificate struct {
	certFile, keyFile string
	log               logr.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	state  [2]fileState
}

type fileState struct {
	modified time.Time
	size     int64
}

func newCertificate(certFile, keyFile string, log logr.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	state, err := c.stat()
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate of the webhooks: %w", err)
	}
	if err := c.load(state); err != nil {
		return nil, err
	}
	return c, nil
}

// get returns the certificate for a handshake. While the files are being replaced and do not match, it returns the old
// one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := c.stat()
	if err == nil && state != c.state {
		err = c.load(state)
	}
	if err != nil {
		c.log.Error(err, "The old serving certificate stays in use")
	}
	return c.loaded, nil
}

func (c *certificate) load(state [2]fileState) error {
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the serving certificate of the webhooks from %s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.loaded, c.state = &loaded, state
	return nil
}

func (c *certificate) stat() (state [2]fileState, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return state, err
		}
		state[i] = fileState{info.ModTime(), info.Size()}
	}
	return state, nil
}
