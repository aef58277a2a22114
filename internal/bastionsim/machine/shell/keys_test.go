package shell

import "testing"

func TestKeys(t *testing.T) {
	const interrupted = "\x1b[201~\x05\x15\r"
	for typed, want := range map[string]string{
		"echo a\r":                           "echo a\r",
		"日本":                                 "日本",
		"\x1b[A\x1b[1;3C\x1b[200~x\x1b[201~": "\x1b[A\x1b[1;3C\x1b[200~x\x1b[201~",
		"\x1b\r":                             "\r", // Escape and Enter
		"\x1b\x1b[A":                         "\x1b[A",
		"\x1b[1é":                            "é",
		"a\x03":                              "a" + interrupted,
		"\x1b[\x03":                          interrupted,
		"\xff\xfe\x80a":                      "a",
		"\xe6a\xe6\x97\xa5":                  "a日",
		"\ufffdb":                            "b",
		"\x1b[00000000000000000000000000000000000": "00000",
	} {
		var k keys
		var got []byte
		for i := range len(typed) {
			got = append(got, k.next(typed[i])...)
		}
		if string(got) != want {
			t.Errorf("%q gives %q, want %q", typed, got, want)
		}
	}
}
