package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// marker is what no output may have: it is in a file and in a variable of the host.
const marker = "HOST-SECRET-7f3a"

// escapes are attempts to reach the host or to use more of it than a session may. HOST is a folder of the host with the
// file "secret"; a virtual user could never have one there.
var escapes = map[string]string{
	"absolute path":            `cat HOST/secret`,
	"path with dots":           `cat /tmp/../../../../../../..HOST/secret`,
	"relative dots":            `cd /; cat ../../../../../..HOST/secret`,
	"redirect in":              `cat < HOST/secret`,
	"redirect out":             `echo owned > HOST/new`,
	"append":                   `echo owned >> HOST/secret`,
	"clobber":                  `echo owned >| HOST/secret`,
	"both":                     `echo owned &> HOST/new`,
	"read and write":           `echo owned 1<> HOST/secret`,
	"descriptor":               `exec 9< HOST/secret; cat <&9`,
	"short substitution":       `echo "$(<HOST/secret)"`,
	"backquotes":               "echo `cat HOST/secret`",
	"read":                     `read x < HOST/secret; echo $x`,
	"mapfile":                  `mapfile x < HOST/secret; echo "${x[@]}"`,
	"source":                   `source HOST/secret; . HOST/secret`,
	"source shadow":            `. /etc/shadow 2>&1; echo ${PWD}`,
	"bash of a host file":      `bash HOST/secret; sh HOST/secret`,
	"exec":                     `exec HOST/secret`,
	"exec a host program":      `exec /usr/bin/touch HOST/new`,
	"a host program by path":   `/bin/touch HOST/new; /usr/bin/env`,
	"go on the host":           `/usr/local/go/bin/go env`,
	"link to the host":         `ln -s HOST/secret /tmp/l; cat /tmp/l; cp /tmp/l /tmp/c; cat /tmp/c`,
	"link to a host folder":    `ln -s HOST /tmp/h; ls /tmp/h; cat /tmp/h/secret; echo x > /tmp/h/new`,
	"hard link":                `ln HOST/secret /tmp/l; cat /tmp/l`,
	"link to a parent":         `ln -s / /tmp/r; cat /tmp/r/../../..HOST/secret`,
	"proc root":                `cat /proc/self/root/HOST/secret /proc/1/root/HOST/secret`,
	"proc cwd":                 `cat /proc/self/cwd/secret; ls /proc/self/cwd/..`,
	"proc environ":             `cat /proc/self/environ /proc/1/environ /proc/$PPID/environ /proc/$$/environ`,
	"proc exe":                 `cat /proc/self/exe; /proc/self/exe -c id`,
	"proc fd":                  `ls -l /proc/self/fd; cat /proc/self/fd/*; cat /dev/fd/3 /dev/fd/4 /dev/fd/5 /dev/fd/6`,
	"proc maps":                `cat /proc/self/maps /proc/self/mem /proc/kcore /proc/self/mountinfo`,
	"glob":                     `echo HOST/*; for f in HOST/sec*; do cat "$f"; done`,
	"globstar":                 `shopt -s globstar dotglob; echo HOST/**; echo /**/secret`,
	"tilde root":               `cat ~root/../HOST/secret; echo ~root ~nobody ~daemon; ls ~HOST`,
	"tilde of a host user":     `for u in ubuntu runner user node ec2-user; do eval echo ~$u; done`,
	"test operators":           `for o in e f r w s d L O G x N; do [ -$o HOST/secret ] && echo HOST""-SECRET-7f3a; test -$o HOST/secret && echo HOST""-SECRET-7f3a; done; [[ -e HOST/secret || -f HOST/secret || -O HOST || -r HOST/secret ]] && echo HOST""-SECRET-7f3a; true`,
	"compare with a host file": `[[ HOST/secret -ef HOST/secret || HOST/secret -nt /etc/passwd || /nowhere -ot HOST/secret ]] && echo HOST""-SECRET-7f3a; true`,
	"cd":                       `cd HOST && cat secret; pushd HOST; pwd -P; cd -P HOST; cd "$OLDPWD"`,
	"cdpath":                   `CDPATH=HOST:/ ; cd HOST; ls`,
	"path variable":            `PATH=HOST:/usr/bin:/bin; secret; touch HOST/new; command -v secret; type -a secret; hash secret`,
	"temporary folder": `export TMPDIR=HOST; mktemp; mktemp -d -p HOST; mktemp HOST/XXXXXX; cat <(echo x) <<EOF
y
EOF`,
	"home variable":            `HOME=HOST; cd; ls; cat ~/secret; echo x > ~/new`,
	"environment":              `env; printenv; set; export -p; declare -p; echo $SECRET_OF_THE_HOST ${!SEC*}; echo "$(env)"`,
	"environment of a command": `env -i env; sudo env; bash -c 'env; echo $SECRET_OF_THE_HOST'; xargs env < /dev/null`,
	"preload":                  `LD_PRELOAD=HOST/secret ls; LD_LIBRARY_PATH=HOST BASH_ENV=HOST/secret ENV=HOST/secret bash -c 'true'`,
	"process substitution":     `cat <(cat HOST/secret); diff <(echo a) <(cat HOST/secret); echo x > >(cat > HOST/new)`,
	"coproc":                   `coproc cat HOST/secret; cat <&${COPROC[0]}`,
	"here-document":            "cat <<EOF\n$(cat HOST/secret)\n$(<HOST/secret)\nEOF\ncat <<< \"$(<HOST/secret)\"",
	"tcp":                      `exec 5<>/dev/tcp/127.0.0.1/22; cat < /dev/tcp/127.0.0.1/80; echo x > /dev/udp/127.0.0.1/53`,
	"network programs":         `curl -s file://HOST/secret; wget -qO- http://127.0.0.1; nc 127.0.0.1 22; ssh localhost; ping -c1 127.0.0.1`,
	"kill init":                `kill 1; kill -9 1; kill -9 -1; kill -TERM -- -1; kill -9 $PPID; sudo kill -9 1`,
	"kill this test":           `kill -9 HOSTPID; kill -STOP HOSTPID; kill -- -HOSTPID; sudo kill HOSTPID`,
	"sudo":                     `sudo cat HOST/secret; sudo -u nobody cat HOST/secret; su -c 'cat HOST/secret'; sudo bash -c 'echo x > HOST/new'`,
	"mount":                    `mount --bind / /mnt; mount -t proc proc /mnt; umount /; chroot / cat HOST/secret; nsenter -t 1 -m cat HOST/secret; unshare -r true`,
	"devices":                  `mknod /tmp/d b 8 0; cat /dev/vda /dev/sda /dev/mem /dev/kmsg; mkfifo /tmp/p; cat /dev/tty; echo x > /dev/tty`,
	"copy and move":            `cp HOST/secret /tmp/x; cat /tmp/x; cp -r HOST /tmp/y; mv HOST/secret /tmp/z; cp /etc/passwd HOST/new; mv /etc/motd HOST/new2`,
	"remove":                   `rm -f HOST/secret; rm -rf HOST; rmdir HOST; find HOST -delete; rm -rf --no-preserve-root /*`,
	"find and grep":            `find / -name secret -exec cat {} \;; grep -r SECRET-7f /; find HOST -type f`,
	"change the host":          `chmod 777 HOST/secret; chown nobody HOST/secret; touch HOST/secret HOST/new; truncate -s 0 HOST/secret; ln -s /etc HOST/new; mkdir HOST/new; install -m 777 /etc/passwd HOST/new; sed -i s/H/X/ HOST/secret; echo x | tee HOST/new -a HOST/secret; dd if=HOST/secret of=HOST/new`,
	"xargs and sums":           `echo HOST/secret | xargs cat; sha256sum HOST/secret; base64 HOST/secret; wc HOST/secret; sort HOST/secret; head HOST/secret; tail HOST/secret; cut -c1-99 HOST/secret`,
	"alias":                    `shopt -s expand_aliases; alias x='cat HOST/secret'; eval x; alias y='cat <(cat HOST/secret)'; eval y`,
	"function names":           `cat() { command cat "$@"; builtin cat "$@"; }; cat HOST/secret; builtin source HOST/secret; command . HOST/secret`,
	"trap":                     `trap 'cat HOST/secret; exit' EXIT ERR; false; trap 'trap "cat HOST/secret" EXIT; false' ERR; false`,
	"indirection":              `p=HOST/secret; v=p; cat "${!v}"; eval "cat \$p"; a=(HOST/*); cat "${a[@]}"; printf -v q %s HOST/secret; cat $q`,
	"printf":                   `printf '%s' "$(cat HOST/secret)"; printf '%(%Z)T\n'; printf '%n%p%v%#v\n' 1 2 3 4; printf '\x2f\u002f'`,
	"process numbers":          `echo $$ $PPID $BASHPID $UID $EUID $! | grep -w HOSTPID && echo HOST""-SECRET-7f3a; true`,
	"history and completion":   `history; fc -l; compgen -f HOST/; compgen -u; bind -f HOST/secret; enable -f HOST/secret x; hash -p HOST/secret ls; ls`,
	"shell with flags":         `bash --rcfile HOST/secret -i -c true; bash --init-file HOST/secret; bash -s < HOST/secret; echo 'cat HOST/secret' | bash`,
	"script with interpreter":  "printf '#!HOST/secret\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s; printf '#!/usr/bin/python3\\nprint(1)\\n' > /tmp/t; chmod +x /tmp/t; /tmp/t",
	"binary":                   `printf '\x7fELF' > /tmp/b; chmod +x /tmp/b; /tmp/b; cp /bin/ls /tmp/ls; /tmp/ls HOST`,
	"zero bytes":               `cat $'HOST/secret\0x'; cat "$(printf 'HOST/secret\0.txt')"; echo x > $'HOST/new\0'`,
	"windows paths":            `cat '..\..\..\HOST\secret'; cat 'file:HOST/secret'; cat '\\?\HOST\secret'`,
	"umask and ulimit":         `umask 0; ulimit -n 100000; ulimit -u unlimited; ulimit -c unlimited; ulimit -a`,
	"getopts":                  `getopts ab x -ab | cat; getopts ab x -ab; getopts ab x -a; OPTIND=-5; getopts ab x -a; OPTIND=999999999; getopts a x -a`,
	"logger":                   `logger -f HOST/secret x; logger "$(cat HOST/secret)"; cat /var/log/syslog`,
	"accounts":                 `useradd -m -d HOST/new evil; useradd -p x evil; usermod -d HOST root; userdel -r root; echo root:x | chpasswd; cat ~evil/secret`,
	"units":                    `systemctl start sshd; systemctl poweroff; reboot; shutdown -h now; journalctl -D HOST`,
}

