package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell/shelltest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// bootEscapes is user data that tries to reach the host. The files that it creates are on the machine's own disk, or
// nowhere.
var bootEscapes = map[string]string{
	"a file beyond the root": "#cloud-config\nwrite_files:\n- path: /../../../../../../..HOST/new\n  content: x\n" +
		"- path: /tmp/../..HOST/secret\n  append: true\n  content: x\n",
	"a file of the host":    "#cloud-config\nwrite_files:\n- path: HOST/new\n  content: x\n- path: HOST/secret\n  content: x\n",
	"a path with a command": "#cloud-config\nwrite_files:\n- path: \"/tmp/x'; cat HOST/secret; touch HOST/new; '\"\n  content: x\n",
	"an owner with a command": "#cloud-config\nwrite_files:\n- path: /tmp/x\n  content: \"$(cat HOST/secret)\"\n" +
		"  owner: \"root; cat HOST/secret\"\n  permissions: \"0644; cat HOST/secret\"\n",
	"a user with a command": "#cloud-config\nusers:\n- name: \"x; cat HOST/secret\"\n- name: ../../HOST/new\n" +
		"  ssh_authorized_keys: [\"$(cat HOST/secret)\"]\n- name: y\n  shell: HOST/secret\n  homedir: HOST/new\n",
	"commands": "#cloud-config\nbootcmd:\n- cat HOST/secret > /tmp/out\n- [cp, HOST/secret, /tmp/out2]\n" +
		"runcmd:\n- [sh, -c, \"cat HOST/secret; env\"]\n- touch HOST/new\n",
	"files that are included": "#include\nfile://HOST/secret\n",
	"a key that includes": "#cloud-config\nbootcmd: !include HOST/secret\nmerge_how: x\nwrite_files:\n" +
		"- path: /tmp/x\n  source: {uri: \"file://HOST/secret\"}\n",
	"an interpreter": "#!HOST/secret\n",
	"a script": "#!/bin/bash\ncat HOST/secret; . HOST/secret; cat /proc/self/environ; env > /root/env; " +
		"ln -s HOST/ /etc/systemd/system/multi-user.target.wants\n",
	"a disk that is not broken": "#!/bin/bash\nrm -rf --no-preserve-root /*; mkdir -p /etc/systemd; ln -s HOST/ " +
		"/etc/systemd/system; ln -s HOST/ /etc/passwd; ln -s HOST/secret /var/log/cloud-init-output.log\n",
}

// unitEscapes are unit files that try to reach the host.
var unitEscapes = map[string]string{
	"program of the host":  "[Service]\nType=oneshot\nExecStart=HOST/secret\n",
	"program of the image": "[Service]\nType=oneshot\nExecStartPre=-/usr/bin/env\nExecStart=/bin/cat HOST/secret /proc/self/environ\n",
	"paths with dots":      "[Service]\nType=oneshot\nExecStart=/opt/bin/../../../../..HOST/secret\n",
	"a shell": "[Service]\nType=oneshot\nExecStartPre=-+/bin/sh -c 'cat HOST/secret'\n" +
		"ExecStart=!/bin/bash -c \". HOST/secret; echo x > HOST/new; env\"\n",
	"files of variables": "[Service]\nType=oneshot\nEnvironmentFile=HOST/secret\nEnvironmentFile=-/proc/self/environ\n" +
		"Environment=LD_PRELOAD=HOST/secret BASH_ENV=HOST/secret ENV=HOST/secret\nPassEnvironment=SECRET_OF_OUTSIDE\n" +
		"ExecStart=/bin/bash -c 'env; echo $$SECRET_OF_OUTSIDE'\nExecStart=/bin/echo ${SECRET_OF_OUTSIDE} $echo\n",
	"folders of the host": "[Service]\nType=oneshot\nWorkingDirectory=HOST/\nRootDirectory=HOST/\nBindPaths=HOST/:/mnt\n" +
		"RootImage=HOST/secret\nExecStart=/bin/cat secret /mnt/secret\n",
	"output to the host": "[Service]\nType=oneshot\nStandardOutput=file:HOST/new\nStandardInput=file:HOST/secret\n" +
		"StandardError=append:HOST/secret\nLogsDirectory=..HOST/\nExecStart=/bin/cat\n",
	"user of the host": "[Service]\nType=oneshot\nUser=../../HOST/\nDynamicUser=yes\nExecStart=/bin/cat HOST/secret\n",
	"specifiers": "[Unit]\nDescription=%h %E\n[Service]\nType=oneshot\nExecStart=/bin/echo %h %E %S %t %V %m %b %v %d %Y%%n\n" +
		"LoadCredential=x:HOST/secret\nExecStart=/bin/cat /run/credentials/x.service/x\n",
	"a socket": "[Socket]\nListenStream=HOSTPORT\n[Service]\nType=oneshot\n" +
		"ExecStart=/bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/HOSTPORT; cat <&3'\n",
}

