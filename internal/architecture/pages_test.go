package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	makeCommand = regexp.MustCompile("(?m)(?:`|\"|^)make ([a-z-]+)")
	makeTarget  = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

// TestMakeTargetsOfPages: the pages name targets that the Makefile has.
func TestMakeTargetsOfPages(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	targets := map[string]bool{}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, found := range makeTarget.FindAllStringSubmatch(read(filepath.Join(root, "Makefile")), -1) {
		targets[found[1]] = true
	}
	named := 0
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		for _, found := range makeCommand.FindAllStringSubmatch(read(page), -1) {
			named++
			if !targets[found[1]] {
				t.Errorf("%s: the Makefile has no target %s", filepath.Base(page), found[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d targets are named: the pages are not read", named)
	}
}
