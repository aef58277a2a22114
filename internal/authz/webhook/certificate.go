package webhook

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// certificate is the serving certificate, which is read at each handshake: it may have been renewed. Connections of API
// servers are long-lived, so that is cheap.
type certificate struct {
	certFile, keyFile string
	log               logr.Logger
	loaded            atomic.Pointer[tls.Certificate]
}

// get returns the certificate for a handshake. While the files are being replaced and do not match, it returns the old
// one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := c.load(); err != nil {
		c.log.Error(err, "The old serving certificate stays in use")
	}
	return c.loaded.Load(), nil
}

func (c *certificate) load() error {
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the serving certificate of the webhooks from %s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.loaded.Store(&loaded)
	return nil
}
