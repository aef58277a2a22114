package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/landscape/control"
)

// runDetached starts gardenlite again in the background and follows its start through a pipe.
func (u *upFlags) runDetached(ctx context.Context, g *globals) error {
	if client, err := control.Connect(u.config.Dir); err == nil && client != nil {
		return u.alreadyRunning(ctx, g)
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program to start it in the background: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe to the background: %w", err)
	}
	defer reader.Close()
	// The last value of a flag counts.
	args := append(slices.Clone(os.Args[1:]), "--detach=false", "--progress-fd=3", "--data-dir="+u.config.Dir)
	child := exec.Command(executable, args...)
	child.ExtraFiles = []*os.File{writer}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	_ = writer.Close()
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}

	progress := newProgress(g, 0)
	defer progress.close()
	progress.begin("Starting landscape " + u.config.Name)
	interrupted := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		var message progressMessage
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return fmt.Errorf("following the start in the background: %w", err)
		}
		switch {
		case message.Ready != 0:
			progress.ready(message.Ready)
			return u.printDetached(ctx, g)
		case message.Error != "":
			_ = child.Wait()
			progress.close()
			return errors.New(message.Error)
		case message.Event != nil:
			progress.event(*message.Event)
		}
	}
	err = child.Wait()
	progress.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil { // another process was faster, and the child found the landscape running
		return u.alreadyRunning(ctx, g)
	}
	return fmt.Errorf("the process in the background ended before the landscape was ready: %w; the log may say why: %s/gardenlite.log",
		err, u.config.Dir)
}

func (u *upFlags) printDetached(ctx context.Context, g *globals) error {
	client, err := control.Connect(u.config.Dir)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx, false)
	if err != nil {
		return err
	}
	printReady(g, *status)
	fmt.Fprintf(g.err, "It runs in the background (process %d); \"gardenlite down%s\" stops it.\n", status.PID, g.nameFlag())
	return nil
}
