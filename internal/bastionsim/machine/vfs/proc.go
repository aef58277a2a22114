package vfs

import (
	"cmp"
	"fmt"
	"strings"
)

// KernelRelease is the release of the simulated kernel.
const KernelRelease = "6.12.0-gardenlite"

const (
	cpuinfo = "processor\t: 0\nvendor_id\t: Gardenlite\nmodel name\t: Simulated CPU\ncpu MHz\t\t: 2000.000\ncache size\t: 1024 KB\n\n" +
		"processor\t: 1\nvendor_id\t: Gardenlite\nmodel name\t: Simulated CPU\ncpu MHz\t\t: 2000.000\ncache size\t: 1024 KB\n"
	meminfo = "MemTotal:        4194304 kB\nMemFree:         3145728 kB\nMemAvailable:    3670016 kB\n" +
		"Buffers:           65536 kB\nCached:           524288 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
	mounts = "/dev/vda1 / ext4 rw,relatime 0 0\nproc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n" +
		"sysfs /sys sysfs ro,nosuid,nodev,noexec,relatime 0 0\ndevtmpfs /dev devtmpfs rw,nosuid 0 0\n"
	mountinfo = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n" +
		"23 22 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:2 - proc proc rw\n"
	filesystems = "nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\n\text4\n"
	netdev      = "Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n" +
		"    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n" +
		"  eth0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n"
	netroute = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	nettcp   = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	limits   = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max open files            1024                 1024                 files     \n"
)

func status(name string, pid int) string {
	return fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nPid:\t%d\nPPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nThreads:\t1\n", name, pid)
}

// procTexts are the synthetic files of /proc. Their content is invented, and the same for every user.
var procTexts = map[string]string{
	"cmdline": "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro\n", "cpuinfo": cpuinfo, "filesystems": filesystems,
	"loadavg": "0.00 0.00 0.00 1/1 1\n", "meminfo": meminfo, "stat": "cpu  0 0 0 0 0 0 0 0 0 0\n",
	"swaps":     "Filename\tType\tSize\tUsed\tPriority\n",
	"version":   "Linux version " + KernelRelease + " (gardenlite) #1 SMP simulated\n",
	"1/cmdline": "/sbin/init\x00", "1/comm": "systemd\n", "1/status": status("systemd", 1),
	"net/dev": netdev, "net/route": netroute, "net/tcp": nettcp,
	"self/cmdline": "bash\x00", "self/comm": "bash\n", "self/environ": "", "self/limits": limits,
	"self/mountinfo": mountinfo, "self/mounts": mounts, "self/status": status("bash", 2),
	"sys/kernel/osrelease": KernelRelease + "\n", "sys/kernel/ostype": "Linux\n", "sys/net/ipv4/ip_forward": "1\n",
	"sys/vm/overcommit_memory": "1\n",
	"uptime":                   "", "sys/kernel/hostname": "", // see proc
}

func (f *FS) proc(name string) []byte {
	switch name {
	case "uptime":
		up := f.clock.Since(f.booted).Seconds()
		return fmt.Appendf(nil, "%.2f %.2f\n", up, 2*up)
	case "sys/kernel/hostname":
		data, _ := f.ReadFile("/etc/hostname") // a user may have removed it
		return []byte(cmp.Or(strings.TrimSpace(string(data)), "localhost") + "\n")
	}
	return []byte(procTexts[name])
}
