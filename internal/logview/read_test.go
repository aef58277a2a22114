package logview

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	older = `time=2026-11-28T10:00:00.000Z level=INFO msg="Old one" logger=scheduler cluster=garden
`
	newer = `time=2026-11-28T10:00:01.000Z level=INFO msg="says cluster=garden \" logger=x" logger="gardenlet local" cluster=seed-local
{"time":"2026-11-28T10:00:02Z","level":"WARN","msg":"in JSON","logger":"kube-apiserver","cluster":"shoot--dev--my-shoot"}
time=2026-11-28T10:00:03.000Z level=ERROR msg="Failed" logger="gardenlet local.identity" cluster=seed-local err="no = sign"
time=2026-11-28T10:00:04.000Z level=DEBUG+2 msg=Details logger=scheduler cluster=garden
panic: runtime error
`
)

// logFolder makes a state directory, whose name a pattern would read otherwise, with a log of two files.
func logFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state[")
	if err := errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "gardenlite-2026-11-28T10-00-00.500.log"), []byte(older), 0o600),
		os.WriteFile(filepath.Join(dir, "gardenlite.log"), []byte(newer), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// messages returns the beginnings of lines: their seconds, or "panic" for one of a crash.
func messages(lines []Line) string {
	var all []string
	for _, l := range lines {
		if l.Time.IsZero() {
			all = append(all, "panic")
			continue
		}
		all = append(all, l.Time.Format("5"))
	}
	return strings.Join(all, " ")
}

func TestRead(t *testing.T) {
	dir := logFolder(t)
	at := func(second int) time.Time { return time.Date(2026, 11, 28, 10, 0, second, 0, time.UTC) }
	for name, test := range map[string]struct {
		filter Filter
		want   string
		says   string
	}{
		"all":                {Filter{Level: slog.LevelDebug}, "0 1 2 3 4 panic", ""},
		"info":               {Filter{}, "0 1 2 3 panic", ""},
		"errors":             {Filter{Level: slog.LevelError}, "3 panic", ""},
		"since":              {Filter{Since: at(2)}, "2 3 panic", ""},
		"since the end":      {Filter{Since: at(9)}, "", ""},
		"a component":        {Filter{Name: "gardenlet"}, "1 3 panic", ""},
		"a seed's component": {Filter{Name: "gardenlet local"}, "1 3 panic", ""},
		"of no such seed":    {Filter{Name: "gardenlet other"}, "panic", ""},
		"the garden":         {Filter{Name: "garden"}, "0 panic", ""},
		"a seed":             {Filter{Name: "local"}, "1 3 panic", ""},
		"a seed's cluster":   {Filter{Name: "seed-local"}, "1 3 panic", ""},
		"a shoot":            {Filter{Name: "dev/my-shoot"}, "2 panic", ""},
		"a technical ID":     {Filter{Name: "shoot--dev--my-shoot", Level: slog.LevelError}, "panic", ""},
		"what is in no line": {Filter{Name: "kubelet"}, "panic",
			"the components are gardenlet, kube-apiserver, scheduler, the clusters garden, seed-local"},
		"not in a message":    {Filter{Name: "x"}, "panic", `no component and no cluster "x"`},
		"a shoot that is not": {Filter{Name: "dev/other"}, "panic", `"dev/other"`},
	} {
		var got []Line
		err := Read(t.Context(), dir, test.filter, false, func(l Line) { got = append(got, l) })
		if messages(got) != test.want || (err != nil) != (test.says != "") || err != nil &&
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %s, %v", name, messages(got), err)
		}
	}
	if err := Read(t.Context(), t.TempDir(), Filter{}, false, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	if names := Names(t.Context(), dir); !slices.Contains(names, "kube-apiserver") ||
		!slices.Contains(names, "seed-local") {
		t.Errorf("the names are %v", names)
	}
}

// TestFollow: new lines come once they are whole, also after the log was moved to another file, until it is deleted.
func TestFollow(t *testing.T) {
	dir := logFolder(t)
	name := filepath.Join(dir, "gardenlite.log")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lines, ended := make(chan Line), make(chan error, 1)
	go func() {
		ended <- Read(ctx, dir, Filter{Since: time.Date(2026, 11, 28, 10, 0, 3, 0, time.UTC)}, true,
			func(l Line) { lines <- l })
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case l := <-lines:
			if !strings.Contains(l.Text, want) {
				t.Fatalf("%q, want %q", l.Text, want)
			}
		case err := <-ended:
			t.Fatalf("it ended before %q: %v", want, err)
		}
	}
	const start = "time=2026-11-28T10:00:05.000Z level=INFO msg="
	expect("Failed")
	expect("panic")
	write(start + "first\n" + start)
	expect("first")
	write("second\n")
	expect("msg=second")
	write(start + "third\n")
	if err := os.Rename(name, filepath.Join(dir, "gardenlite-2026-11-28T10-00-05.500.log")); err != nil {
		t.Fatal(err)
	}
	write(start + "fourth\n")
	expect("third")
	expect("fourth")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after the end: %v", err)
	}
}
