package machine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine"
	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// safe is a buffer that background jobs may write to.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

const (
	// secret is what no attempt may print: the content of a host file, and of an environment variable.
	secret = "host-secret-5f2c"
	// patience is how long an attempt may take until its limit stops it; the limit on time is 2 s.
	patience = 6 * time.Second
)

// anyLimit means that the attempt must end by one of the limits, whichever comes first.
var anyLimit = errors.New("any limit")

// attempts are scripts that try to get out, or to exhaust the host. @HOST@ is a directory of the host with the file
// secret, which everybody may read. want is what the output must match; limit is what must have stopped it.
var attempts = []struct {
	name, script, want string
	limit              error
}{
	{"absolute path", `cat @HOST@/secret; echo done`, `No such file.*\ndone`, nil},
	{"relative path", `cd /; cat .@HOST@/secret`, `No such file`, nil},
	{"dots above the root", `cat ../../../../../../../../../@HOST@/secret`, `No such file`, nil},
	{"dots after cd", `cd /tmp; cat ../../..@HOST@/secret`, `No such file`, nil},
	{"cd to the host", `cd @HOST@ && ls; pwd`, `No such file(?s:.*)/home/gardener\n`, nil},
	{"pwd -P", `pwd -P`, `^/home/gardener\n$`, nil},
	{"host's passwd", `grep -c . /etc/passwd; cat /etc/passwd`, `gardener:x:`, nil},
	{"symbolic link to the host", `ln -s @HOST@/secret l; cat l; readlink -f l`, `No such file`, nil},
	{"symbolic link with dots", `ln -s ../../../../..@HOST@ d; ls d/; cat d/secret`, `No such file`, nil},
	{"symbolic link loop", `ln -s a b; ln -s b a; cat a`, `Too many levels`, nil},
	{"proc self environ", `cat /proc/self/environ /proc/1/environ`, `No such file(?s:.*)No such file`, nil},
	{"proc self root", `ls /proc/self/root@HOST@ /proc/1/root`, `cannot access`, nil},
	{"proc self fd", `ls /proc/self/fd; cat /dev/fd/3`, `cannot access`, nil},
	{"proc kcore and sysrq", `echo b > /proc/sysrq-trigger; sudo cat /proc/kcore`, `No such file`, nil},
	{"host devices", `cat /dev/mem /dev/sda /dev/vda`, `No such file`, nil},
	{"dev tcp", `exec 3<>/dev/tcp/127.0.0.1/443; cat <&3; echo > /dev/udp/127.0.0.1/53`, `No such file`, nil},
	{"redirect out", `echo broken > @HOST@/written; echo $?`, `No such file(?s:.*)1\n`, nil},
	{"redirect append", `echo broken >> @HOST@/secret`, `No such file`, nil},
	{"redirect in", `read x < @HOST@/secret; echo "got $x"`, `got \n`, nil},
	{"redirect read and write", `cat <> @HOST@/secret`, `No such file`, nil},
	{"redirect both", `echo broken &> @HOST@/written`, `No such file`, nil},
	{"redirect descriptors that do not exist", `echo a >&7; echo b 3>&9; echo c 4<&8 | cat; echo ok`, `bad file descriptor(?s:.*)ok`, nil},
	{"redirect with a variable descriptor", `exec {fd}<@HOST@/secret; cat <&$fd; echo ok`, `ok`, nil},
	{"redirect descriptors that hold nothing", `echo x 5>&1 6>&5 1>&6 | cat; cat 0<&- ; echo ok`, `x(?s:.*)ok`, nil},
	{"redirect to standard input of the host", `read -t 1 x; read -s y; echo "[$x$y]"`, `\[\]`, nil},
	{"here document that expands", "cat <<E\n$(cat @HOST@/secret) $GARDENLITE_SECRET $HOME\nE", `/home/gardener`, nil},
	{"test operators", `for o in e f d r w x s L; do test -$o @HOST@/secret && echo "test -$o leaks"; [[ -$o @HOST@/secret ]] && echo leaks; done; echo end`, `^end\n$`, nil},
	{"newer than a host file", `[ /etc/passwd -nt @HOST@/secret ] && echo absent; [[ /etc/passwd -ef /etc/passwd ]] && echo same`, `absent\nsame`, nil},
	{"terminal test", `test -t 0 && echo terminal; [[ -t 1 ]] && echo terminal; test -t 99999999999; echo no`, `^no\n$`, nil},
	{"glob", `echo @HOST@/* @HOST@/sec*`, `/\* @HOST@/sec\*\n$`, nil},
	{"glob with dots", `echo ../../../../*/gardener`, `/home/gardener`, nil},
	{"globstar", `shopt -s globstar; echo /**/secret`, `/\*\*/secret`, nil},
	{"glob explosion", `echo ` + strings.Repeat("/*/..", 12) + `/*`, ``, anyLimit},
	{"tilde of a host user", `echo ~bin ~nobody ~root; cat ~daemon/x`, `~bin /nonexistent /root`, nil},
	{"tilde from a variable", `HOME=@HOST@; cat ~/secret; cd; pwd`, `No such file(?s:.*)/home/gardener`, nil},
	{"source", `. @HOST@/secret; source @HOST@/secret; echo survived`, `survived`, nil},
	{"source by PATH", `PATH=@HOST@; source secret; secret`, `No such file`, nil},
	{"command substitution", `echo "[$(cat @HOST@/secret)][$(< @HOST@/secret)]"`, `\[\]\[\]`, nil},
	{"backquotes", "echo [`cat @HOST@/secret 2>/dev/null`]", `\[\]`, nil},
	{"process substitution", `cat <(echo x); diff <(cat @HOST@/secret) /dev/null; echo y`, `process substitution does not exist(?s:.*)y`, nil},
	{"exec a host program", `exec /bin/busybox id; echo not reached`, `No such file`, nil},
	{"exec through command and builtin", `command /usr/bin/python3 -c 1; builtin exec /sbin/init`, `No such file(?s:.*)No such file`, nil},
	{"a host program by PATH", `PATH=/usr/local/go/bin:$PATH; go version; git --version; perl -v`, `go: command not found`, nil},
	{"forged program", `printf '\x7fELF\x02\x01\x01' > x; chmod +x x; ./x`, `cannot execute binary`, nil},
	{"forged built-in program", `printf '\x7fELF:../../../bin/sh\n' > x; chmod +x x; ./x; printf '\x7fELF:sudo\n' > y; chmod 4755 y; ./y id -u`, `required file not found(?s:.*)not in the sudoers`, nil},
	{"interpreter line to the host", "printf '#!@HOST@/secret\\n' > x; chmod +x x; ./x; echo end", `No such file(?s:.*)end`, nil},
	{"interpreter line to itself", "printf '#!/home/gardener/x\\n' > x; chmod +x x; ./x", ``, anyLimit},
	{"environment of the host", `env; set; export; declare -p; printenv GARDENLITE_SECRET; echo "$GARDENLITE_SECRET"`, `HOME=/home/gardener`, nil},
	{"indirect environment", `x=GARDENLITE_SECRET; echo "[${!x}]" "${!GARDENLITE@}"`, `\[\]`, nil},
	{"process IDs of the host", `echo "$$ $PPID $BASHPID"`, `^1\d\d\d 1 1\d\d\d\n`, nil},
	{"kill", `kill -9 1; kill -9 $PPID; kill -9 -1; command kill 1; echo alive`, `alive`, nil},
	{"network", `curl http://127.0.0.1; wget http://169.254.169.254; ping -c1 127.0.0.1; nc 127.0.0.1 22; echo none`, `connection refused(?s:.*)none`, nil},
	{"privileges", `sudo cat /etc/shadow; cat /etc/shadow; chown root x; chmod 777 /etc/passwd; echo x >> /etc/sudoers; useradd evil; su root -c id`, `sudoers(?s:.*)Permission denied`, nil},
	{"sudoers of one's own", `mkdir -p /etc/sudoers.d; echo 'gardener ALL=(ALL) ALL' > /etc/sudoers.d/x; sudo -n id -u`, `not in the sudoers`, nil},
	{"umask, ulimit and trap", `umask 0; ulimit -n unlimited; trap 'cat @HOST@/secret' EXIT; exit 0`, `No such file`, nil},
	{"xtrace and options", `set -x; set -o nosuch; set -Z; shopt -p; shopt -q x; echo on`, `on`, nil},
	{"indices that would take all memory", `a[9223372036854775806]=x; a[1000000000]=y; b=([2000000000]=z); echo "${#a[@]} ${#b[@]}"`, `2 1`, nil},
	{"negative index", `a=(1 2); a[-5]=x; echo "[${a[-9]}]"`, `bad array subscript`, nil},
	{"arithmetic", `echo $((1/0)); echo $((9223372036854775807+1)) $((1<<70)) $((-9223372036854775808/-1)); echo $((2**-1))`, `division by 0(?s:.*)-9223372036854775808`, nil},
	{"arithmetic of variables that name each other", `a=b; b=a; echo $((a)); let a=b+a; echo ok`, `recursion level(?s:.*)ok`, nil},
	{"slices out of range", `x=abc; echo "${x:99}${x:1:99999999999}${x: -99}${x:0:-99}"; set -- 1; echo "${@:9:9}"`, `bc`, nil},
	{"format with a huge width", `printf '%999999999d' 1; printf '%*d' 2147483647 1; printf '%.99999999f' 1; echo ok`, `ok`, nil},
	{"format with a huge repetition", `printf '%4000d' {1..9000}`, ``, shell.ErrText},
	{"select", `select x in a b; do echo $x; done; echo over`, `over`, nil},
	{"coprocess and background readers", `coproc cat; cat & wait; echo over`, `over`, nil},
	{"fork bomb", `:(){ :|:& };:; wait`, ``, anyLimit},
	{"fork bomb in the foreground", `f() { f | f; }; f`, ``, anyLimit},
	{"many background jobs", `while true; do sleep 1000 & done`, ``, shell.ErrProcesses},
	{"jobs that stay behind", `(while true; do :; done) & sleep 1000 & echo left`, `left`, nil},
	{"endless loop", `while true; do true; done`, ``, anyLimit},
	{"endless loop without commands", `for ((;;)); do ((1)); done`, ``, anyLimit},
	{"endless until", `until false; do continue; done`, ``, anyLimit},
	{"endless output", `yes`, ``, shell.ErrOutput},
	{"endless output of errors", `while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; done`, ``, anyLimit},
	{"endless output to nowhere", `yes > /dev/null`, ``, shell.ErrTime},
	{"endless device", `cat /dev/zero`, ``, shell.ErrOutput},
	{"endless device to nowhere", `cat /dev/urandom > /dev/null`, ``, shell.ErrTime},
	{"endless substitution", `x=$(yes)`, ``, anyLimit},
	{"endless substitution of a device", `x=$(< /dev/zero)`, ``, anyLimit},
	{"endless line", `cat /dev/zero | while read -r l; do :; done`, ``, anyLimit},
	{"endless sort", `sort /dev/zero; tail /dev/zero; sed s/a/b/ /dev/zero; base64 -d /dev/zero; echo ended`, `ended`, nil},
	{"endless pipe", `yes | cat | cat | grep -c x`, ``, shell.ErrTime},
	{"endless sleep", `sleep infinity`, ``, shell.ErrTime},
	{"waiting for input that never comes", `cat | cat`, ``, nil},
	{"huge file", `yes > big; ls -l big`, `File too large|No space|ls`, nil},
	{"huge file by truncate", `truncate -s 1000G big; truncate -s 900m big; echo no`, `no`, nil},
	{"disk full of files", `for i in {1..300}; do for j in {1..60}; do : > f$i-$j || exit 3; done; done`, `No space left`, nil},
	{"disk full of bytes", `for i in {1..99}; do head -c 1000000 /dev/zero > f$i || break; done; df | tail -1`, `(File too large|No space)`, nil},
	{"removed files that are still written", `for i in {1..40}; do exec 3>x; rm x; head -c 900000 /dev/zero >&3; done; df | tail -1`, `No space`, nil},
	{"deep directories", `while mkdir d && cd d; do :; done; echo bottom`, `File name too long(?s:.*)bottom`, nil},
	{"long names", `x=$(printf 'a%.0s' {1..300}); : > $x; : > ` + strings.Repeat("a/", 3000), `File name too long`, nil},
	{"directory into itself", `mkdir a; mv a a/b; cp -r a a/c; rm -rf /; ls /; echo stands`, `stands`, nil},
	{"huge string by doubling", `x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`, ``, shell.ErrText},
	{"huge string by appending", `while :; do x+=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done`, ``, anyLimit},
	{"huge string by replacing", `x=$(printf 'a%.0s' {1..9000}); y=${x//a/$x}; y=${y//a/$y}`, ``, anyLimit},
	{"many variables", `i=0; while :; do eval "v$((i++))=$(printf 'a%.0s' {1..2000})"; done`, ``, anyLimit},
	{"huge array", `while :; do a+=(x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x); done`, ``, anyLimit},
	{"huge parameter list", `set -- {1..9000}; set -- "$@" "$@"; set -- "$@" "$@"; echo $#`, ``, shell.ErrFields},
	{"memory of nested calls", `f() { local v=$1$1; f "$v"; }; f aaaaaaaaaaaaaaaa`, ``, anyLimit},
	{"deep recursion of functions", `f() { f; }; f`, ``, shell.ErrDepth},
	{"deep recursion of two functions", `f() { g; }; g() { f; }; f`, ``, shell.ErrDepth},
	{"deep recursion of substitutions", `f() { echo $(f); }; f`, ``, shell.ErrDepth},
	{"deep recursion of eval", `x='eval "$x"'; eval "$x"`, ``, shell.ErrDepth},
	{"deep recursion of source", `echo '. ./s' > s; . ./s`, ``, shell.ErrDepth},
	{"deep recursion of scripts", `printf '#!/bin/bash\n$0\n' > s; chmod +x s; ./s`, ``, shell.ErrDepth},
	{"deep recursion of sh", `export c='sh -c "$c"'; sh -c "$c"`, ``, shell.ErrDepth},
	{"deep recursion of xargs and env", `printf 'env sh ./s' > s; sh s`, ``, shell.ErrDepth},
	{"deep recursion of traps", `trap 'false' ERR; f() { trap f EXIT; false; f; }; f`, ``, anyLimit},
	{"deeply nested syntax", strings.Repeat("(", 50000), ``, shell.ErrNesting},
	{"deeply nested substitutions", strings.Repeat("$(", 20000), ``, shell.ErrNesting},
	{"deeply nested arithmetic", "echo $((" + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "))", ``, shell.ErrNesting},
	{"deeply nested signs", "echo $((" + strings.Repeat("- ", 40000) + "1))", ``, shell.ErrNesting},
	{"deeply nested blocks", strings.Repeat("if ", 20000), ``, shell.ErrNesting},
	{"a long chain", strings.Repeat("true && ", 20000) + "true", ``, shell.ErrNesting},
	{"a long pipeline", strings.Repeat("cat | ", 150) + "cat", ``, anyLimit},
	{"deeply nested syntax through eval", `eval "$(printf '(%.0s' {1..9000})"; echo on`, ``, shell.ErrNesting},
	{"deeply nested test", `test $(printf '! %.0s' {1..9000}) x; echo $?`, `nested too deeply`, nil},
	{"a script that is too long", strings.Repeat("true\n", 80000), ``, shell.ErrScript},
	{"brace range", `echo {1..1000000000}`, ``, shell.ErrFields},
	{"brace range that overflows", `echo {-9223372036854775808..9223372036854775807..1}`, ``, shell.ErrFields},
	{"brace product", `echo {1..100}{1..100}{1..100}{1..100}{1..100}`, ``, shell.ErrFields},
	{"brace nesting", `echo {{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}`, ``, shell.ErrFields},
	{"regular expression bomb", `x=$(printf 'a%.0s' {1..9000}); [[ $x =~ (a*)*(a*)*(a*)*(a*)*b ]]; [[ $x =~ ((a{1,100}){1,100}){1,100} ]]; echo "$x" | grep -E '(a+)+(a+)+(a+)+$b'; echo ok`, `ok`, nil},
	{"pattern bomb", `x=$(printf 'a%.0s' {1..9000}); case $x in *a*a*a*a*a*a*a*a*a*a*a*b) ;; esac; y=${x##*a*a*a*a*b}; echo ok`, ``, nil},
	{"sed bomb", `x=$(printf 'a%.0s' {1..9000}); echo $x | sed "s/a/$(printf 'b%.0s' {1..900})/g" | sed 's/b/&&&&&&&&&&&&&&&&/g' | wc -c; echo ok`, `ok`, nil},
	{"odd input to commands", `tr; cut -f; head -n -9999999999999; tail -c -1; seq 1 0 5; seq 9223372036854775806 9223372036854775807; sort -k 99999; sed s; sed /; date +%; stat -c; find -name; sleep; mktemp XX; base64 -w -5 /etc/hosts; xargs -n; chmod +q x; sed 's/\(//' /etc/hosts; printf %; ls -; cut -c 5-1 /etc/hosts; tr a-z; wc -z; uniq -z; echo ok`, `ok`, nil},
	{"odd words of the shell", "echo ${x@Q} ${x@A} ${#x[@]} ${x[*]:0:1} ${!x*} $[1+1] ${x^^} $'\\x' $'\\u' \"${x[@]/a/b}\" ${x/#/y} ${x/%/y}; echo ok", `ok`, nil},
}

