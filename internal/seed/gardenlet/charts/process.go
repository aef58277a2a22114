package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// maxTime and maxMemory (bytes) limit the rendering of a chart.
	maxTime   = 30 * time.Second
	maxMemory = 512 << 20
	// maxAnswer is the maximum size of the output. maxRendered bytes never become that many as JSON.
	maxAnswer = 8 * maxRendered
	// maxCrash is the maximum size of the error output that is kept after a crash.
	maxCrash = 4 << 10

	// maxProcesses is the number of charts that are rendered at the same time.
	maxProcesses = 2

	memoryInterval = 10 * time.Millisecond
	exitMemory     = 3
)

// processName is os.Args[0] of the process that renders a chart. Every program that imports this package can be that
// process, including the tests of users of pkg/testenv.
const processName = "gardenlite: render a chart"

func init() {
	if len(os.Args) == 1 && os.Args[0] == processName {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// InvalidError says what is wrong with a chart or its values. Rendering the chart again does not help.
type InvalidError struct{ Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Reason }

// answer is the output of the process.
type answer struct {
	Objects []map[string]any
	Invalid string
}

var processes = make(chan struct{}, maxProcesses)

// Render renders a chart in a separate process. The objects are in the order of the chart's files.
func Render(ctx context.Context, request Request) ([]*unstructured.Unstructured, error) {
	select {
	case processes <- struct{}{}:
		defer func() { <-processes }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return renderWithin(ctx, request, maxTime)
}

func renderWithin(ctx context.Context, request Request, limit time.Duration) ([]*unstructured.Unstructured, error) {
	input, err := json.Marshal(request)
	if err != nil {
		return nil, &InvalidError{fmt.Sprintf("encoding the values: %v", err)}
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program, which renders charts in a process of its own: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var output, crash limitedBuffer
	output.left, crash.left = maxAnswer, maxCrash
	process := exec.CommandContext(ctx, executable)
	process.Args, process.Env, process.Dir = []string{processName}, []string{}, os.TempDir()
	process.Stdin, process.Stdout, process.Stderr, process.WaitDelay = bytes.NewReader(input), &output, &crash, time.Second
	err = process.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &InvalidError{fmt.Sprintf("rendering it takes more than %s", limit)}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == exitMemory:
		return nil, &InvalidError{fmt.Sprintf("rendering it takes more than %d bytes of memory", maxMemory)}
	case errors.As(err, &exit):
		return nil, &InvalidError{fmt.Sprintf("rendering it crashes: %s: %s", exit, strings.SplitN(crash.kept.String(), "\n", 2)[0])}
	case err != nil:
		return nil, fmt.Errorf("rendering a chart in a process of its own: %w", err)
	}
	return decodeAnswer(output.kept.Bytes())
}

func decodeAnswer(output []byte) ([]*unstructured.Unstructured, error) {
	var a answer
	if err := utiljson.Unmarshal(output, &a); err != nil { // keeps integers as such
		return nil, &InvalidError{fmt.Sprintf("reading its objects: %v", err)}
	}
	if a.Invalid != "" {
		return nil, &InvalidError{a.Invalid}
	}
	objects := make([]*unstructured.Unstructured, 0, len(a.Objects))
	for _, object := range a.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects, nil
}

// serve renders the chart on the standard input. It enforces the limits itself, because its parent process may be gone.
func serve(in io.Reader, out io.Writer) int {
	time.AfterFunc(maxTime, func() { os.Exit(1) })
	go watchMemory()
	var request Request
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		return 1
	}
	var a answer
	objects, err := render(request)
	checkMemory()
	if err != nil {
		a.Invalid = err.Error()
	}
	for _, object := range objects {
		a.Objects = append(a.Objects, object.Object)
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return 1
	}
	return 0
}

func watchMemory() {
	for range time.Tick(memoryInterval) {
		checkMemory()
	}
}

// checkMemory exits if the process has ever taken too much memory: memory that it has given back counts as well.
func checkMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	if metrics.Read(sample); sample[0].Value.Uint64() > maxMemory {
		os.Exit(exitMemory)
	}
}

// limitedBuffer keeps the first bytes up to a limit, and drops the rest.
type limitedBuffer struct {
	kept bytes.Buffer // not embedded: io.Copy would call its ReadFrom, and not Write
	left int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	b.kept.Write(kept)
	return len(p), nil
}
