package process

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// ownGroup makes a process the leader of its own process group, and lets the kernel kill it when gardenlite ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// listProcesses returns all processes of this machine that have not ended.
func listProcesses() ([]processInfo, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []processInfo
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, err := readProcess(pid); err == nil && !p.ended { // a process that has ended has no file
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// clockTick is the unit of CPU times in /proc.
const clockTick = time.Second / 100

// readProcess reads /proc/PID/stat, see proc(5).
func readProcess(pid int) (processInfo, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processInfo{}, err
	}
	// The name is in parentheses, and may contain parentheses.
	_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 22 {
		return processInfo{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	number := func(field int) int64 { // as numbered in proc(5)
		n, _ := strconv.ParseInt(fields[field-3], 10, 64)
		return n
	}
	return processInfo{
		pid: pid, group: int(number(5)), started: fields[22-3],
		ended: fields[0] == "Z", memory: number(24) * int64(os.Getpagesize()),
		// User and system time of the process, and of its children that have ended.
		cpu: time.Duration(number(14)+number(15)+number(16)+number(17)) * clockTick,
	}, nil
}

// startTime returns when a process was started, in a platform-specific format.
func startTime(pid int) (string, error) {
	p, err := readProcess(pid)
	return p.started, err
}

// homeOf returns HOME of a process.
func homeOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for _, variable := range strings.Split(string(data), "\x00") {
		if home, ok := strings.CutPrefix(variable, "HOME="); ok {
			return home
		}
	}
	return ""
}

// listens reports whether one of the processes listens on a TCP port.
func listens(pids []int, port int) bool {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return false
	}
	sockets := map[string]bool{}
	for _, read := range []func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6} {
		lines, err := read()
		if err != nil {
			continue
		}
		for _, line := range lines {
			if line.St == tcpListen && line.LocalPort == uint64(port) {
				sockets[fmt.Sprintf("socket:[%d]", line.Inode)] = true
			}
		}
	}
	if len(sockets) == 0 {
		return false
	}
	for _, pid := range pids {
		process, err := fs.Proc(pid)
		if err != nil {
			continue
		}
		targets, err := process.FileDescriptorTargets()
		if err == nil && slices.ContainsFunc(targets, func(target string) bool { return sockets[target] }) {
			return true
		}
	}
	return false
}

// tcpListen is the state of a socket that listens, in /proc/net/tcp.
const tcpListen = 10
