package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell/shelltest"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestScripts verifies that scripts and programs do the same as in bash.
func TestScripts(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		status       int
	}{
		"parameters": {`x=hello.tar.gz; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${x/l/L} ${x//l/L} ${x^} ${x:1:3} ${#x} ${y:-d} ${x: -2}`,
			"hello.tar hello tar.gz gz heLlo.tar.gz heLLo.tar.gz Hello.tar.gz ell 12 d gz\n", 0},
		"arrays": {`a=(1 "2 3"); a[5]=x; echo "${#a[@]}" "${!a[@]}"; for i in "${a[@]}"; do echo "<$i>"; done; ` +
			`declare -A m=([k]=v); echo ${m[k]}`, "3 0 1 5\n<1>\n<2 3>\n<x>\nv\n", 0},
		"functions": {`f() { local x=$1; echo "$x $#"; return 3; }; x=o; f a b; echo $? $x`, "a 2\n3 o\n", 0},
		"errexit":   {`set -e; false || echo a; if false; then :; fi; ! true; echo b; false; echo c`, "a\nb\n", 1},
		"pipefail":  {`set -o pipefail; trap 'echo bye' EXIT; false | true; echo $? ${PIPESTATUS[@]}; exit 4`, "1 1 0\nbye\n", 4},
		"documents": {"x=1; cat <<EOF\n$x \\$x $((1+1)) `echo c`\nEOF\ncat <<'EOF'\n$x\nEOF\ncat <<-EOF\n\ta\n\tEOF\ncat <<< \"$x\"",
			"1 $x 2 c\n$x\na\n1\n", 0},
		"redirection": {`exec 3>f; echo a >&3; exec 3>&-; { echo b; echo c >&2; } >> f 2>&1; cat f; echo "$(<f)" | wc -l; ` +
			`nosuch 2>/dev/null; echo $?`, "a\nb\nc\n3\n127\n", 0},
		"braces": {`echo {a,b}{1..3} {01..03} {c..a}`, "a1 a2 a3 b1 b2 b3 01 02 03 c b a\n", 0},
		"arithmetic": {`i=5; ((i+=2)); echo $((i++)) $i $((2**10)) $((0x1F)) $((i>6?1:0)) $((-9223372036854775807-1)); echo $((1/0))`,
			"7 8 1024 31 1 -9223372036854775808\n", 1},
		"tests": {`[[ abc =~ ^a(.)c$ && abc == a* ]] && echo ${BASH_REMATCH[1]}; [ -d /etc -a ! -e /no ] && echo d; ` +
			`[[ -O /etc ]] && echo o; test /etc/passwd -ef /etc/../etc/passwd && echo same`, "b\nd\no\nsame\n", 0},
		"getopts": {`while getopts ab:c o -a -bv -c x; do echo $o $OPTARG; done`, "a\nb v\nc\n", 0},
		"reading": {`printf 'a b c\nd\n' | while read x y; do echo "$y-$x"; done; mapfile -t l < <(seq 3); echo ` +
			`${l[2]}; IFS=, read p q <<< m,n; echo $q`, "b c-a\n-d\n3\nn\n", 0},
		"jobs":     {`(exit 5) & wait $!; echo $?; sleep 100 & kill $!; wait $!; echo $?`, "5\n143\n", 0},
		"captures": {`x=$({ sleep 0.01; echo b; } & echo a); echo "$x" | sort`, "a\nb\n", 0},
		"text": {`printf 'b\na\na\n' | sort -u | tr a c; seq 5 | sed -n '2,3p;$p'; echo hello | sed -E 's/(l+)/[\1]/' ` +
			`| grep -o '\[.*\]'; echo a,b | cut -d, -f2; seq 9 | tail -n +8 | head -1; echo hi | base64; echo -n | sha256sum | cut -c1-8`,
			"c\nb\n2\n3\n5\n[ll]\nb\n8\naGkK\ne3b0c442\n", 0},
		"files": {`mkdir -p a/b; echo x > a/b/c; cp -r a d; mv d/b e; ln -s e l; cat l/c; echo $(find a e | sort); chmod ` +
			`640 e/c; stat -c '%a %U' l/c; rm -r a d; ls; cp e/c i; chmod 600 i; chown nobody i; stat -c '%a %U' i; ls -l i | cut -d' ' -f1`,
			"x\na a/b a/b/c e e/c\n640 root\ne\nl\n600 nobody\n-rw-------\n", 0},
		"links": {`mkdir a b; ln -s a l; ln -sfn b l; readlink l; ls`, "b\na\nb\nl\n", 0},
		"read-only": {`chmod 777 .; mkdir a; echo x > a/f; chmod 555 a; su nobody -c 'cp -r a b; cat b/f; touch -d @9 b; stat -c "%a %Y" b'`,
			"x\n755 9\n", 0},
		"sed": {`seq 5 | sed -e '2,3d;$s/5/[&]/' ; echo 'a/b$' | sed -E 's|(.)/(.)\$|\2$\1|p'; echo a > f; sed -i ` +
			`s/a/b/ f; cat f; sed y/a/b/ f; echo $?; echo a | sed 's/a/\$0 costs \$HOME/'`,
			"1\n4\n[5]\nb$a\nb$a\nb\n1\n$0 costs $HOME\n", 0},
		"cut": {`echo abc | cut -c 1,3; echo abc | cut -c $(seq 1001 | tr '\n' ,)1 2>&1; echo $?`,
			"ac\ncut: the expression is too complex for this machine\n1\n", 0},
		"not here": {`usermod -L root; echo $?; ls -R; echo $?; sed --posix p; echo $?; echo | xargs; echo $?; sed 1q f; echo $?`,
			"127\n2\n1\n127\n1\n", 0},
		"accounts": {`useradd -m -G sudo -s /bin/bash gard; id gard; su gard -c 'id ` +
			`-un; cat /etc/shadow 2>/dev/null || echo no; sudo -n id -u; echo x > /etc/x || echo ro'; ls -ld ~gard | cut -c1-10`,
			"uid=1000(gard) gid=1000(gard) groups=1000(gard),27(sudo)\ngard\nno\n0\nro\ndrwxr-x---\n", 0},
		"passwords": {`echo root:x | chpasswd; echo $?; passwd root; echo $?; useradd -p x y; echo $?`, "1\n1\n2\n", 0},
		"network":   {`curl -s http://x; echo $?; ssh x; echo $?; scp f x:f; echo $?; openssl version; echo $?`, "7\n255\n255\n127\n", 0},
		"scripts": {`printf '#!/bin/bash\necho "$0 $1"; exit 3\n' > s; chmod +x s; ./s z; echo $?; bash -c 'echo $0 ` +
			`$1' n m; X=1 bash -c 'echo $X'; echo 'y=2' > i; . ./i; echo $y; env -i A=1 env`, "./s z\n3\nn m\n1\n2\nA=1\n", 0},
		"syntax":   {`echo a; if`, "", 2},
		"hostname": {`hostname; uname -n; echo $HOSTNAME; cat /proc/sys/kernel/hostname`, "machine\nmachine\nmachine\nmachine\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, Options{User: rootUser, Dir: "/srv"})
			var out, errs bytes.Buffer
			status, err := s.Run(t.Context(), c.script, nil, &out, &errs)
			if err != nil || status != c.status || out.String() != c.want {
				t.Errorf("status %d (want %d), %v, output\n%s\nwant\n%s\nerrors: %s", status, c.status, err, out.String(), c.want, errs.String())
			}
		})
	}
}

