package machine_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNothingOfTheHostIsImported holds all of the package, but its tests, to imports with which no file, process,
// environment variable or address of the host can be reached. The parser of mvdan.cc/sh is the only foreign code.
func TestNothingOfTheHostIsImported(t *testing.T) {
	const own = "github.com/gardenlite/gardenlite/internal/machine"
	allowed := map[string]bool{"mvdan.cc/sh/v3/syntax": true, "k8s.io/utils/clock": true, "sigs.k8s.io/yaml": true}
	for _, p := range strings.Fields("bufio bytes compress/gzip context crypto/md5 crypto/rand crypto/sha1 crypto/sha256 encoding/base64 encoding/gob " +
		"encoding/json errors fmt hash io io/fs maps math/rand/v2 net/netip path regexp slices strconv strings sync sync/atomic time unicode unicode/utf8") {
		allowed[p] = true
	}
	// It asks for the depth of the stack.
	allowed["runtime"] = true
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); !allowed[p] && p != own && !strings.HasPrefix(p, own+"/") {
				t.Errorf("%s imports %s: with that the host can be reached, or it has to be allowed here with a reason", file, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
