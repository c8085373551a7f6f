package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// docsWritten lists the files that "docs man" and "docs completions" wrote.
type docsWritten struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // relative to Dir
}

// newDocs writes the files that a package of teamctl installs beside the program. They are
// generated from the commands, so none of them is checked in.
func newDocs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "docs VERB",
		Short:   "Write man pages or completion scripts to a directory",
		Example: "  teamctl docs man ~/.local/share/man/man1\n  teamctl docs completions ./completions",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	sub := func(name, short, example string, generate func(root *cobra.Command) (map[string][]byte, error)) {
		cmd.AddCommand(&cobra.Command{
			Use: name + " DIR", Short: short, Example: example, Args: takes(1, 1, "a directory"),
			RunE: func(cmd *cobra.Command, args []string) error {
				files, err := generate(cmd.Root()) // aboutAll has every command
				if err != nil {
					return err
				}
				names, err := writeDocs(args[0], files)
				if err != nil {
					return err
				}
				if !a.out.value(docsWritten{Dir: args[0], Files: names}) {
					a.out.line("wrote %d files to %s", len(names), args[0])
				}
				return nil
			},
		})
	}
	sub("man", "Write the man pages of all commands", "  teamctl docs man ~/.local/share/man/man1\n  teamctl docs man ./man1 -o name", manPages)
	sub("completions", "Write the completion scripts for bash, zsh and fish", "  teamctl docs completions ./completions\n  teamctl docs completions ./completions --json", completionScripts)
	return cmd
}

// writeDocs writes files, keyed by name, to dir and creates dir if it is missing.
func writeDocs(dir string, files map[string][]byte) ([]string, error) {
	names := slices.Sorted(maps.Keys(files))
	err := os.MkdirAll(dir, 0o755)
	for _, name := range names {
		if err == nil {
			err = atomicfile.Write(filepath.Join(dir, name), files[name], 0o644, false)
		}
	}
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "write to %s: %w", dir, err)
	}
	return names, nil
}

// completionScripts returns the scripts under the names by which each shell finds them.
func completionScripts(root *cobra.Command) (map[string][]byte, error) {
	var bash, zsh, fish bytes.Buffer
	err := errors.Join(root.GenBashCompletionV2(&bash, true), root.GenZshCompletion(&zsh), root.GenFishCompletion(&fish, true))
	return map[string][]byte{"teamctl.bash": bash.Bytes(), "_teamctl": zsh.Bytes(), "teamctl.fish": fish.Bytes()}, err
}

// walkCommands visits every visible command, parents first.
func walkCommands(c *cobra.Command, visit func(*cobra.Command) error) error {
	if err := visit(c); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "completion" {
			continue
		}
		if err := walkCommands(sub, visit); err != nil {
			return err
		}
	}
	return nil
}
