package manpage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "A tool"}
	root.PersistentFlags().String("name", "default", "`NAME` of it")
	create := &cobra.Command{Use: "create NAME", Short: "Create one", Long: "First…\n\n.so /etc/passwd\n  'quoted'",
		Run:     run,
		Example: `  tool create a\b`}
	create.Flags().BoolP("yes", "y", false, "do not ask")
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: run}
	root.AddCommand(create, hidden)
	dir := filepath.Join(t.TempDir(), "man1")
	if n, err := Write(root, dir, "v1"); n != 2 || err != nil {
		t.Fatalf("%d pages, %v", n, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tool-create.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.TH "TOOL\-CREATE" 1 "" "v1"`, `tool\-create \- Create one`,
		".B tool create NAME [flags]\n",
		"First\\[u2026]\n.PP\n\\&.so /etc/passwd\n.nf\n  'quoted'\n.fi\n", ".SH OPTIONS\n",
		".TP\n.B \\-y, \\-\\-yes\ndo not ask\n",
		".SH GLOBAL OPTIONS\n.TP\n.B \\-\\-name NAME\nNAME of it (default default)\n", `tool create a\eb`,
		".SH SEE ALSO\n.BR tool (1)\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "tool.1")); err != nil ||
		!strings.Contains(string(data), ".BR tool\\-create (1)\n") {
		t.Errorf("%s, %v", data, err)
	}
}
