package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestSSHWithoutLandscape: invalid arguments are reported first, then that the landscape is not running.
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
			if code, out, errs := runLine(t, line); code != want.code || !strings.Contains(errs, want.says) || out != "" {
				t.Errorf("exit status %d, output %q, errors %q", code, out, errs)
			}
		})
	}
}

// runLine runs a command line for a landscape that does not run.
func runLine(t *testing.T, line string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args := append(strings.Fields(line), "--data-dir", t.TempDir())
	if dash := slices.Index(args, "--"); dash >= 0 {
		args = slices.Concat(args[len(args)-2:], args[:len(args)-2])
	}
	code = run(t.Context(), args, streams{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// TestRefused checks that a Bastion that may have been created although its request failed is deleted.
func TestRefused(t *testing.T) {
	for _, err := range []error{apierrors.NewForbidden(schema.GroupResource{}, "x", nil), apierrors.NewTooManyRequests("", 1),
		apierrors.NewAlreadyExists(schema.GroupResource{}, "x")} {
		if !refused(fmt.Errorf("creating: %w", err)) {
			t.Errorf("%v is no refusal", err)
		}
	}
	for _, err := range []error{apierrors.NewTimeoutError("", 1), apierrors.NewInternalError(io.EOF), io.EOF, context.Canceled} {
		if refused(fmt.Errorf("creating: %w", err)) {
			t.Errorf("%v is a refusal", err)
		}
	}
}
