package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fullDisk is a standard output that cannot be written, because the disk is full.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// TestFullDisk: a command whose output does not fit fails, and says why.
func TestFullDisk(t *testing.T) {
	for _, line := range []string{"--version", "--help", "completion bash"} {
		var errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), streams{strings.NewReader(""), fullDisk{}, &errs}); code != exitFailed ||
			errs.String() != "Error: the disk is full: make room and try again: write /dev/stdout: no space left on device\n" {
			t.Errorf("%s: exit status %d, %s", line, code, &errs)
		}
	}
}

func TestExplainFullDisk(t *testing.T) {
	const again = "the disk is full: make room and try again: "
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("writing x: %w", syscall.ENOSPC), again + "writing x: no space left on device"},
		{fmt.Errorf("writing x: %w", syscall.EDQUOT), again + "writing x: disk quota exceeded"},
		{errors.New("creating Shoot: database or disk is full"), again + "creating Shoot: database or disk is full"},
		{errors.New("the disk is full: /x has 3 KiB left: make room"), "the disk is full: /x has 3 KiB left: make room"},
		{errors.New("the disk of /x is full: make room, or choose another place with --data-dir"),
			"the disk of /x is full: make room, or choose another place with --data-dir"},
		{errors.New("not found"), "not found"},
	} {
		if got := explainFullDisk(test.err).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
