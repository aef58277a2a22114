package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// Exit codes.
const (
	exitFailed     = 1
	exitUsage      = 2
	exitNotRunning = 3
	// exitInterrupted is what shells expect of a process that Ctrl-C ended.
	exitInterrupted = 130
)

// exitError makes the process exit with the given code and, if err is nil, without a message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// globals are the flags that every command has.
type globals struct {
	streams
	name, dataDir, logFormat string
	noColor, verbose         bool
}

// dir returns the state directory of the landscape that the flags choose.
func (g *globals) dir() (string, error) {
	cfg := landscape.Config{Name: g.name, Dir: g.dataDir}
	if err := cfg.Complete(); err != nil {
		return "", err
	}
	return cfg.Dir, nil
}

// landscape returns the flags that choose another landscape.
func (g *globals) landscape(l control.Landscape) *globals {
	other := *g
	other.name, other.dataDir = l.Name, l.Dir
	return &other
}

// connect returns a client for the running landscape.
func (g *globals) connect() (*control.Client, string, error) {
	dir, err := g.dir()
	if err != nil {
		return nil, "", err
	}
	client, err := control.Connect(dir)
	if errors.Is(err, statedir.ErrNotRunning) {
		return nil, dir, g.notRunning()
	}
	return client, dir, err
}

func (g *globals) notRunning() error {
	return &exitError{exitNotRunning, fmt.Errorf("landscape %q is not running: start it with \"gardenlite up%s\"", g.name, g.nameFlag())}
}

// gardenKubeconfig returns the path of the administrator's kubeconfig for the garden, which exists once the garden
// has been ready.
func (g *globals) gardenKubeconfig() (string, error) {
	dir, err := g.dir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "kubeconfig")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return file, nil // the caller reports other errors when it reads the file
	}
	if _, _, err := g.connect(); err != nil {
		return "", err
	}
	return "", g.starting()
}

// readKubeconfig reads the landscape's own context in its kubeconfig of the garden or, with a name, of a seed. If KUBECONFIG is
// this file, users and other programs add contexts to it, and make them the current one.
func readKubeconfig(file, seed string) (*clientcmdapi.Config, error) {
	run, err := statedir.ReadRun(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.LoadFromFile(file)
	if err == nil {
		config.CurrentContext = landscape.ContextName(run.Name)
		if seed != "" {
			config.CurrentContext += "-" + statedir.SeedPrefix + seed
		}
		err = clientcmdapi.MinifyConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the landscape's kubeconfig: %w; start the landscape again, and it is written anew", err)
	}
	return config, nil
}

func (g *globals) starting() error {
	return &exitError{exitNotRunning,
		fmt.Errorf("landscape %q is still starting: wait with \"gardenlite status --wait%s\"", g.name, g.nameFlag())}
}

// nameFlag returns the flags that choose the same landscape in another command.
func (g *globals) nameFlag() string {
	flag := ""
	if g.name != landscape.DefaultName {
		flag += " --name " + g.name
	}
	if g.dataDir != "" {
		flag += " --data-dir " + g.dataDir
	}
	return flag
}

// Main runs the command line and returns the exit code.
func Main() int {
	ctx, stop := interruptible(context.Background())
	defer stop()
	return run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
}

// isCobraUsageError reports whether cobra refused an unknown command, or flags that exclude or require one another.
// Its errors have no type.
func isCobraUsageError(err error) bool {
	return slices.ContainsFunc(
		[]string{"if any flags in the group [", "at least one of the flags in the group [", "required flag(s) ", "unknown command "},
		func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) })
}

// checkedWriter keeps the first error of its writes, because most commands ignore the errors of printing.
type checkedWriter struct {
	io.Writer
	err error
	// colour says that tables have colours.
	colour bool
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// explainFullDisk prefixes an error with "the disk is full" if the system or an API server reports that.
func explainFullDisk(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "the disk is full: "), strings.Contains(text, "is full: make room"): // these say what to do
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		strings.Contains(text, "disk is full"), strings.Contains(text, syscall.ENOSPC.Error()):
		return fmt.Errorf("the disk is full: make room and try again: %w", err)
	}
	return err
}

