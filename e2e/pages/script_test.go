package pages

import (
	"strings"
	"testing"
)

const fence = "```"

// TestScript: commands stay in their lines, and all else of a page is left out.
func TestScript(t *testing.T) {
	for page, want := range map[string]string{
		"text\n" + fence + "sh\none\ntwo \\\n  three\n" + fence + "\nmore":                "||one|two \\|  three||",
		fence + "console\n$ one\nits output\n$ two \\\n  three\n" + fence:                 "|one||two \\|  three|",
		fence + "console\n$ one\nError: no\n" + fence:                                     "|if one|then echo \"there is no error\"; exit 1; fi|",
		"<!-- test: skip: it needs Docker -->\n" + fence + "sh\none NAME\n" + fence:       "|||",
		"<!-- test: before: zero -->\n" + fence + "sh\none\n" + fence:                     "zero||one|",
		"<!-- test: NODE=$(x) -->\n" + fence + "sh\none \"NODE\" NODE2\n" + fence:         "||one \"$(x)\" NODE2|",
		"<!-- test: until: is up -->\n" + fence + "sh\none\n" + fence:                     "|{|one|} >.output-4 2>&1 & until_shown 'is up' .output-4",
		"<!-- test: needs: a b -->\n" + fence + "sh\none\n" + fence:                       "|if type a b >.needs; then|one|fi",
		"<!-- test: needs: a -->\n<!-- test: until: up -->\n" + fence + "sh\na\n" + fence: "||if type a >.needs; then {|a|} >.output-5 2>&1 & until_shown 'up' .output-5; fi",
		"<!-- test: save: a.yaml -->\n" + fence + "yaml\na: NAME\n" + fence:               "|cat >a.yaml <<'" + fence + "'|a: NAME|" + fence,
		fence + "yaml\na: NAME\n" + fence:                                                 "||",
		fence + "sh\nA=1 one $HOME ${PWD} ERR_CODE # and NAME\n" + fence:                  "|A=1 one $HOME ${PWD} ERR_CODE # and NAME|",
		"<!-- another comment -->\n" + fence + "mermaid\n  a --> b\n" + fence + "\n\n":    "|||||",
	} {
		s, err := newScript(page)
		if err != nil {
			t.Errorf("%s: %v", page, err)
		} else if got := strings.Join(s.lines, "|"); got != want {
			t.Errorf("%s:\n%s, want\n%s", page, got, want)
		}
	}
}

// TestWrongPages: markers that say nothing, and placeholders of which nothing is known, are errors.
func TestWrongPages(t *testing.T) {
	for page, want := range map[string]string{
		fence + "sh\none NAME\n" + fence:                                    `line 2: nothing says what "NAME" is replaced with`,
		fence + "sh\none --x=NAME\n" + fence:                                "nothing says what",
		fence + "console\n$ one <name>\n" + fence:                           "nothing says what",
		fence + "\none\n" + fence:                                           "has no language",
		fence + "sh\none":                                                   "has no end",
		"<!-- test: skip -->\n" + fence + "sh\none\n" + fence:               "unknown marker",
		"<!-- test: skip: why -->\n" + fence + "sh\none\n" + fence:          "unknown marker",
		"<!-- test: NODE=x -->\n" + fence + "sh\none\n" + fence:             "which its marker replaces",
		"<!-- test: until: up -->\ntext\n" + fence + "sh\none\n" + fence:    "no block follows",
		"<!-- test: until: up -->\n" + fence + "yaml\na: b\n" + fence:       "is for a block of",
		"<!-- test:skip: it needs Docker -->\n" + fence + "sh\none" + fence: "the marker is not",
	} {
		if _, err := newScript(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", page, err, want)
		}
	}
}

// TestShownOutput: what a page shows has to be printed, in its order, with other numbers.
func TestShownOutput(t *testing.T) {
	s, err := newScript(fence + "console\n$ one\nReady after 2.7s\n…\nDIGEST   sha256:5f0c…\n$ two\n" + fence)
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]int{
		"starting\nReady after 31s\nmore\nDIGEST sha256:aa99\nend": 0,
		"starting\nready after 31s\nmore\nDIGEST sha256:aa99\nend": 3,
		"DIGEST sha256:aa99\nReady after 31s\nmore\n":              5,
		"Ready after 31s for all\n":                                3,
	} {
		if shown, _ := s.missing(output); shown.number != want {
			t.Errorf("%q: line %d is missing, want %d", output, shown.number, want)
		}
	}
}