// TestMemoryLimits verifies that a script that grows is ended by the limit of what grows, even if it has much time.
func TestMemoryLimits(t *testing.T) {
	for script, want := range map[string]string{
		`x=aaaaaaaa; while :; do x=$x$x; done`:                        "string",
		`for ((i=0;;i++)); do declare "v$i=$(printf %100000s)"; done`: "memory",
		`set -- a b; while :; do set -- "$@" "$@"; done`:              "fields",
		`f() { f; }; f`:                          "depth",
		`echo {1..1000000000}`:                   "fields",
		`echo a,` + strings.Repeat("{", 100_000): "fields",
		`printf '%*s' 2000000000 x`:              "string",
		`x=$(yes)`:                               "string",
		`yes`:                                    "output",
		`while :; do :; done`:                    "steps",
		`x='('; for i in {1..18}; do x=$x$x; done; eval "$x"; f() { f; }; f`: "depth",
	} {
		s := newSession(t, Options{User: rootUser, Limits: Limits{Output: 1 << 20, Steps: 2_000_000, Memory: 16 << 20}})
		_, err := s.Run(t.Context(), script, nil, nil, nil)
		if limit, ok := err.(*LimitError); !ok || limit.Limit != want {
			t.Errorf("%.100s: %v, want the limit of %s", script, err, want)
		}
	}
}