func run(ctx context.Context, args []string, s streams) int {
	out := &checkedWriter{Writer: s.out}
	s.out = out
	root := newRoot(s)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.err
	}
	if err == nil {
		return 0
	}
	var exit *exitError
	var wrong *usage.Error
	switch {
	case errors.As(err, &exit):
		if exit.err != nil {
			printf(s.err, "Error: %s\n", plainError(explainFullDisk(exit.err)))
			if exit.code == exitUsage {
				printf(s.err, "See \"%s --help\".\n", command.CommandPath())
			}
		}
		return exit.code
	case errors.As(err, &wrong), isCobraUsageError(err):
		printf(s.err, "Error: %s\nSee \"%s --help\".\n", plainError(err), command.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		printLine(s.err, "Interrupted.")
		return exitInterrupted
	}
	printf(s.err, "Error: %s\n", plainError(explainFullDisk(err)))
	return exitFailed
}

// interruptible returns a context that the first Ctrl-C or SIGTERM cancels. A second one ends the process at once.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

func newRoot(s streams) *cobra.Command {
	g := &globals{streams: s}
	root := &cobra.Command{
		Use:   "gardenlite",
		Short: "A whole Gardener landscape in one process",
		Long: `gardenlite is a whole Gardener landscape in one process: without Docker, without a cluster, without a cloud.

  gardenlite up                          starts it
  export KUBECONFIG=$(gardenlite kubeconfig --path)
  kubectl get cloudprofiles,projects     uses it
  gardenlite down                        stops it; its data stays`,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if g.name == "" { // as of a variable that is not set
			return usage.Errorf("--name is empty")
		}
		if out, ok := g.out.(*checkedWriter); ok {
			out.colour = g.hasColours(out.Writer)
		}
		return nil
	}
	root.SetVersionTemplate("gardenlite {{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usage.Error{Err: explainFlag(err)} })
	flags := root.PersistentFlags()
	flags.StringVar(&g.name, "name", landscape.DefaultName, "name of the landscape; several can run side by side on different ports")
	flags.StringVar(&g.dataDir, "data-dir", "",
		"directory of the landscape's data (default $XDG_STATE_HOME/gardenlite/NAME, else ~/.local/state/gardenlite/NAME)")
	flags.BoolVar(&g.noColor, "no-color", false, "print without colours (also with NO_COLOR set)")
	flags.BoolVarP(&g.verbose, "verbose", "v", false, "write the log to standard error as well")
	flags.StringVar(&g.logFormat, "log-format", "text", "format of the log: text or json")
	_ = root.MarkPersistentFlagDirname("data-dir")
	_ = root.RegisterFlagCompletionFunc("name", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return statedir.Names(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(newUp(g), newDown(g), newStatus(g), newList(g), newReset(g), newDelete(g), newKubeconfig(g),
		newShoot(g), newSSH(g),
		newSSHHelper(g), newRotate(g), newToken(g), newImage(g), newExtension(g), newExec(g), newReaper(), newVersion(g),
		newAccess(g), newGraph(g), newLogs(g), newProject(g), newSample(g), newMan(g), newAdmissionController(g),
		newGardenlet(g), newGardenletConfig(g), newStack(g), newSeed(g), newClock(g), newSnapshot(g))
	setDefaults(root)
	return root
}

// setDefaults sets the defaults of a command and all below it: they accept no arguments, wrong arguments are a usage
// error, as wrong flags are, and a command that only has other commands prints its help.
func setDefaults(command *cobra.Command) {
	check := command.Args
	if check == nil {
		check = noArgs
	}
	command.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usage.Error{Err: err}
		}
		return nil
	}
	if command.RunE == nil {
		command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, below := range command.Commands() {
		setDefaults(below)
	}
}

// suggestionDistance is how many letters may be wrong in a command that is recognized.
const suggestionDistance = 2

// noArgs refuses arguments, and names the commands that the first one may mean.
func noArgs(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	cmd.SuggestionsMinimumDistance = suggestionDistance
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		return fmt.Errorf("%w: did you mean \"%s\"?", err, strings.Join(meant, "\" or \""))
	}
	return err
}
