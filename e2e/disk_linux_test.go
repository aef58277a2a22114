package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDiskFull runs a landscape on a disk that is too small at first, then has room, then is full, and has room again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no small disk can be made here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	dir := filepath.Join(disk, "landscape")
	if r := up(t, dir); r.Code != 1 || !strings.Contains(r.Stderr, "the disk is full") {
		t.Fatalf("on a full disk: exit status %d, %s", r.Code, r.Stderr)
	}

	must(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	up(t, dir).OK(t)
	defer func() { gardenlite(t, dir, "down").OK(t) }()
	kc := func(args ...string) result {
		return command(t, "", kubectlBinary, append([]string{"--kubeconfig", filepath.Join(dir, "kubeconfig")}, args...)...)
	}
	kc("create", "configmap", "before").OK(t)

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	big := filepath.Join(t.TempDir(), "big")
	must(t, os.WriteFile(big, []byte(strings.Repeat("x", 500_000)), 0o600))
	acknowledged := 0
	for ; acknowledged < 20; acknowledged++ {
		if r := kc("create", "configmap", fmt.Sprintf("full-%d", acknowledged), "--from-file", big); r.Code != 0 {
			if !strings.Contains(r.Stderr, "disk is full") {
				t.Errorf("a write that does not fit: %s", r.Stderr)
			}
			break
		}
	}
	if acknowledged == 20 {
		t.Error("10 MB fit on a full disk")
	}
	kc("get", "configmap", "before").OK(t)
	gardenlite(t, dir, "status").OK(t).Shows(t, "almost full")
	printsToFullDisk(t, dir)
	if r := up(t, filepath.Join(disk, "another")); r.Code != 1 || strings.Count(r.Stderr, "disk is full") != 1 {
		t.Errorf("another landscape: exit status %d, %s", r.Code, r.Stderr)
	}

	must(t, os.Remove(filler))
	kc("create", "configmap", "after").OK(t)
	for i := range acknowledged {
		kc("get", "configmap", fmt.Sprintf("full-%d", i)).OK(t)
	}
}

// printsToFullDisk: commands whose output does not fit fail, all with the same message.
func printsToFullDisk(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"--version"}, {"status"}, {"status", "-o", "json"}, {"kubeconfig"}, {"kubeconfig", "seed", "local"}, {"kubeconfig", "--path"},
		{"graph", "-o", "json"}, {"image", "list"}, {"completion", "bash"},
	} {
		r := command(t, "", "sh", append([]string{"-c", `exec "$0" "$@" >/dev/full`, binary, "--data-dir", dir}, args...)...)
		if r.Code != 1 || r.Stderr != "Error: the disk is full: make room and try again: write /dev/stdout: no space left on device\n" {
			t.Errorf("%v: exit status %d, %s", args, r.Code, r.Stderr)
		}
	}
}

// fill writes a file until nothing fits any more.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	must(t, err)
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}
