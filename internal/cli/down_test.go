package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestResetEndsProcesses checks that a reset ends what a killed landscape has left behind.
func TestResetEndsProcesses(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, statedir.ProcessesFolder)
	home := filepath.Join(folder, "pods", "x")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(filepath.Join(folder, "pids"), 0o700),
		os.WriteFile(filepath.Join(dir, statedir.LockFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	// The program has ended with gardenlite, and what it has started has not.
	program := exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
	program.Env, program.SysProcAttr = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, &syscall.SysProcAttr{Setpgid: true}
	out, err := program.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	if err := os.WriteFile(filepath.Join(folder, "pids", strconv.Itoa(program.Process.Pid)), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reset(&globals{name: "x", dataDir: dir, streams: streams{out: &bytes.Buffer{}}}, true); err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(stat), " Z ") {
		t.Errorf("it still runs: %s", stat)
	}
}
