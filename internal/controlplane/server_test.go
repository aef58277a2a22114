package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.OnPhase = func(name string, took time.Duration) { t.Logf("%-20s %s", name, took.Round(time.Millisecond)) }
	server, err := Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func adminClient(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	config, err := s.ClientConfig("admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAuditLogOfStart: requests are in the audit log, and a start refuses none.
func TestAuditLogOfStart(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	server := start(t, Config{
		Name: "audited", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"), AuditLog: log})
	namespaces := adminClient(t, server).CoreV1().Namespaces()
	if _, err := namespaces.Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"user":{"username":"admin"`) {
		t.Error("the log does not have the request of the administrator")
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, `"code":403`) {
			t.Errorf("refused: %s", line)
		}
	}
}

func TestTwoServersAtOnceAndRestart(t *testing.T) {
	dir := t.TempDir()
	first := start(t, Config{Name: "first", PKIDir: filepath.Join(dir, "first", "pki"), DataDir: filepath.Join(dir, "first", "data")})
	second := start(t, Config{Name: "second", PKIDir: filepath.Join(dir, "second", "pki"),
		DataDir: filepath.Join(dir, "second", "data"), Datastore: datastore.Memory})

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "only-here", Namespace: "default"}}
	if _, err := adminClient(t, first).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := adminClient(t, second).CoreV1().ConfigMaps("default").Get(t.Context(), cm.Name, metav1.GetOptions{}); err == nil {
		t.Error("a ConfigMap of one server is seen in the other")
	}
	version, err := adminClient(t, first).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != KubernetesVersion {
		t.Errorf("the server says it is %s, not %s", version.GitVersion, KubernetesVersion)
	}

	ca, port := string(first.PKI().CAPEM()), first.Port()
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, Config{Name: "first", PKIDir: filepath.Join(dir, "first", "pki"),
		DataDir: filepath.Join(dir, "first", "data"), PreferredPort: port})
	if again.Port() != port {
		t.Errorf("the server listens on port %d, not on the free one %d that it prefers", again.Port(), port)
	}
	if string(again.PKI().CAPEM()) != ca {
		t.Error("the certificate authority changed with a restart")
	}
	if _, err := adminClient(t, again).CoreV1().ConfigMaps("default").Get(t.Context(), cm.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	assertPrivate(t, dir)

	if _, err := Start(t.Context(), Config{Name: "third", PKIDir: filepath.Join(dir, "third", "pki"),
		DataDir: filepath.Join(dir, "third", "data"), Port: port}); !errors.Is(err, ErrPortTaken) {
		t.Errorf("a taken port gives %v", err)
	}
	if other := start(t, Config{Name: "third", PKIDir: filepath.Join(dir, "third", "pki"),
		DataDir: filepath.Join(dir, "third", "data"), PreferredPort: port}); other.Port() == port {
		t.Errorf("two servers listen on port %d", port)
	}
}

// assertPrivate fails for every file and folder that other users than the owner can access.
func assertPrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
