package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// The environment variables that exec sets for its command, besides KUBECONFIG.
const (
	envName       = "GARDENLITE_NAME"
	envDataDir    = "GARDENLITE_DATA_DIR"
	envAPIServer  = "GARDENLITE_API_SERVER"
	envExecutable = "GARDENLITE_BINARY"
)

func newExec(g *globals) *cobra.Command {
	config := landscape.Config{}
	var images []string
	var keep bool
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run a command against a landscape of its own that is gone afterwards",
		Long: `Start an ephemeral landscape (data in memory, a free port), run the command with it, and pass on its exit status.
Everything is gone afterwards, also when gardenlite or the command is killed. Any number can run side by side.

The command finds KUBECONFIG (administrator of the garden), GARDENLITE_API_SERVER, GARDENLITE_NAME,
GARDENLITE_DATA_DIR and GARDENLITE_BINARY in its environment. If the landscape does not start, its log is kept, and the
end of it is printed; with --keep also if the command fails.`,
		Example: `  gardenlite exec -- kubectl get cloudprofiles
  gardenlite exec --apply testdata -- go test ./e2e/...
  gardenlite exec --from landscape.tar.zst -- go test ./e2e/...
  gardenlite exec --keep --run-image registry.example.com/controller=./bin/controller -- ./test.sh`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"name", "data-dir"} {
				if cmd.Flags().Changed(flag) {
					return usage.Errorf("--%s chooses a landscape that stays: exec's has a name and a folder of its own", flag)
				}
			}
			completeBare(cmd, &config)
			err := completeFrom(cmd, &config)
			if err != nil {
				return err
			}
			if config.Images, err = parseImages(images); err != nil {
				return err
			}
			return runExec(cmd.Context(), g, config, args, keep)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.IntVar(&config.Seeds, "seeds", landscape.DefaultSeeds, "how many seeds to start (0: the garden alone)")
	f.StringVar(&config.Datastore, "datastore", "memory", "memory or sqlite (default with --from)")
	f.StringArrayVar(&config.Apply, "apply", nil,
		"directory or file with manifests to apply before the command runs; can be given several times")
	f.StringArrayVar(&images, "run-image", nil, "run containers of an image as a process, as with up")
	f.BoolVar(&keep, "keep", false, "keep the log if the command fails, and print the end of it")
	f.StringSliceVar(&config.Controllers, "controllers", []string{"*"}, "controllers to run, as with up")
	_ = cmd.RegisterFlagCompletionFunc("controllers", completeControllers)
	addGardenFlags(cmd, &config)
	addFromFlag(cmd, &config)
	f.BoolVar(&config.LoopbackRegistry, loopbackRegistryFlag, false, loopbackRegistryUsage)
	f.DurationVar(&config.ReadyTimeout, "ready-timeout", landscape.DefaultReadyTimeout, "how long the start may take")
	return cmd
}

