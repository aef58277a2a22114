package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/snapshot"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

func newSnapshot(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save the landscape, and go back to what was saved",
		Long: `Save the landscape as of one moment, also while it runs, and go back to what was saved, see docs/snapshots.md. A snapshot has
all private keys of the landscape: who can read it is its administrator.`,
		Example: `  gardenlite snapshot save before-upgrade
  gardenlite snapshot list
  gardenlite down && gardenlite snapshot restore before-upgrade && gardenlite up
  gardenlite snapshot export before-upgrade -o landscape.tar.zst
  gardenlite up --name demo --port 0 --from landscape.tar.zst`,
	}
	cmd.AddCommand(newSnapshotSave(g), newSnapshotList(g), newSnapshotRestore(g), newSnapshotExport(g), newSnapshotDelete(g))
	return cmd
}

// snapshotInfo is what the commands print of a snapshot.
type snapshotInfo struct {
	Name    string    `json:"name"`
	SavedAt time.Time `json:"savedAt"`
	Version string    `json:"version"`
	Size    uint64    `json:"size"`
	File    string    `json:"file"`
	// PausedMilliseconds is how long writes have waited while it was saved.
	PausedMilliseconds int64  `json:"pausedMilliseconds,omitempty"`
	Error              string `json:"error,omitempty"`
}

func newSnapshotSave(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "save NAME",
		Short: "Save the landscape",
		Long: `Save the landscape, which may be running, as of one moment. It goes on meanwhile: writes wait for some milliseconds.
Programs of this machine that run as containers go on, too: what they have in volumes is saved as it is soon afterwards.`,
		Example:           "  gardenlite snapshot save before-upgrade",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := g.dir()
			if err != nil {
				return err
			}
			begin := time.Now()
			saved, err := snapshot.Save(cmd.Context(), dir, args[0])
			if err != nil {
				return err
			}
			took := time.Since(begin)
			info := snapshotInfoOf(dir, args[0], &saved.Manifest)
			info.PausedMilliseconds = saved.Paused.Milliseconds()
			return printAs(g.out, output, info, func() {
				printf(g.out, "Landscape %q is saved as %q (%s, in %s; writes waited for %d ms).\n", g.name, info.Name, mebibytes(info.Size),
					took.Round(time.Millisecond), info.PausedMilliseconds)
			})
		},
	}
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func snapshotInfoOf(dir, name string, manifest *snapshot.Manifest) snapshotInfo {
	info := snapshotInfo{Name: name, SavedAt: manifest.SavedAt, Version: manifest.Version, File: snapshot.Path(dir, name)}
	if file, err := os.Stat(info.File); err == nil {
		info.Size = uint64(file.Size()) //nolint:gosec // not negative
	}
	return info
}

func newSnapshotList(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the snapshots of the landscape",
		Long:    "List the snapshots of the landscape, after checking that each is complete.",
		Example: "  gardenlite snapshot list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := g.dir()
			if err != nil {
				return err
			}
			all := []snapshotInfo{}
			for _, name := range snapshot.Names(dir) {
				manifest, err := snapshot.Read(snapshot.Path(dir, name))
				if manifest == nil {
					manifest = &snapshot.Manifest{}
				}
				info := snapshotInfoOf(dir, name, manifest)
				if err != nil {
					info.Error = err.Error()
				}
				all = append(all, info)
			}
			return printAs(g.out, output, all, func() {
				if len(all) == 0 {
					printf(g.err, "Landscape %q has no snapshots. \"gardenlite snapshot save NAME%s\" saves one.\n", g.name, g.nameFlag())
					return
				}
				var rows [][]string
				for _, info := range all {
					saved := ""
					if !info.SavedAt.IsZero() {
						saved = age(info.SavedAt) + " ago"
					}
					rows = append(rows, []string{info.Name, saved, mebibytes(info.Size), info.Version, info.Error})
				}
				table(g.out, "NAME | SAVED | SIZE | VERSION | ERROR", rows)
			})
		},
	}
	addOutputFlag(cmd, &output, "table", "json", "yaml")
	return cmd
}

