// Package datastoretest starts datastores that several landscapes can share, for tests.
package datastoretest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// patience is how long a datastore may take to start.
const patience = 30 * time.Second

// StartPostgreSQL starts a PostgreSQL server for the test and returns its URL. It skips the test if PostgreSQL is not
// installed.
func StartPostgreSQL(t *testing.T) string {
	t.Helper()
	url, _ := PostgreSQL(t)
	return url
}

// PostgreSQL is StartPostgreSQL for a test that stops the server itself.
func PostgreSQL(t *testing.T) (url string, stop func()) {
	t.Helper()
	initdb, postgres := find("initdb"), find("postgres")
	if initdb == "" || postgres == "" {
		t.Skip("this machine has no PostgreSQL (initdb and postgres)")
	}
	dir, err := os.MkdirTemp("", "gardenlite-postgres-") // not below t.TempDir, which another user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	credential := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL does not run as root, and there is no user postgres")
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		credential.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	setup := exec.CommandContext(t.Context(), initdb, "-D", filepath.Join(dir, "data"), "-U", "gardenlite", "--auth=trust", "--no-sync")
	setup.SysProcAttr, setup.Dir = credential, dir
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	port := strconv.Itoa(testutil.UnusedPort(t))
	server := exec.Command(postgres, "-D", filepath.Join(dir, "data"), "-p", port, "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+dir, "-c", "fsync=off")
	server.SysProcAttr, server.Dir = credential, dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	t.Cleanup(stop)
	testutil.Eventually(t, patience, func(ctx context.Context) error { // PostgreSQL listens before it answers
		return exec.CommandContext(ctx, find("pg_isready"), "-h", "127.0.0.1", "-p", port).Run()
	})
	return fmt.Sprintf("postgres://gardenlite@127.0.0.1:%s/kine?sslmode=disable", port), stop
}

// StartEtcd runs an etcd in this process and returns its URL.
func StartEtcd(t *testing.T) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = t.TempDir(), "fatal", true
	freePort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls, cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = freePort, freePort, freePort, freePort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatalf("starting etcd: %v", err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(patience):
		t.Fatal("etcd does not come up")
	}
	return "http://" + server.Clients[0].Addr().String()
}

// find returns the path of a program of PostgreSQL, "" if there is none.
func find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}