// TestManyBraces verifies that braces that expand to nothing stay as they are, however many they are.
func TestManyBraces(t *testing.T) {
	braces := strings.Repeat("{", 100_000)
	var out strings.Builder
	s := newSession(t, Options{User: rootUser, Limits: Limits{Output: 1 << 20, Steps: 2_000_000, Memory: 16 << 20}})
	if _, err := s.Run(t.Context(), "echo "+braces, nil, &out, nil); err != nil || out.String() != braces+"\n" {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// TestPrograms verifies that the image has the same programs as the table.
func TestPrograms(t *testing.T) {
	known := map[string]bool{}
	for _, name := range vfs.Programs {
		known[name] = true
		if programs[name].run == nil {
			t.Errorf("/usr/bin/%s is in the image, and there is no such program", name)
		}
	}
	for name := range programs {
		if !known[name] {
			t.Errorf("%s is a program that the image does not have", name)
		}
	}
}

type fakeSystem struct {
	mu    sync.Mutex
	calls []string
}

func (f *fakeSystem) call(parts ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, strings.Join(parts, " "))
	return nil
}

func (f *fakeSystem) Hostname() string { return "machine" }
func (f *fakeSystem) Addresses() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16")}
}
func (f *fakeSystem) Booted() time.Time { return time.Unix(0, 0) }
func (f *fakeSystem) Processes() []ProcessInfo {
	return []ProcessInfo{{PID: 7, User: "root", Command: "kubelet"}}
}
func (f *fakeSystem) Units() Units                              { return f }
func (f *fakeSystem) Power(a PowerAction) error                 { return f.call(string(a)) }
func (f *fakeSystem) List() []Unit                              { u, _ := f.Unit("kubelet.service"); return []Unit{u} }
func (f *fakeSystem) Enable(_ context.Context, n string) error  { return f.call("enable", n) }
func (f *fakeSystem) Disable(_ context.Context, n string) error { return f.call("disable", n) }
func (f *fakeSystem) Mask(n string, on bool) error              { return f.call("mask", n) }
func (f *fakeSystem) DaemonReload(context.Context) error        { return f.call("reload") }

func (f *fakeSystem) Unit(n string) (Unit, bool) {
	return Unit{Name: n, Load: "loaded", Active: "active", Sub: "running", Enabled: "enabled", MainPID: 7}, n == "kubelet.service"
}
func (f *fakeSystem) Start(_ context.Context, n string) error   { return f.call("start", n) }
func (f *fakeSystem) Stop(_ context.Context, n string) error    { return f.call("stop", n) }
func (f *fakeSystem) Restart(_ context.Context, n string) error { return f.call("restart", n) }
func (f *fakeSystem) Journal(unit string, _ int) []JournalEntry {
	return []JournalEntry{{Unit: unit, Identifier: "kubelet", PID: 7, Message: "hello"}}
}

