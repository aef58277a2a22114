package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsageErrors: a wrong command gets the ones that it may mean, at every level, and an error names the help that
// explains it.
func TestUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"lst":                     "did you mean \"list\" or \"ssh\"?\nSee \"gardenlite --help\".\n",
		"shoot craete x":          "did you mean \"create\"?\nSee \"gardenlite shoot --help\".\n",
		"rotate ssh":              "did you mean \"ssh-keypair\"?\nSee \"gardenlite rotate --help\".\n",
		"shoot re":                "did you mean \"reconcile\" or \"retry\"?\n",
		"shoot nonsense":          "unknown command \"nonsense\" for \"gardenlite shoot\"\nSee \"gardenlite shoot --help\".\n",
		"shoot create --wokers 3": "See \"gardenlite shoot create --help\".\n",
		"shoot migrate x":         "See \"gardenlite shoot migrate --help\".\n",
		"shoot list -w -o json":   "-o table or -o wide, not json\nSee \"gardenlite shoot list --help\".\n",
		"logs --level loud":       "one of debug, info, warn, error\nSee \"gardenlite logs --help\".\n",
		"logs --since -1s":        "how far back",
		"sample nothing":          "there are bastion, extension, shoot, stages\nSee \"gardenlite sample --help\".\n",
		"project create x --member alice --member bob:": "such as alice@example.com:admin",
		"project create":   "accepts 1 arg",
		"delete a b":       "See \"gardenlite delete --help\".\n",
		"up --run-image x": "See \"gardenlite up --help\".\n",
		"man":              "See \"gardenlite man --help\".\n",
	} {
		if code, out, errs := runLine(t, line); code != exitUsage || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: exit status %d, %q%q, want %q", line, code, out, errs, want)
		}
	}
}

// TestSample: what is printed is the file, byte by byte.
func TestSample(t *testing.T) {
	if code, out, errs := runLine(t, "sample"); code != 0 || !strings.Contains(out, "\nshoot ") || errs != "" {
		t.Errorf("exit status %d, %s%s", code, out, errs)
	}
	for _, name := range sampleNames() {
		want, err := os.ReadFile("../../manifests/samples/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if code, out, _ := runLine(t, "sample "+name); code != 0 || out != string(want) {
			t.Errorf("%s: exit status %d, %s", name, code, out)
		}
	}
}

// TestManOfAllCommands: there is a page for each command, and none for hidden ones.
func TestManOfAllCommands(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := runLine(t, "man "+dir); code != 0 {
		t.Fatal(errs)
	}
	for name, wanted := range map[string]bool{"gardenlite": true, "gardenlite-shoot-create": true,
		"gardenlite-ssh-helper": false} {
		if _, err := os.Stat(filepath.Join(dir, name+".1")); (err == nil) != wanted {
			t.Errorf("%s: %v", name, err)
		}
	}
}
