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
	// maxTime and maxMemory (bytes) are what rendering a chart may take.
	maxTime   = 30 * time.Second
	maxMemory = 512 << 20
	// maxAnswer is more than maxRendered bytes ever become in JSON.
	maxAnswer = 8 * maxRendered
	// maxCrash is how much of a crash is read.
	maxCrash = 4 << 10

	// maxProcesses is how many charts are rendered at a time.
	maxProcesses = 2

	memoryInterval = 10 * time.Millisecond
	exitMemory     = 3
)

// processName is what this program is started as to render a chart. It holds for every program that this package is in,
// the tests of users of pkg/testenv among them.
const processName = "gardenlite: render a chart"

func init() {
	if len(os.Args) == 1 && os.Args[0] == processName {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// InvalidError says what is wrong with a chart or its values. Rendering them again does not help.
type InvalidError struct{ Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Reason }

// answer is what the process writes.
type answer struct {
	Objects []map[string]any
	Invalid string
}

var processes = make(chan struct{}, maxProcesses)

// Render renders a chart in a process of its own. The objects are in the order of the chart's files.
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
		return nil, &InvalidError{fmt.Sprintf("rendering it crashes: %s: %s", exit, strings.SplitN(crash.String(), "\n", 2)[0])}
	case err != nil:
		return nil, fmt.Errorf("rendering a chart in a process of its own: %w", err)
	}
	return decodeAnswer(output.Bytes())
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

// serve renders the chart on the standard input. It ends by itself at the limits: the program that started it may be gone.
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

// checkMemory ends the process if it has taken too much memory at any time: what it has given back counts as well.
func checkMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	if metrics.Read(sample); sample[0].Value.Uint64() > maxMemory {
		os.Exit(exitMemory)
	}
}

// limitedBuffer takes so many bytes and drops the rest.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	b.Buffer.Write(kept)
	return len(p), nil
}