func runExec(ctx context.Context, g *globals, config landscape.Config, args []string, keep bool) error {
	if config.Datastore != "memory" && config.Datastore != "sqlite" {
		return usage.Errorf("--datastore %q: exec's landscape is gone afterwards, so its data is in memory or sqlite", config.Datastore)
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return &exitError{127, fmt.Errorf("%s: command not found", args[0])} // as a shell says it
	}
	dir, err := os.MkdirTemp("", "gardenlite-exec-")
	if err != nil {
		return fmt.Errorf("making a directory for the landscape: %w", err)
	}
	reaper, err := startReaper(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer reaper.finish()

	config.Name, config.Dir, config.LogFormat, config.Verbose = filepath.Base(dir), dir, g.logFormat, g.verbose
	if config.Name = strings.ToLower(config.Name); len(config.Name) > 40 {
		config.Name = config.Name[:40]
	}
	l, err := landscape.Start(ctx, config)
	if err != nil {
		printKeptLog(g, dir)
		return fmt.Errorf("the landscape did not start: %w", err)
	}
	code, runErr := runCommand(g, reaper, program, args, l)
	if keep && (runErr != nil || code != 0) {
		printKeptLog(g, dir) // without what the end of the landscape logs
	}
	_, restore := interruptible(ctx)
	defer restore()
	if err := l.Stop(); err != nil && runErr == nil {
		printLine(g.err, "gardenlite: stopping the landscape:", err)
	}
	if runErr != nil {
		return runErr
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// printKeptLog keeps the log of a landscape that is about to be deleted, and prints the end of it.
func printKeptLog(g *globals, dir string) {
	kept := control.KeepLog(dir)
	if kept == "" {
		return // it did not begin to start
	}
	printf(g.err, "gardenlite: the log is kept in %s, the end of it:\n", kept)
	for line := range strings.Lines(control.EndOfLog(kept)) {
		printLine(g.err, strings.TrimSuffix(line, "\n"))
	}
}

// runCommand runs the command and returns its exit status. Signals are passed on, but for a Ctrl-C at the terminal, which
// reaches the command by itself.
func runCommand(g *globals, reaper *reaper, program string, args []string, l *landscape.Landscape) (int, error) {
	status := l.Status()
	executable, _ := os.Executable()
	cmd := exec.Command(program, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.in, g.out, g.err
	if out, ok := g.out.(*checkedWriter); ok {
		cmd.Stdout = out.Writer // a file, which may be a terminal
	}
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+status.Kubeconfig,
		envName+"="+status.Name, envDataDir+"="+status.Dir, envAPIServer+"="+status.URL, envExecutable+"="+executable)
	// The command decides what a signal ends, also a second one.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("running %s: %w", args[0], err)
	}
	reaper.watch(cmd.Process.Pid)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		done := l.Done()
		for {
			select {
			case received := <-signals:
				if received != os.Interrupt || !inForeground() {
					_ = cmd.Process.Signal(received)
				}
			case <-done:
				printLine(g.err, "gardenlite: the landscape ended under the command:", l.Err())
				_ = cmd.Process.Signal(syscall.SIGTERM)
				done = nil
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil // as a shell says it
		}
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("running %s: %w", args[0], err)
	}
	return 0, nil
}

// inForeground returns whether this process belongs to the foreground of a terminal, so that a Ctrl-C is sent to all of its
// process group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// reaper is a helper process that cleans up if exec itself is killed: it then sees the end of its standard input.
type reaper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	dir   string
}

func startReaper(dir string) (*reaper, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(executable, "exec-reaper", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the process that cleans up: %w", err)
	}
	return &reaper{cmd: cmd, stdin: stdin, dir: dir}, nil
}

// watch tells the reaper which process to end if exec is killed.
func (r *reaper) watch(pid int) { _, _ = io.WriteString(r.stdin, strconv.Itoa(pid)+"\n") }

// finish makes the reaper clean up and waits for it. The command has ended by now.
func (r *reaper) finish() {
	_, _ = io.WriteString(r.stdin, "0\n")
	_ = r.stdin.Close()
	_ = r.cmd.Wait()
	_ = fsutil.RemoveAll(r.dir)
}

func newReaper() *cobra.Command {
	return &cobra.Command{
		Use:    "exec-reaper DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return reap(cmd.InOrStdin(), args[0])
		},
	}
}

// reap reads process IDs, one per line, until the input ends. Then it ends the last of these processes and deletes
// the directory.
func reap(input io.Reader, dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), "gardenlite-exec-") {
		return usage.Errorf("not a directory of gardenlite exec")
	}
	data, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	pids := strings.Fields(string(data))
	if len(pids) > 0 {
		if pid, err := strconv.Atoi(pids[len(pids)-1]); err == nil && pid > 1 {
			endProcess(pid)
		}
	}
	return errors.Join(endLeftovers(dir), fsutil.RemoveSockets(dir), fsutil.RemoveAll(dir))
}

// endProcess sends SIGTERM to a process, and SIGKILL if it has not ended after three seconds.
func endProcess(pid int) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if process.Signal(sig) != nil {
			return
		}
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if process.Signal(syscall.Signal(0)) != nil {
				return
			}
		}
	}
}
