package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// parsed returns the flags of a command line of "up".
func parsed(t *testing.T, line string) *upFlags {
	t.Helper()
	cmd := newUp(&globals{})
	flags := &upFlags{}
	if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	flags.readOptions(cmd)
	flags.config.Port, _ = cmd.Flags().GetInt("port")
	flags.config.Datastore, _ = cmd.Flags().GetString("datastore")
	return flags
}

// TestDifferences: the flags that contradict those of the running landscape are named, and no others.
func TestDifferences(t *testing.T) {
	running := statedir.Run{Port: 7443, Datastore: "sqlite", Options: parsed(t, "--seeds 2 --bastion-time-to-live 1m").config.Options}
	for line, want := range map[string]string{
		"":                                    "",
		"--seeds 2":                           "",
		"--seeds 1":                           "--seeds is 2, not 1",
		"--bastion-time-to-live 2m":           "--bastion-time-to-live is 1m0s, not 2m0s",
		"--port 7443":                         "",
		"--port 0":                            "",
		"--port 6443":                         "--port is 7443, not 6443",
		"--datastore postgres://u:secret@h/d": "--datastore is sqlite, not postgres",
		"--controllers -bastion --seeds 2":    "--controllers is [*], not [-bastion]",
	} {
		if got := strings.Join(parsed(t, line).differences(running), "; "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := parsed(t, "--seeds 1").differences(statedir.Run{Port: 6443, Datastore: "sqlite"}); len(got) > 0 {
		t.Errorf("of a landscape that does not tell: %v", got)
	}
}

// TestKeepPort: a port that was chosen by --port 0 is taken again without the flag.
func TestKeepPort(t *testing.T) {
	for run, want := range map[string]map[string]int{
		`{"port":40000,"portChosen":true}`: {"": 0, "--port 6443": 6443, "--port 0": 0},
		`{"port":7443}`:                    {"": landscape.DefaultPort},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(run), 0o600); err != nil {
			t.Fatal(err)
		}
		for line, port := range want {
			flags := parsed(t, line)
			flags.config.Dir = dir
			if flags.keepPort(); flags.config.Port != port {
				t.Errorf("%s, %q: port %d, want %d", run, line, flags.config.Port, port)
			}
		}
	}
}

// TestFilePaths: relative paths in a landscape file are relative to its folder.
func TestFilePaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "landscape.yaml")
	content := `{data-dir: data, apply: [a, /b], run-image: [app=bin/app --log http://x/../y, other=/bin/other]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newUp(&globals{})
	cmd.Flags().String("data-dir", "", "")
	if err := applyFile(cmd, file); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	for flag, want := range map[string]string{"data-dir": dir + "/data", "apply": "[" + dir + "/a,/b]",
		"run-image": "[app=" + dir + "/bin/app --log http://x/../y,other=/bin/other]"} {
		if got := cmd.Flags().Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
}

// TestFileErrors checks what is said of a landscape file that cannot be used: nothing of it in words of Go.
func TestFileErrors(t *testing.T) {
	for content, says := range map[string]string{
		"port: 7443\n---\nname: x\n": "line 2: there is a second document", "- port": "it has no keys",
		"port: many": `--port "many": it is not a whole number`, "ready-timeout: 5": `--ready-timeout "5": it is not a duration such as 90s`,
		"port: {a: 1}": "port: it is neither a value nor a list of values", "port:": "port: it is neither a value nor a list",
		"port: 1\nport: 2": `mapping key "port" already defined`, "a: &x 1": "anchors and aliases",
		"port: [": "yaml: line 1", "": "", "# nothing": "", "---\nport: 7443\n": "", "port: 7443\n...\n": "", "seeds: 2\nverbose: true": "",
	} {
		file := filepath.Join(t.TempDir(), "landscape.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := newUp(&globals{})
		cmd.Flags().Bool("verbose", false, "")
		err := applyFile(cmd, file)
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%q: %v; it should say %q", content, err, says)
		}
		for _, word := range []string{"strconv", "map[", "<nil>", "Go value"} {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Errorf("%q: %v", content, err)
			}
		}
	}
}

// TestFlagErrors checks that the wrong value of a flag is named with what it has to be, whatever the command and the type.
func TestFlagErrors(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var try func(*cobra.Command, []string)
	try = func(parent *cobra.Command, path []string) {
		for _, command := range parent.Commands() {
			line := append(slices.Clone(path), command.Name())
			command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
				if strings.HasPrefix(flag.Value.Type(), "string") || flag.Name == "help" {
					return
				}
				var errs strings.Builder
				code := run(t.Context(), append(slices.Clone(line), "--"+flag.Name+"=x"), streams{strings.NewReader(""), io.Discard, &errs})
				said := errs.String()
				if code != exitUsage || !strings.Contains(said, `--`+flag.Name+` "x": it is not `) || strings.Contains(said, "strconv") {
					t.Errorf("%v --%s: exit status %d: %s", line, flag.Name, code, said)
				}
			})
			try(command, line)
		}
	}
	try(newRoot(streams{}), nil)
}

func TestCompleteControllers(t *testing.T) {
	names, _ := completeControllers(nil, nil, "*,-b")
	if !slices.Contains(names, "*,-bastion") || !slices.Contains(names, "*,namespace") && !slices.Contains(names, "*,namespace-controller") {
		t.Errorf("%v", names)
	}
}

// TestUnknownFlags: whatever the command, a flag that it does not have is a usage error.
func TestUnknownFlags(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tried := 0
	var try func(*cobra.Command, []string)
	try = func(parent *cobra.Command, path []string) {
		for _, command := range parent.Commands() {
			line := append(slices.Clone(path), command.Name())
			var errs strings.Builder
			code := run(t.Context(), append(slices.Clone(line), "--nonsense"), streams{strings.NewReader(""), io.Discard, &errs})
			if code != exitUsage {
				t.Errorf("%v: exit status %d: %s", line, code, errs.String())
			}
			tried++
			try(command, line)
		}
	}
	try(newRoot(streams{}), nil)
	if tried < 30 {
		t.Errorf("there are %d commands only", tried)
	}
}

func TestUsage(t *testing.T) {
	for line, want := range map[string]int{
		"nonsense": exitUsage, "shoot nonsense": exitUsage, "token nonsense": exitUsage, "access nonsense": exitUsage,
		"kubeconfig nonsense": exitUsage, "kubeconfig --user=": exitUsage, "kubeconfig --expiration 1h": exitUsage,
		"reset --yes --name=": exitUsage, "up --detach --filename /dev/null": exitUsage,
		"token create": exitUsage, "shoot list x": exitUsage, "exec --name x -- true": exitUsage, "--version": 0,
	} {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(line), streams{strings.NewReader(""), &out, &errs}); code != want {
			t.Errorf("%s: exit status %d, not %d: %s", line, code, want, errs.String())
		}
		if line == "--version" && !strings.HasPrefix(out.String(), "gardenlite ") {
			t.Errorf("%s prints %q", line, out.String())
		}
	}
}
