//go:build soak

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// TestDatastoresDown stops a landscape whose datastore does not answer. Its data is there afterwards.
func TestDatastoresDown(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{
		"etcd": datastoretest.StartEtcd, "PostgreSQL": datastoretest.StartPostgreSQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint, line := through(t, start(t))
			l := newLandscape(t, "--datastore", endpoint)
			s := l.newShoot(t, "down", nil)
			s.waitForSucceeded(t)
			client := clientOf(t, s.admin(t))
			line.Lock()
			eventually(t, waitTimeout, func(context.Context) error {
				if r := gardenlite(t, l.dir, "status"); !strings.Contains(r.Stdout, "the datastore does not answer") {
					return errors.New(r.Stdout)
				}
				return nil
			})
			r := gardenlite(t, l.dir, "down").OK(t)
			if !strings.Contains(r.Stderr, "does not answer") {
				t.Errorf("down does not say what it waits for: %s", r.Stderr)
			}
			<-l.ended
			if !strings.Contains(l.output.String(), "ends without waiting") {
				t.Errorf("the process does not say how it ended: %s", l.output.String())
			}
			line.Unlock()
			l.up(t, "--datastore", endpoint)
			eventually(t, shootTimeout, func(context.Context) error {
				_, err := client.Discovery().ServerVersion()
				return err
			})
		})
	}
}

// through returns the endpoint of a datastore by way of a port that passes nothing on while the lock is held.
func through(t *testing.T, endpoint string) (string, *sync.RWMutex) {
	t.Helper()
	to, err := url.Parse(endpoint)
	must(t, err)
	target := to.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	line := &sync.RWMutex{}
	pass := func(to io.WriteCloser, from io.Reader) {
		defer to.Close()
		_, _ = io.Copy(writer(func(data []byte) (int, error) {
			line.RLock()
			defer line.RUnlock()
			return to.Write(data)
		}), from)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go pass(server, client)
			go pass(client, server)
		}
	}()
	to.Host = listener.Addr().String()
	return to.String(), line
}

type writer func([]byte) (int, error)

func (w writer) Write(data []byte) (int, error) { return w(data) }
