package datastore

import (
	"context"
	"errors"
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