// bombs are attempts to use up what there is. Each has to be ended by a limit.
var bombs = map[string]string{
	"loop":                    `while :; do :; done`,
	"until":                   `until false; do :; done`,
	"for":                     `for ((;;)); do :; done`,
	"loop of tests":           `while [[ 1 ]]; do ((x++)); done`,
	"loop of substitutions":   `while :; do x=$(echo a); done`,
	"loop in the background":  `while :; do :; done & wait`,
	"sleep":                   `sleep 100000`,
	"read from nothing":       `cat /dev/zero > /dev/null`,
	"endless output":          `yes`,
	"endless random":          `cat /dev/urandom`,
	"endless echo":            `while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done`,
	"endless errors":          `while :; do nosuchcommand; done`,
	"endless trace":           `set -x; while :; do :; done`,
	"doubling":                `x=aaaaaaaa; while :; do x=$x$x; done`,
	"doubling in a test":      `x=aaaaaaaa; while [[ -n ${x:=$x$x} ]]; do x+=$x; done`,
	"many doublings":          `x=$(printf %65536s a); y=$x$x$x$x$x$x$x$x$x$x$x$x; z=$y$y$y$y$y$y$y$y$y$y$y$y$y; w=$z$z$z$z; while :; do w+=$w; done`,
	"many variables":          `for ((i=0;;i++)); do declare "v$i=$(printf %1000s)"; done`,
	"an array":                `while :; do a+=(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa); done`,
	"a doubling array":        `a=(1 2 3 4); while :; do a+=("${a[@]}"); done`,
	"parameters":              `set -- a b c d; while :; do set -- "$@" "$@"; done`,
	"a long line":             `x=$(cat /dev/zero | tr '\0' a); read y < <(yes | tr -d '\n')`,
	"read":                    `yes | tr -d '\n' | { read x; echo ${#x}; }`,
	"mapfile":                 `yes | mapfile x`,
	"replacement":             `x=$(printf %60000s a); y=${x// /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}; while :; do y=${y//a/aaaaaaaaaa}; done`,
	"printf width":            `printf '%999999999d' 1; printf '%*s' 2000000000 x; while :; do printf -v x '%200000s%200000s%200000s%200000s%200000s%200000s%200000s%200000s' a; done`,
	"braces":                  `echo {1..1000000000}`,
	"nested braces":           `echo {1..100}{1..100}{1..100}{1..100}{1..100}`,
	"commas":                  `echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}`,
	"recursion":               `f() { f; }; f`,
	"recursion of two":        `f() { f; f; }; f`,
	"recursion by eval":       `x='eval "$x"'; eval "$x"`,
	"recursion by source":     `echo '. /tmp/s' > /tmp/s; . /tmp/s`,
	"recursion by script":     `printf '#!/bin/bash\n$0\n' > /tmp/s; chmod +x /tmp/s; /tmp/s`,
	"recursion by bash":       `export X='bash -c "$X"'; bash -c "$X"`,
	"recursion by sudo":       `printf '#!/bin/bash\nsudo $0\n' > /tmp/s; chmod +x /tmp/s; sudo /tmp/s; while :; do :; done`,
	"recursion in arithmetic": `x='y+1'; y='x+1'; echo $((x)); while :; do :; done`,
	"recursion in a subshell": `f() { (f); }; f`,
	"recursion in a pipe":     `f() { f | f; }; f; while :; do :; done`,
	"fork bomb":               `b(){ b|b& };b; :(){ :|:& };:; while true; do :; done`,
	"many jobs":               `while :; do sleep 1000 & done`,
	"many waiting pipes":      `while :; do cat /dev/zero | sleep 1000 & done`,
	"trap loop":               `trap 'while :; do :; done' EXIT ERR; false`,
	"a huge file":             `while :; do cat /etc/passwd >> /tmp/x 2>/dev/null; done`,
	"many files":              `for ((i=0;;i++)); do : > /tmp/f$i; done 2>/dev/null`,
	"deep directories":        `while :; do mkdir d 2>/dev/null; cd d 2>/dev/null; done`,
	"glob":                    `cd /tmp; for i in {1..60}; do touch aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa$i; done; while :; do echo *a*a*a*a*a*a*a*a*a*a*a*a*a*b >/dev/null; done`,
	"pattern":                 `x=$(printf %30000s a); while :; do [[ $x == *' '*' '*' '*' '*b ]]; done`,
	"prefix":                  `x=$(printf %30000s a); while :; do y=${x##*b*b*b}; done`,
	"arithmetic":              `while ((1)); do ((x=9**9**9**9)); done`,
	"seq":                     `seq 1 999999999999 > /dev/null`,
	"xargs":                   `while :; do yes | head -n 9999 | xargs -n1 echo > /dev/null; done`,
	"grep":                    `while :; do printf %50000s a | grep -E '(a*)*(a*)*(a*)*b'; done`,
	"regular expression":      `while :; do [[ $(printf %9000s a) =~ (((((x{100}){9}) *)*)*)*b ]]; done`,
	"sed":                     `while :; do printf %50000s a | sed -E 's/(.*)(.*)(.*)x/\1/'; done > /dev/null`,
	"nested quotes":           `x='"$(echo '; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do x=$x$x; done; eval "$x"; while :; do :; done`,
	"nested parentheses":      `x='('; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do x=$x$x; done; eval "$x"; eval "echo \$(($x 1))"; while :; do :; done`,
	"links":                   `for i in {1..100}; do ln -s /tmp/l$((i+1)) /tmp/l$i; done; cat /tmp/l1; ln -s . /tmp/dot; while :; do cat /tmp/dot/dot/dot/dot/dot/dot/dot/dot/dot/dot/dot/dot/dot/none 2>/dev/null; done`,
	"functions":               `for ((i=0;;i++)); do eval "f$i() { echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; }"; done`,
	"descriptors":             `for ((i=3;;i++)); do eval "exec $((i%60+3))</dev/zero"; done`,
}