func newVictim(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.New(machine.Config{
		Hostname: "victim", Disk: vfs.Limits{Bytes: 8 << 20, FileSize: 1 << 20, Inodes: 2000},
		Session: shell.Limits{Time: 2 * time.Second, Output: 1 << 20, Memory: 16 << 20, Text: 512 << 10},
		UserData: []byte("#!/bin/bash\nuseradd -m gardener\n"),
	})
	if err == nil {
		err = m.Boot(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNothingGetsOutOfAMachine(t *testing.T) {
	t.Setenv("GARDENLITE_SECRET", secret)
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "secret"), []byte("echo "+secret+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) { attempt(t, host, a.script, a.want, a.limit) })
	}
	if entries, err := os.ReadDir(host); err != nil || len(entries) != 1 {
		t.Errorf("the host's directory has changed: %v %v", entries, err)
	}
	if data, _ := os.ReadFile(filepath.Join(host, "secret")); string(data) != "echo "+secret+"\n" {
		t.Errorf("the host's file has changed: %q", data)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left behind", runtime.NumGoroutine()-goroutines)
		}
	}
}

func attempt(t *testing.T, host, script, want string, limit error) {
	m := newVictim(t)
	out := &safe{}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	status, err := m.Run(context.Background(), "gardener", strings.ReplaceAll(script, "@HOST@", host), machine.IO{Stdout: out, Stderr: out})
	took, text := time.Since(start), out.String()
	if took > patience {
		t.Errorf("it took %s", took)
	}
	if strings.Contains(text, secret) {
		t.Errorf("it got out: %.300q", text)
	}
	switch {
	case limit == nil && err != nil && !errors.Is(err, shell.ErrTime) || limit == nil && want != "" && err != nil:
		t.Errorf("stopped by %v; output %.300q", err, text)
	case limit == anyLimit && err == nil:
		t.Errorf("no limit stopped it: status %d, output %.300q", status, text)
	case limit != nil && limit != anyLimit && !errors.Is(err, limit):
		t.Errorf("stopped by %v, not by %v; output %.300q", err, limit, text)
	case err != nil && strings.Contains(err.Error(), "defect"):
		t.Errorf("a defect: %v", err)
	}
	if want = strings.ReplaceAll(want, "@HOST@", regexp.QuoteMeta(host)); !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("output %.300q does not match %s", text, want)
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 512<<20 {
		t.Errorf("the heap has grown by %s MB", strconv.FormatInt(grown>>20, 10))
	}
}
