package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestSSHWithoutLandscape: what is wrong is said before anybody is asked, and that nobody is there after.
func TestSSHWithoutLandscape(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"ssh dev/x":           {exitNotRunning, "gardenlite up"},
		"ssh x node -- a b c": {exitNotRunning, "gardenlite up"},
		"ssh x --print":       {exitNotRunning, "gardenlite up"},
		"ssh x --print=proxyjump -L 1:h:2 -t -- a": {exitNotRunning, "gardenlite up"},
		"ssh":                                 {exitUsage, "PROJECT/SHOOT"},
		"ssh -- x":                            {exitUsage, "PROJECT/SHOOT"},
		"ssh x node command":                  {exitUsage, "before --"},
		"ssh a/b/c":                           {exitUsage, "PROJECT/NAME"},
		"ssh x --print=telnet":                {exitUsage, "proxycommand or proxyjump"},
		"ssh x --print --config":              {exitUsage, "print"},
		"ssh x -L 80:h":                       {exitUsage, "HOSTPORT"},
		"ssh x -L 0.0.0.0:80:h:80":            {exitUsage, "loopback"},
		"ssh x --bastion ../y":                {exitUsage, "no name"},
		"ssh x --bastion b --cidr 10.0.0.0/8": {exitUsage, "--cidr"},
		"ssh x --bastion b --keep-bastion --unknown": {exitUsage, "unknown flag"},
	} {
		t.Run(line, func(t *testing.T) {
			var out, errs bytes.Buffer
			name, rest, _ := strings.Cut(line, " ")
			args := append([]string{name, "--data-dir", t.TempDir()}, strings.Fields(rest)...)
			if code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}); code != want.code || !strings.Contains(errs.String(), want.says) || out.Len() > 0 {
				t.Errorf("exit status %d, output %q, errors %q", code, out.String(), errs.String())
			}
		})
	}
}
