package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// A container runs as a process only if its image is the mapped one: names that look alike are not.
func TestLookup(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	path := program(t)
	for _, test := range []struct {
		mapping, image string
		runs           bool
	}{
		{"nginx", "nginx", true},
		{"nginx", "nginx:1.29", true},
		{"nginx", "docker.io/library/nginx:1.29", true},
		{"nginx", "nginx:1.29" + digest, true},
		{"nginx:latest", "nginx", true},
		{"nginx:1.29", "nginx:1.29", true},
		{"nginx" + digest, "nginx:1.29" + digest, true},
		{"nginx:1.29", "nginx:1.28", false},
		{"nginx:1.29", "nginx", false},
		{"nginx:1.29", "nginx:1.29" + digest, false},
		{"nginx" + digest, "nginx", false},
		{"nginx", "nginx2", false},
		{"nginx", "nginx/nginx", false},
		{"nginx", "example.com/nginx", false},
		{"nginx", "docker.io.example.com/library/nginx", false},
		{"nginx", "localhost/nginx", false},
		{"nginx", "ngіnx", false}, // with a Cyrillic letter
		{"nginx", "NGINX", false},
		{"nginx", "nginx ", false},
		{"nginx", "../nginx", false},
		{"nginx", "", false},
		{"example.com:5000/a/b", "example.com:5000/a/b:c", true},
		{"example.com:5000/a/b", "example.com/a/b:c", false},
	} {
		images := &Images{fixed: []Image{{Reference: test.mapping, Program: path}}}
		if _, runs := images.Lookup(test.image); runs != test.runs {
			t.Errorf("image %q, with %q mapped: %t, want %t", test.image, test.mapping, runs, test.runs)
		}
	}
}

// Mappings that were set while the landscape ran exist after the next start; flags of that start take precedence.
func TestImagesAreKept(t *testing.T) {
	path, first, second := filepath.Join(t.TempDir(), "images.json"), program(t), program(t)
	images, err := OpenImages(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"a", "b:1"} {
		if err := images.Set(Image{Reference: ref, Program: first}); err != nil {
			t.Fatal(err)
		}
	}
	if images, err = OpenImages(path, []Image{{Reference: "b:1", Program: second}, {Reference: "b", Program: first}}); err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{"a": first, "b:1": second, "b:2": first} {
		if got, _ := images.Lookup(image); got.Program != want {
			t.Errorf("image %s runs %s, want %s", image, got.Program, want)
		}
	}
	if err := images.Delete("b:1"); err != nil {
		t.Error(err)
	}
	if got, _ := images.Lookup("b:1"); got.Program != first {
		t.Errorf("the forgotten image runs %s", got.Program)
	}
	if err := images.Delete("b:1"); err == nil || !strings.Contains(err.Error(), "not mapped") {
		t.Errorf("forgetting it again: %v", err)
	}
}

// Spellings of one reference are one mapping. A reference without a tag is not that with the tag latest: it matches all tags.
func TestSpellingsAreOneMapping(t *testing.T) {
	path, first, second := filepath.Join(t.TempDir(), "images.json"), program(t), program(t)
	images, err := OpenImages(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	references := func() string {
		var all []string
		for _, image := range images.List() {
			all = append(all, image.Reference)
		}
		return strings.Join(all, " ")
	}
	for _, ref := range []string{"nginx", "nginx:latest", "docker.io/library/nginx", "library/nginx:latest"} {
		if err := images.Set(Image{Reference: ref, Program: first}); err != nil {
			t.Fatal(err)
		}
	}
	if got := references(); got != "docker.io/library/nginx library/nginx:latest" {
		t.Errorf("after the last spellings were set, the mappings are %s", got)
	}
	if images, err = OpenImages(path, []Image{{Reference: "index.docker.io/library/nginx", Program: second}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := images.Lookup("nginx:1.29"); got.Program != second || len(images.List()) != 2 {
		t.Errorf("the flag does not replace the mapping in the file: nginx:1.29 runs %s, the mappings are %s", got.Program, references())
	}
	if err := images.Delete("nginx"); err != nil {
		t.Error(err)
	}
	if got := references(); got != "library/nginx:latest" {
		t.Errorf("after nginx was forgotten, the mappings are %s", got)
	}
	if images, err = OpenImages(path, nil); err != nil {
		t.Fatal(err)
	}
	if got := references(); got != "library/nginx:latest" {
		t.Errorf("after the next start, the mappings are %s", got)
	}
}

func TestParseImage(t *testing.T) {
	path := program(t)
	image, err := ParseImage("example.com/a:v1=" + path + " --one  two")
	if err != nil || image.Reference != "example.com/a:v1" || image.Program != path || strings.Join(image.Args, ",") != "--one,two" {
		t.Errorf("%+v, %v", image, err)
	}
	for text, want := range map[string]string{
		"example.com/a":                          "REFERENCE=PROGRAM",
		"example.com/a=":                         "REFERENCE=PROGRAM",
		"Not An Image=" + path:                   "no reference",
		"a=" + filepath.Dir(path):                "not a regular file",
		"a=" + path + ".missing":                 "no such file",
		"a=" + filepath.Join(path, "x"):          "not a directory",
		"a=" + notExecutable(t, "not-a-program"): "not executable",
	} {
		if _, err := ParseImage(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func notExecutable(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
