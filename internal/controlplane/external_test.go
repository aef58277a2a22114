package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExternalDatastores keeps two clusters at one endpoint, each with a prefix of its own, and restarts one.
func TestExternalDatastores(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) string{"PostgreSQL": startPostgreSQL, "etcd": startEtcd} {
		t.Run(name, func(t *testing.T) {
			endpoint := begin(t)
			dir := t.TempDir()
			config := func(cluster string) Config {
				return Config{Name: cluster, PKIDir: filepath.Join(dir, cluster, "pki"), DataDir: filepath.Join(dir, cluster, "data"), Datastore: endpoint, Prefix: "/gardenlite/test/" + cluster}
			}
			one, two := start(t, config("one")), start(t, config("two"))
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
			if _, err := adminClient(t, one).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := adminClient(t, two).CoreV1().ConfigMaps("default").Get(t.Context(), cm.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("a ConfigMap of one cluster is seen in the other: %v", err)
			}
			if err := one.Stop(); err != nil {
				t.Fatal(err)
			}
			again := start(t, config("one"))
			if _, err := adminClient(t, again).CoreV1().ConfigMaps("default").Get(t.Context(), cm.Name, metav1.GetOptions{}); err != nil {
				t.Errorf("after a restart: %v", err)
			}
		})
	}
}

func startPostgreSQL(t *testing.T) string {
	t.Helper()
	initdb, postgres := find("initdb", "/usr/lib/postgresql/*/bin"), find("postgres", "/usr/lib/postgresql/*/bin")
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
	port := unusedPort(t)
	server := exec.Command(postgres, "-D", filepath.Join(dir, "data"), "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+dir, "-c", "fsync=off")
	server.SysProcAttr, server.Dir = credential, dir
	runServer(t, server, syscall.SIGINT)
	waitFor(t, func(ctx context.Context) error { // it listens before it answers
		return exec.CommandContext(ctx, find("pg_isready", "/usr/lib/postgresql/*/bin"), "-h", "127.0.0.1", "-p", port).Run()
	})
	return fmt.Sprintf("postgres://gardenlite@127.0.0.1:%s/kine?sslmode=disable", port)
}

func startEtcd(t *testing.T) string {
	t.Helper()
	etcd := find("etcd", "../../bin/baseline")
	if etcd == "" {
		t.Skip("this machine has no etcd, and \"make bin/baseline\" has not built one")
	}
	port, peer := unusedPort(t), unusedPort(t)
	server := exec.Command(etcd, "--data-dir="+t.TempDir(), "--log-level=error", "--unsafe-no-fsync",
		"--listen-client-urls=http://127.0.0.1:"+port, "--advertise-client-urls=http://127.0.0.1:"+port,
		"--listen-peer-urls=http://127.0.0.1:"+peer, "--initial-advertise-peer-urls=http://127.0.0.1:"+peer, "--initial-cluster=default=http://127.0.0.1:"+peer)
	runServer(t, server, syscall.SIGTERM)
	waitListening(t, port)
	return "http://127.0.0.1:" + port
}

// find looks for a program in PATH, then in folders that a pattern names.
func find(program, pattern string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	if paths, _ := filepath.Glob(filepath.Join(pattern, program)); len(paths) > 0 {
		if path, err := filepath.Abs(paths[len(paths)-1]); err == nil {
			return path
		}
	}
	path, _ := exec.LookPath(program)
	return path
}

func runServer(t *testing.T, cmd *exec.Cmd, stop syscall.Signal) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(stop)
		_ = cmd.Wait()
	})
}

func unusedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func waitListening(t *testing.T, port string) {
	t.Helper()
	waitFor(t, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

func waitFor(t *testing.T, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not come up: %v", err)
		case <-ticker.C:
		}
	}
}
