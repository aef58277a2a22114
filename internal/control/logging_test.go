package control

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestValuesAreNotLogged(t *testing.T) {
	var out bytes.Buffer
	hook := logrusHook{logger: slog.New(slog.NewTextHandler(&out, nil))}
	entry := &logrus.Entry{Level: logrus.ErrorLevel, Message: `error in txn compare:<key:"/registry/secrets/a/b" > ` +
		`success:<request_put:<key:"/registry/secrets/a/b" value:"k8s\000 \"pass\\word\" hunter2" > >: database or disk is full`}
	if err := hook.Fire(entry); err != nil {
		t.Fatal(err)
	}
	line := out.String()
	if strings.Contains(line, "hunter2") || strings.Contains(line, "word") {
		t.Errorf("the value is logged: %s", line)
	}
	if !strings.Contains(line, "/registry/secrets/a/b") || !strings.Contains(line, "disk is full") {
		t.Errorf("what happened is not logged: %s", line)
	}
}

// TestLogIsClosed checks that the files of logs are closed with them, whichever is closed first.
func TestLogIsClosed(t *testing.T) {
	defer klog.ClearLogger()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		dir := t.TempDir()
		var logs []io.Closer
		for i := range 2 {
			folder := filepath.Join(dir, strconv.Itoa(i))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			log, err := StartLogging(LogConfig{Dir: folder})
			if err != nil {
				t.Fatal(err)
			}
			klog.Background().Info("something")
			logs = append(logs, log)
		}
		for _, i := range order {
			if err := logs[i].Close(); err != nil {
				t.Error(err)
			}
		}
		if open := testutil.OpenFiles(t, dir); len(open) > 0 {
			t.Errorf("closed as %v, these are open: %v", order, open)
		}
	}
}

// TestEndOfLog keeps a log, and shows what went wrong before its last lines.
func TestEndOfLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "landscape")
	if KeepLog(dir) != "" {
		t.Error("there is a log")
	}
	log := "level=ERROR early\n" + strings.Repeat("level=INFO quiet\n", 30) + "level=INFO last\n"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, statedir.LogFile), []byte(log), 0o600)); err != nil {
		t.Fatal(err)
	}
	kept := KeepLog(dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	end := strings.Split(EndOfLog(kept), "\n")
	if len(end) != 11 || end[0] != "level=ERROR early" || end[10] != "level=INFO last" {
		t.Errorf("the end is %q", end)
	}
}

// TestLinesNameOrigin: each line says which component of which cluster it is from; what the component says itself
// counts more.
func TestLinesNameOrigin(t *testing.T) {
	defer klog.ClearLogger()
	var out bytes.Buffer
	if _, err := StartLogging(LogConfig{Out: &out, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	leave := quirks.EnterLogOrigin(quirks.LogOrigin{Component: "kube-apiserver", Cluster: "seed-local"})
	klog.Background().Info("a")
	klog.Background().WithName("gardenlet local").Info("b")
	klog.Background().WithValues("cluster", "garden").Info("c")
	slog.Default().With("logger", "kine").Info("d", "cluster", "shoot--dev--x")
	leave()
	klog.Background().Info("e")
	for i, want := range []string{"msg=a logger=kube-apiserver cluster=seed-local",
		`msg=b logger="gardenlet local" cluster=seed-local`,
		"msg=c cluster=garden logger=kube-apiserver", "msg=d logger=kine cluster=shoot--dev--x", "msg=e"} {
		if line := strings.Split(out.String(), "\n")[i]; !strings.HasSuffix(line, want) {
			t.Errorf("line %d is %q, want %q at its end", i, line, want)
		}
	}
}