func newSnapshotRestore(g *globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Go back to a snapshot",
		Long: `Replace a landscape that has been stopped by what was saved. What it has now is gone afterwards, but for its snapshots, its
log, its charts and its mapped images.`,
		Example:           "  gardenlite down && gardenlite snapshot restore before-upgrade && gardenlite up",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSnapshots(g),
		RunE: func(_ *cobra.Command, args []string) error {
			return restoreSnapshot(g, args[0], yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func restoreSnapshot(g *globals, name string, yes bool) error {
	dir, err := g.dir()
	if err != nil {
		return err
	}
	file, err := snapshot.Find(dir, name)
	if err != nil {
		return err
	}
	if err := statedir.CheckReset(dir); errors.Is(err, statedir.ErrLocked) {
		return fmt.Errorf("%w: stop it first with \"gardenlite down%s\"", err, g.nameFlag())
	} else if err != nil {
		return err
	}
	if !yes {
		if err := confirm(g, "snapshot restore", fmt.Sprintf("Replace landscape %q in %s by snapshot %q?", g.name, dir, name)); err != nil {
			return err
		}
	}
	held, err := statedir.Lock(dir)
	if err != nil {
		return err
	}
	defer held.Unlock() //nolint:errcheck // the process ends
	if err := endLeftovers(dir); err != nil {
		return err
	}
	if err := snapshot.Restore(dir, file); err != nil {
		return err
	}
	printf(g.out, "Landscape %q is as it was saved. \"gardenlite up%s\" starts it.\n", g.name, g.nameFlag())
	return nil
}

func newSnapshotExport(g *globals) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export NAME -o FILE",
		Short: "Copy a snapshot to a file",
		Long: `Copy a snapshot to a file that only you can read, for "gardenlite up --from" and "gardenlite exec --from" here or elsewhere. It
has all private keys of the landscape.`,
		Example:           "  gardenlite snapshot export before-upgrade -o landscape.tar.zst",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSnapshots(g),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := g.dir()
			if err != nil {
				return err
			}
			file, err := snapshot.Find(dir, args[0])
			if err != nil {
				return err
			}
			if _, err := snapshot.Read(file); err != nil {
				return err
			}
			if err := exportSnapshot(file, to); err != nil {
				return err
			}
			printf(g.out, "Snapshot %q is in %s.\n", args[0], to)
			return nil
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "file to write, which does not exist yet")
	_ = cmd.MarkFlagRequired("output")
	_ = cmd.MarkFlagFilename("output")
	return cmd
}

func exportSnapshot(from, to string) error {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: choose another file, or delete it first", to)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(copyFile(file, from), file.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

func copyFile(to io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

func newSnapshotDelete(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a snapshot",
		Long:              "Delete a snapshot.",
		Example:           "  gardenlite snapshot delete before-upgrade",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSnapshots(g),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := g.dir()
			if err != nil {
				return err
			}
			if err := snapshot.Delete(dir, args[0]); err != nil {
				return err
			}
			printf(g.out, "Snapshot %q is deleted.\n", args[0])
			return nil
		},
	}
}

func completeSnapshots(g *globals) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		dir, err := g.dir()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return snapshot.Names(dir), cobra.ShellCompDirectiveNoFileComp
	}
}

// addFromFlag adds the flag with which a landscape begins with a snapshot.
func addFromFlag(cmd *cobra.Command, c *landscape.Config) {
	cmd.Flags().StringVar(&c.From, "from", "", "file of a snapshot with which a new landscape begins; as many seeds as it has are started")
	_ = cmd.MarkFlagFilename("from", "zst")
}

// completeFrom sets what --from implies for flags that are not set.
func completeFrom(cmd *cobra.Command, c *landscape.Config) error {
	if c.From == "" {
		return nil
	}
	manifest, err := snapshot.Read(c.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if c.From, err = filepath.Abs(c.From); err != nil {
		return err
	}
	if !cmd.Flags().Changed("datastore") {
		c.Datastore = "sqlite" // exec's is memory otherwise
	}
	seeds, err := strconv.Atoi(manifest.Run.Options["seeds"])
	if err == nil && !cmd.Flags().Changed("seeds") {
		c.Seeds = seeds
	}
	if port := cmd.Flags().Lookup("port"); port != nil && !port.Changed && manifest.Run.PortChosen {
		c.Port = 0
	}
	return nil
}