type trap struct {
	dir    string
	before map[string]string
}

// setTrap makes a folder of the host with a secret, and remembers what it looks like.
func setTrap(t *testing.T) trap {
	t.Setenv("SECRET_OF_THE_HOST", marker)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("echo "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return trap{dir: dir, before: look(t, dir)}
}

func look(t *testing.T, dir string) map[string]string {
	seen := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		data := []byte{}
		if info.Mode().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		seen[path] = fmt.Sprint(info.Mode(), info.ModTime(), string(data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return seen
}

func newSession(t *testing.T, o Options) *Session {
	t.Helper()
	f, err := vfs.Open(vfs.Config{Clock: clock.RealClock{}, Hostname: "machine", Limits: vfs.Limits{Bytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	o.FS, o.Clock = f, clock.RealClock{}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	rootUser = User{Name: "root", Home: "/root"}
	someUser = User{Name: "gardener", UID: 1000, GID: 1000, Groups: []uint32{27}, Home: "/tmp"}
)

// noGoroutines waits until no more goroutines run than before.
func noGoroutines(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before there were %d:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

func TestEscapes(t *testing.T) {
	host := setTrap(t)
	for name, script := range escapes {
		for _, user := range []User{rootUser, someUser} {
			t.Run(name+"/"+user.Name, func(t *testing.T) {
				s := newSession(t, Options{User: user, Limits: Limits{Time: 5 * time.Second, Output: 1 << 20}})
				before := runtime.NumGoroutine()
				var out bytes.Buffer
				script := strings.NewReplacer("HOST/", host.dir+"/", "HOST;", host.dir+";", "HOST ", host.dir+" ", "HOST:", host.dir+":", "HOST\n", host.dir+"\n", "HOSTPID", fmt.Sprint(os.Getpid())).Replace(script)
				if _, err := s.Run(t.Context(), script, nil, &out, &out); err != nil {
					t.Fatalf("it was ended: %v; the output was %.500q", err, out.String())
				}
				if strings.Contains(out.String(), marker) {
					t.Errorf("the secret came out: %.2000q", out.String())
				}
				if after := look(t, host.dir); fmt.Sprint(after) != fmt.Sprint(host.before) {
					t.Errorf("the host changed from %v to %v", host.before, after)
				}
				noGoroutines(t, before)
			})
		}
	}
}

func TestBombs(t *testing.T) {
	for name, script := range bombs {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, Options{User: rootUser, Limits: Limits{Time: 100 * time.Millisecond, Output: 4 << 20, Memory: 32 << 20}})
			before := runtime.NumGoroutine()
			started := time.Now()
			var out bytes.Buffer
			status, err := s.Run(t.Context(), script, nil, &out, &out)
			var limit *LimitError
			if !errors.As(err, &limit) || status != statusKilled || limit.Limit == "an internal error" {
				t.Errorf("it ended with status %d and %v; the output was %.300q", status, err, out.String())
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if out.Len() > 5<<20 {
				t.Errorf("it wrote %d bytes", out.Len())
			}
			noGoroutines(t, before)
		})
	}
}

// TestContextEnds: a run ends at once with its context.
func TestContextEnds(t *testing.T) {
	for _, script := range []string{`while :; do :; done`, `sleep 1000`, `cat | cat`, `read x`, `wait & sleep 1000 | cat; true`} {
		s := newSession(t, Options{User: rootUser})
		ctx, cancel := context.WithCancel(t.Context())
		in, feed := newTestPipe()
		time.AfterFunc(50*time.Millisecond, cancel)
		started := time.Now()
		if _, err := s.Run(ctx, script, in, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v", script, err)
		}
		if took := time.Since(started); took > 3*time.Second {
			t.Errorf("%s took %v to end", script, took)
		}
		feed()
	}
}

// newTestPipe is an input that gives nothing until it is closed.
func newTestPipe() (blocked, func()) {
	c := make(chan struct{})
	return blocked{c}, func() { close(c) }
}

type blocked struct{ c chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.c
	return 0, fs.ErrClosed
}

// TestImports: nothing that reaches the host is imported. Only the journal of a disk may use package os.
func TestImports(t *testing.T) {
	allowed := []string{
		"bufio", "bytes", "cmp", "context", "encoding/base64", "encoding/binary", "encoding/gob", "encoding/hex", "errors", "fmt", "hash", "hash/crc32", "hash/fnv", "io", "io/fs", "maps", "math",
		"crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "crypto/rand", "math/rand/v2", "net/netip", "path", "regexp", "regexp/syntax", "runtime", "slices", "strconv", "strings", "sync", "sync/atomic", "time", "unicode", "unicode/utf8",
		"golang.org/x/term", "k8s.io/utils/clock", "mvdan.cc/sh/v3/syntax", "github.com/gardenlite/gardenlite/internal/machine/vfs",
		"syscall", // error numbers and flags, see below
	}
	only := map[string][]string{"journal.go": {"os", "path/filepath"}}
	for _, dir := range []string{".", "../vfs"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("no files", err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, imp := range tree.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				if !slices.Contains(allowed, path) && !slices.Contains(only[filepath.Base(file)], path) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range strings.FieldsFunc(string(data), func(c rune) bool { return !(c == '.' || c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') }) {
				if name, ok := strings.CutPrefix(word, "syscall."); ok && !strings.HasPrefix(name, "E") && !strings.HasPrefix(name, "O_") {
					t.Errorf("%s uses %s", file, word)
				}
			}
		}
	}
}
