package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The limits of termination messages are those of a kubelet, in bytes.
const (
	maxMessage        = 4 << 10
	maxMessageFromLog = 2 << 10
	// maxMessagesOfPod is shared by the containers of a Pod.
	maxMessagesOfPod = 12 << 10
	// maxMessageLines is how many lines are taken from a log.
	maxMessageLines = 80
)

// messageFile is the file in the container's folder that is mounted at the terminationMessagePath.
const messageFile = "termination-message"

// createMessageFile creates an empty file for the message of the next run.
func (c *container) createMessageFile() error {
	path := filepath.Join(c.homeDir(), messageFile)
	err := os.RemoveAll(path)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("making the file for the termination message: %w", err)
	}
	return nil
}

// terminationMessage returns the message that a run of the container has left, or the end of its log if the run has
// failed and the Pod says so.
func (c *container) terminationMessage(attempt, code int32) string {
	message, err := c.readMessageFile()
	fromLog := c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError && code != 0
	switch {
	case err != nil:
		message = []byte("reading the termination message: " + err.Error())
	case len(message) == 0 && fromLog:
		message = c.endOfLog(attempt)
	}
	return string(c.limitMessage(message))
}

func (c *container) limitMessage(message []byte) []byte {
	return message[:min(len(message), maxMessagesOfPod/len(c.pod.containers()))]
}

// readMessageFile reads the end of the message file. The process may have replaced it: what is no regular file, or
// leads out of the container's folder, is not read.
func (c *container) readMessageFile() ([]byte, error) {
	home, err := os.OpenRoot(c.homeDir())
	if err != nil {
		return nil, err
	}
	defer home.Close()
	file, err := home.OpenFile(messageFile, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-maxMessage), maxMessage))
}

func (c *container) endOfLog(attempt int32) []byte {
	var lines bytes.Buffer
	options := &corev1.PodLogOptions{TailLines: ptr.To[int64](maxMessageLines)}
	if err := c.copyLog(context.Background(), c.logPath(attempt), options, &lines); err != nil {
		return []byte("reading the termination message: " + err.Error())
	}
	return lines.Bytes()[max(0, lines.Len()-maxMessageFromLog):]
}
