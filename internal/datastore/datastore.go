// Package datastore keeps the data of one cluster: with kine in this process in a sqlite file or in memory, or in an
// external datastore (PostgreSQL and MySQL with kine; etcd directly).
//
// It knows nothing of API servers. Start returns an etcd endpoint that a kube-apiserver can use, and Stop releases
// everything that Start has acquired.
package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// SQLite and Memory are the datastores that need no endpoint.
	SQLite = "sqlite"
	Memory = "memory"

	// NATS is a datastore that earlier versions supported.
	NATS = "nats"

	// FileName is the name of the sqlite file in a cluster's folder.
	FileName = "state.db"

	// connectTimeout is how long an external datastore may take to answer.
	connectTimeout = 15 * time.Second
)

// ErrNATS says what to use instead of NATS.
var ErrNATS = errors.New(
	"NATS is not supported any more; use sqlite, PostgreSQL (postgres://), MySQL (mysql://) or etcd (https://)")

// Config specifies where the data of one cluster is.
type Config struct {
	// Endpoint is SQLite (also if empty), Memory, or a URL: postgres:// or mysql:// for kine, http:// or https:// for
	// etcd.
	Endpoint string
	// Dir is the cluster's own folder, for the sqlite file and the socket. It is created with mode 0700.
	Dir string
}

// Datastore is a running datastore.
type Datastore struct {
	// Endpoint is the etcd endpoint for the API server.
	Endpoint string
	// Kine reports that kine serves the endpoint. It compacts itself.
	Kine bool

	stop func()
}

// Shared reports whether other clusters, and other processes, may have their data at the same endpoint, so that each
// cluster needs its own prefix.
func (c Config) Shared() bool {
	return c.Endpoint != "" && c.Endpoint != SQLite && c.Endpoint != Memory
}

// PrefixOf returns the key prefix that separates the clusters and landscapes that share a datastore, empty if the
// datastore is not shared.
func (c Config) PrefixOf(landscape, cluster string) string {
	if !c.Shared() {
		return ""
	}
	return "/gardenlite/" + landscape + "/" + cluster
}

// Validate checks the form of the endpoint without connecting. Its errors never contain a URL: it may contain a
// password.
func (c Config) Validate() error {
	if !c.Shared() {
		return nil
	}
	scheme, _, found := strings.Cut(c.Endpoint, "://")
	if !found {
		name := ""
		if !strings.Contains(c.Endpoint, "@") { // else it may have a password
			name = fmt.Sprintf(" %q", c.Endpoint)
		}
		return fmt.Errorf("unknown datastore%s: use sqlite, memory, or a URL (postgres://, mysql://, https:// for etcd)", name)
	}
	switch scheme {
	case "postgres", "postgresql", "mysql", "http", "https":
		return nil
	case NATS:
		return ErrNATS
	}
	return fmt.Errorf("unknown datastore scheme %q: use postgres, mysql, or http and https for etcd", scheme)
}

// Start starts the datastore. The context covers the start only; call Stop to end it.
func Start(ctx context.Context, c Config) (*Datastore, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the datastore: %w", err)
	}
	var kineEndpoint string
	switch c.Endpoint {
	case "", SQLite:
		file := filepath.Join(c.Dir, FileName)
		if err := prepareFile(file); err != nil {
			return nil, err
		}
		kineEndpoint = "sqlite://" + file + "?" + sqliteParams
	case Memory:
		kineEndpoint = "memory://"
	default:
		if err := reachable(ctx, c.Endpoint); err != nil {
			return nil, err
		}
		if strings.HasPrefix(c.Endpoint, "http") {
			return &Datastore{Endpoint: c.Endpoint, stop: func() {}}, nil
		}
		kineEndpoint = mysqlEndpoint(strings.Replace(c.Endpoint, "postgresql://", "postgres://", 1))
	}
	return startKine(ctx, kineEndpoint, c.Dir, c.Shared())
}

// mysqlEndpoint converts the URL of a MySQL database to MySQL's own form, user:password@tcp(host:port)/database, which kine
// expects. It does not change other endpoints.
func mysqlEndpoint(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "mysql" || u.Host == "" || strings.ContainsAny(u.Host, "()") {
		return endpoint
	}
	user := ""
	if u.User != nil {
		user = u.User.Username()
		if password, ok := u.User.Password(); ok {
			user += ":" + password
		}
		user += "@"
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	endpoint = u.Scheme + "://" + user + "tcp(" + address + ")" + cmp.Or(u.Path, "/")
	if u.RawQuery != "" {
		endpoint += "?" + u.RawQuery
	}
	return endpoint
}

// NewClient returns a client of the datastore. The context is that of all its requests.
func (d *Datastore) NewClient(ctx context.Context, dialTimeout time.Duration) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{d.Endpoint}, Context: ctx, DialTimeout: dialTimeout, Logger: zap.NewNop()})
}

// Stop stops the datastore and waits for its end. The API server must have been stopped before.
func (d *Datastore) Stop() { d.stop() }

// reachable connects to an external endpoint once, so that a wrong address is reported immediately and by name.
func reachable(ctx context.Context, rawURL string) error {
	hosts, err := hostsOf(rawURL)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var errs []error
	for _, host := range hosts {
		conn, err := dialer.DialContext(dialCtx, "tcp", host)
		if err == nil {
			return conn.Close()
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("the datastore is not reachable: %w (start it, or correct --datastore)", errors.Join(errs...))
}

var defaultPorts = map[string]string{
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "http": "2379", "https": "2379",
}

func hostsOf(rawURL string) ([]string, error) {
	var hosts []string
	for _, one := range strings.Split(rawURL, ",") {
		// MySQL's own form is user:password@tcp(host:port)/database, which is no URL.
		if _, rest, found := strings.Cut(one, "@tcp("); found {
			address, _, _ := strings.Cut(rest, ")")
			hosts = append(hosts, address)
			continue
		}
		u, err := url.Parse(one)
		if err != nil || u.Host == "" {
			return nil, errors.New("the datastore's URL cannot be parsed: write it as scheme://user:password@host:port/database")
		}
		hosts = append(hosts, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPorts[u.Scheme])))
	}
	return hosts, nil
}
