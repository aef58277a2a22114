package datastore

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestStartIsCancelled checks that a start whose context has ended returns an error.
func TestStartIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if store, err := Start(ctx, Config{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, error %v; want %v", store, err, context.Canceled)
	}
}

// TestValidate checks that an unusable endpoint is refused with what to use instead, and without its password.
func TestValidate(t *testing.T) {
	for endpoint, says := range map[string]string{
		"": "", SQLite: "", Memory: "", "postgres://db/garden": "", "mysql://db/garden": "", "https://db": "",
		"nats://user:secret@db": "use sqlite, PostgreSQL (postgres://), MySQL (mysql://) or etcd (https://)",
		"redis://:secret@db":    `unknown datastore scheme "redis"`,
		"db":                    `unknown datastore "db"`,
		"user:secret@db":        "unknown datastore: use sqlite",
	} {
		err := Config{Endpoint: endpoint}.Validate()
		if says == "" && err == nil {
			continue
		}
		if err == nil || says == "" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; it should say %q", endpoint, err, says)
		}
	}
}

// TestMySQLEndpoint checks the conversion of URLs to the form that the driver of MySQL reads.
func TestMySQLEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"mysql://user:p%40ss@db.example.org:3307/garden?tls=true": "mysql://user:p@ss@tcp(db.example.org:3307)/garden?tls=true",
		"mysql://user@127.0.0.1/garden":                           "mysql://user@tcp(127.0.0.1:3306)/garden",
		"mysql://[::1]:3306":                                      "mysql://tcp([::1]:3306)/",
		"mysql://user:p@tcp(db:3306)/garden":                      "mysql://user:p@tcp(db:3306)/garden",
		"postgres://user:p%40ss@db/garden":                        "postgres://user:p%40ss@db/garden",
	} {
		if got := mysqlEndpoint(endpoint); got != want {
			t.Errorf("%s becomes %s, want %s", endpoint, got, want)
		}
	}
}