// TestEscapesWhileBooting verifies that neither user data nor units reach the host.
func TestEscapesWhileBooting(t *testing.T) {
	trap := shelltest.New(t)
	for _, name := range slices.Sorted(maps.Keys(bootEscapes)) {
		t.Run("user data/"+name, func(t *testing.T) {
			r := boot(t, Config{UserData: []byte(trap.Script(bootEscapes[name]))})
			log, _ := r.FS().ReadFile(cloudInitLog) // it may be a link to nowhere
			trap.Check(t, fmt.Sprint(string(log), r.CloudInit(), r.Units().Journal("", 0)))
			r.stop()
			trap.CheckFolder(t, r.cfg.Dir)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(unitEscapes)) {
		t.Run("unit/"+name, func(t *testing.T) {
			r := boot(t, Config{})
			r.unit(t, "x.service", trap.Script(unitEscapes[name]))
			err := r.Units().Start(t.Context(), "x")
			trap.Check(t, fmt.Sprint(err, r.status("x"), r.Units().Journal("", 0)))
			r.stop()
			trap.CheckFolder(t, r.cfg.Dir)
		})
	}
}

// TestUnitsAreNoLoops verifies that a unit without a start limit waits before each restart, and that a unit that was
// ended by a limit is not started again.
func TestUnitsAreNoLoops(t *testing.T) {
	p := &runs{}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(ends)}})
	r.unit(t, "p.service", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/opt/bin/p\nRestart=always\nRestartSec=0\n")
	if err := r.Units().Start(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		p.wait(t)
		testutil.EventuallyTrue(t, "auto-restart", func() bool { return strings.Contains(r.status("p"), subAutoRestart) && r.clock.HasWaiters() })
		p.none(t, "before any time has passed")
		r.clock.Step(minRestartDelay)
	}
	r.unit(t, "loop.service", "[Unit]\nStartLimitIntervalSec=0\n[Service]\n"+
		"ExecStart=/bin/bash -c 'x=aaaaaaaa; while :; do x=$$x$$x; done'\nRestart=always\nRestartSec=1\n")
	if err := r.Units().Start(t.Context(), "loop"); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "it fails", func() bool { return r.status("loop") == "loaded failed failed exit-code" })
	r.clock.Step(time.Hour)
	if journal := r.journal("loop"); strings.Count(journal, "is used up") == 0 ||
		r.status("loop") != "loaded failed failed exit-code" {
		t.Errorf("it is %s; journal:\n%s", r.status("loop"), journal)
	}
}

// TestMemoryOfMachine verifies that many units, each of which stays below its own limit, cannot exceed the machine's
// limit.
func TestMemoryOfMachine(t *testing.T) {
	r := boot(t, Config{})
	for i := range 12 { // of 40 MiB
		name := fmt.Sprintf("m%d.service", i)
		r.unit(t, name, "[Service]\nExecStart=/bin/bash -c 'x=$$(printf %%250000s); for i in {1..160}; do declare "+
			"\"v$$i=$$x\"; done; echo full; sleep infinity'\n")
		if err := r.Units().Start(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		testutil.EventuallyTrue(t, name, func() bool {
			journal := r.journal(name)
			return strings.Contains(journal, "full") || strings.Contains(journal, "limit of memory is used up")
		})
	}
	full, ended := 0, 0
	for i := range 12 {
		switch r.status(fmt.Sprintf("m%d.service", i)) {
		case "loaded active running ":
			full++
		case "loaded failed failed exit-code":
			ended++
		}
	}
	if full == 0 || ended == 0 || full*40 > MaxMemory>>20 || full+ended != 12 {
		t.Errorf("%d units of 40 MiB run, and %d were ended", full, ended)
	}
	for i := range 12 {
		if err := r.Units().Stop(t.Context(), fmt.Sprintf("m%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	r.unit(t, "after.service",
		"[Service]\nType=oneshot\nExecStart=/bin/bash -c 'x=$$(printf %%250000s); for i in {1..160}; do declare \"v$$i=$$x\"; done'\n")
	if err := r.Units().Start(t.Context(), "after"); err != nil {
		t.Errorf("what others gave back is not there: %v", err)
	}
}
