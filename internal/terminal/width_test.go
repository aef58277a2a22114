package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text    string
		width   int
		columns int
		want    string
	}{
		{"shoot", 5, 5, "shoot"},
		{"shoot", 5, 4, "sho…"},
		{"über", 4, 3, "üb…"},
		{"日本語", 6, 6, "日本語"},
		{"日本語", 6, 5, "日本…"},
		{"日本語", 6, 4, "日…"},
		{"e\u0301e\u0301e\u0301", 3, 2, "e\u0301…"}, // accents that are characters of their own
		{"🌱 seed", 7, 4, "🌱 …"},
		{"ｆｕｌｌ", 8, 3, "ｆ…"},
		{"shoot", 5, 0, "…"},
	} {
		if got := Width(test.text); got != test.width {
			t.Errorf("%q takes %d columns, want %d", test.text, got, test.width)
		}
		if got := Cut(test.text, test.columns); got != test.want {
			t.Errorf("%q cut to %d columns is %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	rows := [][]string{{"NAME", "STATE", "MESSAGE"}, {"日本", "Ready", ""}, {"my-shoot", "Failed", "no seed"},
		{"a", "", ""}}
	paint := func(column int, cell string) string {
		if column == 1 && cell != "STATE" {
			return "<" + cell + ">"
		}
		return cell
	}
	const plain = "NAME       STATE    MESSAGE\n日本       Ready\nmy-shoot   Failed   no seed\na\n"
	if got := (&Table{}).Add(rows, nil); got != plain {
		t.Errorf("it is\n%s\nwant\n%s", got, plain)
	}
	table := Table{}
	const painted = "NAME       STATE    MESSAGE\n日本       <Ready>\nmy-shoot   <Failed>   no seed\na\n"
	if got := table.Add(rows, paint); got != painted {
		t.Errorf("with colours it is\n%s\nwant\n%s", got, painted)
	}
	if got := table.Add([][]string{{"b", "Ready", "later"}}, nil); got != "b          Ready    later\n" {
		t.Errorf("a row that comes later is %q", got)
	}
	if got := table.Add(nil, nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

// TestNoTerminal: a file is none, and has the default width.
func TestNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Is(file) || Is(&strings.Builder{}) || Columns(file) != DefaultColumns {
		t.Errorf("%d columns, a terminal: %t", Columns(file), Is(file))
	}
}