// TestSystem verifies that only root may change units and power, and that every user may query them.
func TestSystem(t *testing.T) {
	script := `systemctl daemon-reload; systemctl enable --now kubelet; systemctl restart kubelet.service; systemctl is-active kubelet; ` +
		`systemctl is-active none; journalctl -u kubelet -o cat; ps -e | grep -c kubelet; ip addr | grep -c 10.1.2.3; hostname -I; reboot`
	for _, c := range []struct {
		user  User
		calls string
	}{{rootUser, "reload,enable kubelet.service,start kubelet.service,restart kubelet.service,reboot"},
		{User{Name: "x", UID: 7, GID: 7, Groups: []uint32{102}}, ""}} {
		f := &fakeSystem{}
		s := newSession(t, Options{User: c.user, System: f})
		var out bytes.Buffer
		if _, err := s.Run(t.Context(), script, nil, &out, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.calls, ","); got != c.calls {
			t.Errorf("%s called %q, want %q", c.user.Name, got, c.calls)
		}
		if out.String() != "active\ninactive\nhello\n1\n1\n10.1.2.3\n" {
			t.Errorf("%s got %q", c.user.Name, out.String())
		}
	}
}

// keyboard is a terminal. Tests type keys with answer, and wait for output.
type keyboard struct {
	keys *io.PipeReader
	in   *io.PipeWriter
	mu   sync.Mutex
	out  bytes.Buffer
}

func newKeyboard() *keyboard {
	r, w := io.Pipe()
	return &keyboard{keys: r, in: w}
}

func (k *keyboard) Read(p []byte) (int, error) { return k.keys.Read(p) }
func (k *keyboard) Size() (int, int)           { return 80, 24 }
func (k *keyboard) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out.Write(p)
}

// answer types keys, and waits for output after them. Without keys, earlier output counts as well. Keys for the line
// editor must be typed after a prompt, because a command that still runs would read them.
func (k *keyboard) answer(t *testing.T, keys, want string) {
	t.Helper()
	if keys != "" {
		k.mu.Lock()
		k.out.Reset()
		k.mu.Unlock()
	}
	if _, err := io.WriteString(k.in, keys); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if text := k.out.String(); !strings.Contains(text, want) {
			return fmt.Errorf("after %q came %q, not %q", keys, text, want)
		}
		return nil
	})
}

func TestInteractive(t *testing.T) {
	s := newSession(t, Options{User: User{Name: "gardener", UID: 1000, GID: 1000, Home: "/tmp"}})
	k := newKeyboard()
	done := make(chan int, 1)
	go func() {
		status, _ := s.Interactive(t.Context(), k)
		done <- status
	}()
	k.answer(t, "", "gardener@machine:~$ ")
	k.answer(t, "cd /etc\r", "gardener@machine:/etc$ ")
	k.answer(t, "x=5; echo v$x\r", "v5\r\ngardener@machine:/etc$ ")
	k.answer(t, "echo $((x+1))\r", "6\r\ngardener@machine:/etc$ ")
	k.answer(t, "if true\r", "> ")
	k.answer(t, "then echo multi; fi\r", "multi\r\ngardener@machine:/etc$ ")
	k.answer(t, "while :; do :; done\r", "\r\n")
	k.answer(t, "\x03", "/etc$ ")
	k.answer(t, "echo $?\r", "130\r\ngardener@machine:/etc$ ")
	k.answer(t, "garbage\x03", "/etc$ ")
	k.answer(t, "read y; echo got:$y\r", "\r\n")
	k.answer(t, "typed\r", "got:typed\r\ngardener@machine:/etc$ ")
	k.answer(t, "cat\r", "\r\n")
	k.answer(t, "line\r", "line\r\n")
	k.answer(t, "\x04", "/etc$ ")
	k.answer(t, "exit 7\r", "")
	select {
	case status := <-done:
		if status != 7 {
			t.Errorf("it ended with %d", status)
		}
	case <-time.After(testutil.Timeout):
		t.Error("exit did not end the session")
	}
	_ = k.in.Close()
}

