//go:build !linux

package process

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownGroup makes a process the first of a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// listProcesses returns all processes of this machine that have not ended, as ps knows them.
func listProcesses() ([]processInfo, error) {
	all, err := ps("-ax")
	return slices.DeleteFunc(all, func(p processInfo) bool { return p.ended }), err
}

func ps(which ...string) ([]processInfo, error) {
	out, err := exec.Command("/bin/ps", append(which, "-o", "pid=,pgid=,rss=,stat=,time=,lstart=")...).Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []processInfo
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		pid, _ := strconv.Atoi(fields[0])
		group, _ := strconv.Atoi(fields[1])
		kilobytes, _ := strconv.ParseInt(fields[2], 10, 64)
		all = append(all, processInfo{
			pid: pid, group: group, started: strings.Join(fields[5:], " "), ended: strings.HasPrefix(fields[3], "Z"),
			memory: kilobytes << 10, cpu: cpuTime(fields[4]),
		})
	}
	return all, nil
}

// cpuTime reads a time as ps writes it: [hours:]minutes:seconds.
func cpuTime(text string) time.Duration {
	var seconds float64
	for _, part := range strings.Split(text, ":") {
		number, _ := strconv.ParseFloat(part, 64)
		seconds = 60*seconds + number
	}
	return time.Duration(seconds * float64(time.Second))
}

// startTime is when a process was started, in a form of its own.
func startTime(pid int) (string, error) {
	all, err := ps("-p", strconv.Itoa(pid))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("process %d has ended", pid)
	}
	if err != nil {
		return "", err
	}
	return all[0].started, nil
}

// homeOf is not known here.
func homeOf(int) string { return "" }

// listens says whether one of some processes listens on a TCP port, as lsof knows it.
func listens(pids []int, port int) bool {
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	out, err := exec.Command("/usr/sbin/lsof", "-a", "-t", "-p", strings.Join(list, ","), "-iTCP:"+strconv.Itoa(port), "-sTCP:LISTEN").Output()
	return err == nil && len(out) > 0
}
