package control

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
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