// TestInteractiveInputEnds verifies that commands that were typed before the end of the input run to their end, and
// that a terminal that fails ends the session.
func TestInteractiveInputEnds(t *testing.T) {
	for name, test := range map[string]struct {
		typed  string
		err    error
		status int
		output string
	}{
		"a command that goes on": {"sleep 0.05; echo after; exit 5\r", io.EOF, 5, "after\r\n"},
		"one that reads":         {"cat; echo after; exit 5\r", io.EOF, 5, "after\r\n"},
		"the next one reads":     {"sleep 0.05; (cat); echo after; exit 5\r", io.EOF, 5, "after\r\n"},
		"without exit":           {"sleep 0.05; echo after; false\r", io.EOF, 1, "after\r\n"},
		"at the prompt":          {"", io.EOF, 0, "$ "},
		"a failure":              {"echo runs; while :; do :; done\r", errors.New("cut"), statusKilled, "runs\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, Options{User: User{Name: "gardener", UID: 1000, GID: 1000, Home: "/tmp"}})
			k := newKeyboard()
			done := make(chan int, 1)
			go func() {
				status, _ := s.Interactive(t.Context(), k)
				done <- status
			}()
			if k.answer(t, test.typed, ""); test.err != io.EOF {
				k.answer(t, "", test.output)
			}
			_ = k.in.CloseWithError(test.err)
			select {
			case status := <-done:
				if status != test.status || !strings.Contains(k.out.String(), test.output) {
					t.Errorf("it ended with %d, not %d: %q", status, test.status, k.out.String())
				}
			case <-time.After(testutil.Timeout):
				t.Error("it does not end")
			}
		})
	}
}

// FuzzScript verifies that every script ends, and that only limits make it fail.
func FuzzScript(f *testing.F) {
	for _, script := range shelltest.Escapes {
		f.Add(script)
	}
	for _, script := range []string{"", "echo ${x", "a=(", "((", "[[ -n", "cat <<E", "${x@Z}", "$((1#2))", "${a[-1]}", "${!}",
		"f(){ }", "case x in", "\x00", "echo $'\\c'", "printf %", "${x:-9223372036854775808}", "x[9223372036854775807]=1", "sed 's", "grep '['",
		"find -name", "cut -f", "test ( (", "tr a-", "head -c -99999999", "seq 9223372036854775800 9223372036854775807", "chmod + /tmp",
		"date +%", "sort -k", "xargs -I", "printf '%*d' -9999999999 1", "{1..}", "declare -n r=r; r=1; echo $r", "${#@}${@:0:-1}", "()0",
		// What ends mvdan.cc/sh/v3/interp, or never ends in it.
		"x='@('; for i in {1..24}; do x=$x$x; done; [[ a == $x ]]", "x='@(@(@(@(@(@(@(@(@(@(@(@(@(@(@(@('; [[ a == $x$x ]]",
		"{ getopts abc o -abc; getopts abc o -a; } | :", "declare -A m=(a b) | :", "shift -1 | :", "declare -A m; echo ${m[1+1]} | :",
		"y=aaaaaaaa; for i in {1..12}; do y=$y$y; done; y=${y//a/$y}", "p='?'; for i in {1..22}; do p=$p$p; done; echo ${p%%$p} | :"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		s := newSession(
			t, Options{User: someUser, Limits: Limits{Time: 200 * time.Millisecond, Steps: 200_000, Output: 1 << 20, Memory: 8 << 20}})
		_, err := s.Run(t.Context(), script, strings.NewReader("a b\nc\n"), nil, nil)
		if limit, ok := err.(*LimitError); err != nil && (!ok || limit.Limit == "an internal error") {
			t.Fatalf("%q ended with %v", script, err)
		}
	})
}
