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

// ownGroup makes a process the leader of its own process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// listProcesses returns all processes of this machine that have not ended, as ps knows them.
func listProcesses() ([]processInfo, error) {
	all, err := ps("-ax")
	return slices.DeleteFunc(all, func(p processInfo) bool { return p.zombie }), err
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
			pid: pid, group: group, started: strings.Join(fields[5:], " "), zombie: strings.HasPrefix(fields[3], "Z"),
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

// startTime returns when a process was started, in a platform-specific format.
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

// processesIn returns nothing, because the environment of other processes is not known on this platform.
func processesIn(string) ([]int, error) { return nil, nil }

// listens reports whether one of the processes listens on a TCP port, according to lsof.
func listens(pids []int, port int) bool {
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	out, err := exec.Command("/usr/sbin/lsof", "-a", "-t", "-p", strings.Join(list, ","), "-iTCP:"+strconv.Itoa(port), "-sTCP:LISTEN").Output()
	return err == nil && len(out) > 0
}
