package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

const (
	logMegabytes = 20
	logBackups   = 3
)

// controllerLog makes controller-runtime log to klog. controller-runtime accepts a logger only once.
var controllerLog sync.Once

// LogConfig says where the log goes.
type LogConfig struct {
	// Dir is the state directory, with the log's file.
	Dir string
	// Out takes the log instead of the file, if it is set.
	Out io.Writer
	// Format is text or json.
	Format string
	// Verbose writes the log to standard error as well.
	Verbose bool
}

// ValidateLogFormat validates the value of --log-format.
func ValidateLogFormat(format string) error {
	if format != "" && format != "text" && format != "json" {
		return fmt.Errorf("--log-format %q: text or json", format)
	}
	return nil
}

// StartLogging sends the logs of everything in the process (Kubernetes' klog, kine's logrus, our own logr through klog)
// to one place. The process has one log, so with several landscapes in one process the last one started has it.
func StartLogging(cfg LogConfig) (io.Closer, error) {
	var out io.Writer = cfg.Out
	var closer io.Closer = io.NopCloser(nil)
	if out == nil {
		name := filepath.Join(cfg.Dir, statedir.LogFile)
		// lumberjack makes new files 0600, and keeps the mode of one that is there.
		file := &logFileWriter{file: &lumberjack.Logger{Filename: name, MaxSize: logMegabytes, MaxBackups: logBackups}}
		out, closer = file, file
		if err := crashInto(name, file); err != nil {
			return nil, err
		}
	}
	if cfg.Verbose {
		out = io.MultiWriter(out, os.Stderr)
	}
	var handler slog.Handler
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(out, nil)
	} else {
		handler = slog.NewTextHandler(out, nil)
	}
	handler = originHandler{Handler: handler}
	klog.SetLogger(logr.FromSlogHandler(handler))
	slog.SetDefault(slog.New(handler))
	controllerLog.Do(func() { ctrllog.SetLogger(klog.Background()) })

	klog.OsExit = quirks.UnlessShutdown(exitOnFatal(filepath.Join(cfg.Dir, statedir.LogFile)))
	logrus.SetOutput(io.Discard)
	logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{})
	logrus.AddHook(logrusHook{logger: slog.New(handler).With(loggerKey, "kine")})
	return closer, nil
}

// The keys of a line that say where it comes from.
const (
	loggerKey  = "logger"
	clusterKey = "cluster"
)

// originHandler adds to each record the component and the cluster that it comes from, unless it has them.
type originHandler struct {
	slog.Handler
	hasLogger, hasCluster bool
}

func (h originHandler) Handle(ctx context.Context, record slog.Record) error {
	origin := quirks.LogOriginOfGoroutine()
	record.Attrs(func(a slog.Attr) bool {
		h = h.noting(a)
		return true
	})
	if origin.Component != "" && !h.hasLogger {
		record.AddAttrs(slog.String(loggerKey, origin.Component))
	}
	if origin.Cluster != "" && !h.hasCluster {
		record.AddAttrs(slog.String(clusterKey, origin.Cluster))
	}
	return h.Handler.Handle(ctx, record)
}

func (h originHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h = h.noting(a)
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h originHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

func (h originHandler) noting(a slog.Attr) originHandler {
	h.hasLogger, h.hasCluster = h.hasLogger || a.Key == loggerKey, h.hasCluster || a.Key == clusterKey
	return h
}

// crashes is the log that has the output of a crash.
var crashes struct {
	mu  sync.Mutex
	log *logFileWriter
}

// crashInto makes the runtime write the output of a crash into a log as well: a process in the background has no
// terminal.
func crashInto(name string, log *logFileWriter) error {
	crashes.mu.Lock()
	defer crashes.mu.Unlock()
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer file.Close() // SetCrashOutput duplicates it
	if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("having crashes logged: %w", err)
	}
	crashes.log = log
	return nil
}

// endCrashes closes the file of a log for crashes, unless another log has them by now.
func endCrashes(log *logFileWriter) error {
	crashes.mu.Lock()
	defer crashes.mu.Unlock()
	if crashes.log != log {
		return nil
	}
	crashes.log = nil
	return debug.SetCrashOutput(nil, debug.CrashOptions{})
}

// logFileWriter drops what is logged after Close. A closed lumberjack file would be opened again for it, in a
// directory that may be gone.
type logFileWriter struct {
	mu   sync.Mutex
	file io.WriteCloser
}

func (w *logFileWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return len(data), nil
	}
	return w.file.Write(data)
}

func (w *logFileWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	file := w.file
	w.file = nil
	if file == nil {
		return nil
	}
	return errors.Join(endCrashes(w), file.Close())
}

// fatalLines is how many of the log's last lines are printed after a fatal error, because "gardenlite exec" deletes
// its folder with the log.
const fatalLines = 10

// exitOnFatal returns a replacement of klog's exit function, which Kubernetes' code calls when a part of an API
// server cannot go on. It prints the end of the log.
func exitOnFatal(logPath string) func(int) {
	return func(int) {
		fmt.Fprintf(os.Stderr, "Error: a part of the landscape has failed, and the process cannot go on without it. The "+
			"log is %s, its end:\n%s\n", logPath, lastLines(logPath))
		os.Exit(1)
	}
}

// KeepLog moves the log out of a state directory that is about to be deleted, and returns its path, or "" if there is none.
func KeepLog(dir string) string {
	kept := dir + ".log"
	if err := os.Rename(filepath.Join(dir, statedir.LogFile), kept); err != nil {
		return ""
	}
	return kept
}

// endLines is how many lines EndOfLog returns.
const endLines = 20

// quiet matches the lines of a log that report nothing wrong.
var quiet = regexp.MustCompile(`level=INFO|"level":"INFO"`)

// EndOfLog returns the last lines of a log that report something wrong, and its very last lines.
func EndOfLog(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	last := lines[max(0, len(lines)-endLines/2):]
	wrong := slices.DeleteFunc(lines[:len(lines)-len(last)], quiet.MatchString)
	return strings.Join(append(wrong[max(0, len(wrong)-endLines/2):], last...), "\n")
}

func lastLines(logPath string) string {
	data, err := os.ReadFile(logPath)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-fatalLines):], "\n")
}

// values matches the values of objects, Secrets among them, in kine's log of a failed request.
var values = regexp.MustCompile(`value:"(?:[^"\\]|\\.)*"?`)

// logrusHook passes kine's log on, without the values of objects.
type logrusHook struct{ logger *slog.Logger }

func (logrusHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel, logrus.InfoLevel}
}

func (h logrusHook) Fire(entry *logrus.Entry) error {
	level := slog.LevelInfo
	switch entry.Level {
	case logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel:
		level = slog.LevelError
	case logrus.WarnLevel:
		level = slog.LevelWarn
	}
	h.logger.Log(entry.Context, level, values.ReplaceAllString(entry.Message, "value:…"))
	return nil
}
