package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

// TestShootCommandsWithoutLandscape: invalid arguments are reported first, then that the landscape is not running.
func TestShootCommandsWithoutLandscape(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"shoot list":                                     {exitNotRunning, "gardenlite up"},
		"shoot create x":                                 {exitNotRunning, "gardenlite up"},
		"shoot create other/x -o yaml":                   {exitNotRunning, "gardenlite up"},
		"shoot delete x --yes":                           {exitNotRunning, "gardenlite up"},
		"kubeconfig shoot dev/x":                         {exitNotRunning, "gardenlite up"},
		"shoot create":                                   {exitUsage, "accepts 1 arg"},
		"shoot create a/b/c":                             {exitUsage, "PROJECT/NAME"},
		"shoot create x --workers -1":                    {exitUsage, "--workers"},
		"shoot create x -o table":                        {exitUsage, "one of text, name, json, yaml"},
		"shoot list -o name":                             {exitUsage, "one of table, wide, json, yaml"},
		"shoot delete":                                   {exitUsage, "accepts 1 arg"},
		"shoot delete a/":                                {exitUsage, "PROJECT/NAME"},
		"shoot list x":                                   {exitUsage, "unknown command"},
		"kubeconfig shoot":                               {exitUsage, "which shoot"},
		"kubeconfig shoot dev/x --expiration 1m":         {exitUsage, "10m0s at least"},
		"kubeconfig shoot dev/x --user a":                {exitUsage, "--user"},
		"kubeconfig shoot dev/x --path":                  {exitUsage, "--path"},
		"kubeconfig --viewer":                            {exitUsage, "--viewer"},
		"up --shoot-kubeconfig-key-algorithm dsa":        {exitUsage, "ecdsa or rsa"},
		"up --shoot-viewer-kubeconfig-max-expiration 1m": {exitUsage, "between 1h"},
	} {
		t.Run(line, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append(strings.Fields(line), "--data-dir", t.TempDir())
			if code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}); code != want.code ||
				!strings.Contains(errs.String(), want.says) || out.Len() > 0 {
				t.Errorf("exit status %d, output %q, errors %q", code, out.String(), errs.String())
			}
		})
	}
}

func TestPrintShoots(t *testing.T) {
	var out bytes.Buffer
	g := &globals{streams: streams{out: &out}}
	all := []shootclient.Summary{{Project: "dev", Name: "x", Seed: "local", KubernetesVersion: "1.36.0", State: "Create Processing (40%)",
		MinNodes: 2, MaxNodes: 3, Message: "first\nsecond", CreatedAt: time.Now().Add(-3 * time.Hour)}}
	printShoots(g, all, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[1]), " ") != "dev/x local 1.36.0 2-3 Create Processing (40%) 3h first" {
		t.Errorf("%q", lines)
	}
}

// TestShootProgress: without a terminal each change is a line.
func TestShootProgress(t *testing.T) {
	var errs bytes.Buffer
	p := newShootProgress(&globals{streams: streams{err: &errs}}, "Waiting")
	p.report(shootclient.Progress{Type: "Create", State: "Processing", Percent: 40, Description: "Making nodes\nand more"})
	p.close()
	if got := errs.String(); got != "Waiting\n  Create Processing (40%): Making nodes\n" {
		t.Errorf("%q", got)
	}
}

func TestPrefixed(t *testing.T) {
	config, err := clientcmd.Load([]byte(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: ` +
		`{server: "https://x"}}], users: [{name: a, user: {token: t}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := prefixed(config, "p-")
	if c := got.Contexts["p-a"]; got.CurrentContext != "p-a" || c == nil || got.Clusters[c.Cluster].Server != "https://x" ||
		got.AuthInfos[c.AuthInfo].Token != "t" {
		t.Errorf("%+v", got)
	}
}

// TestCompletion: the shell is not kept waiting when nothing runs.
func TestCompletion(t *testing.T) {
	g := &globals{dataDir: t.TempDir(), name: "default"}
	if names := shootNames(context.Background(), g, ""); names != nil {
		t.Errorf("%v", names)
	}
	if got := projectNames(context.Background(), g); len(got) != 1 || got[0] != defaultProject {
		t.Errorf("%v", got)
	}
}
