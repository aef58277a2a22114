package process

import (
	"fmt"
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
func listProcesses() (all []processInfo, err error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		if p, err := readProcess(process.PID); err == nil && !p.zombie { // a process that has ended has no file
			all = append(all, p)
		}
	}
	return all, nil
}

// clockTick is the unit of CPU times in /proc.
const clockTick = time.Second / 100

// readProcess reads /proc/PID/stat, see proc(5).
func readProcess(pid int) (processInfo, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return processInfo{}, err
	}
	stat, err := process.Stat()
	if err != nil {
		return processInfo{}, err
	}
	return processInfo{
		pid: pid, group: stat.PGRP, started: strconv.FormatUint(stat.Starttime, 10),
		zombie: stat.State == "Z", memory: int64(stat.ResidentMemory()),
		// User and system time of the process, and of its children that have ended.
		cpu: time.Duration(int(stat.UTime+stat.STime)+stat.CUTime+stat.CSTime) * clockTick,
	}, nil
}

// startTime returns when a process was started, in a platform-specific format.
func startTime(pid int) (string, error) {
	p, err := readProcess(pid)
	return p.started, err
}

// processesIn returns the processes whose HOME or TMPDIR is a folder or lies in it. One that has ended has no environment.
func processesIn(dir string) (pids []int, err error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		environment, _ := process.Environ() // those of other users cannot be read
		if slices.ContainsFunc(environment, func(variable string) bool {
			name, value, _ := strings.Cut(variable, "=")
			return (name == "HOME" || name == "TMPDIR") && strings.HasPrefix(value+"/", dir+"/")
		}) {
			pids = append(pids, process.PID)
		}
	}
	return pids, nil
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
