package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger/memory"
	"github.com/teamctl/teamctl/team"
)

func newMemory(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory VERB",
		Short: "Manage what agents remember: ls, add, search and more",
		Long: `Manage what built-in agents remember beyond a conversation, in one file for all teams.
An entry has a key TEAM/AGENT/NAME, a text and tags. Agents add entries with a tool
and are reminded of those that match their work; nothing else writes them.`,
		Example: "  teamctl memory ls\n  teamctl memory add shop/dev/tests \"run make check\"\n  teamctl memory search \"how to run tests\"",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(newMemoryLs(a), newMemoryShow(a), newMemoryAdd(a), newMemoryRm(a), newMemorySearch(a), newMemoryExport(a), newMemoryImport(a))
	return cmd
}

// withMemory calls fn with the memory of the home directory.
func (a *app) withMemory(ctx context.Context, fn func(*memory.Store) error) (err error) {
	home, err := findHome()
	if err != nil {
		return err
	}
	s, err := memory.Open(ctx, home.Memory())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return fn(s)
}

func newMemoryLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls [PREFIX]", Short: "List entries, or those with a key prefix",
		Example: "  teamctl memory ls\n  teamctl memory ls shop/dev/ --json",
		Args:    takes(0, 1, "the beginning of keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), func(s *memory.Store) error {
				list, err := s.List(cmd.Context(), strings.Join(args, ""))
				if err != nil {
					return err
				}
				a.entries(list)
				return nil
			})
		},
	}
}

// entries prints entries in a table.
func (a *app) entries(list []memory.Entry) {
	if a.out.value(map[string]any{"entries": list}) {
		return
	}
	if len(list) == 0 {
		a.out.note("no entries")
		a.out.hint("teamctl memory add TEAM/AGENT/NAME TEXT")
		return
	}
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{plain.Visible(e.Key), view.Elapsed(time.Since(time.UnixMilli(e.UpdatedAt))), dash(plain.Visible(strings.Join(e.Tags, " "))), plain.Visible(firstLine(e.Text))})
	}
	a.out.table([]string{"KEY", "AGE", "TAGS", "TEXT"}, rows, false)
}

func newMemoryShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY", Short: "Show an entry",
		Example: "  teamctl memory show shop/dev/tests\n  teamctl memory show shop/dev/tests --json",
		Args:    takes(1, 1, "the key of an entry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), func(s *memory.Store) error {
				e, err := s.Get(cmd.Context(), args[0])
				if err != nil || a.out.value(e) {
					return err
				}
				a.out.line("%s", e.Text)
				return nil
			})
		},
	}
}

func newMemoryAdd(a *app) *cobra.Command {
	var tags []string
	cmd := &cobra.Command{
		Use: "add KEY TEXT", Short: "Add an entry, or replace the one with the same key",
		Example: "  teamctl memory add shop/dev/tests \"run make check\" --tag build\n  teamctl memory add shop/all/style - < style.md",
		Args:    takes(2, 2, "a key TEAM/AGENT/NAME and a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args[1:])
			if err != nil {
				return err
			}
			return a.withMemory(cmd.Context(), func(s *memory.Store) error {
				e, err := s.Save(cmd.Context(), memory.Entry{Key: args[0], Text: text, Tags: tags})
				if err == nil && !a.out.value(e) {
					a.out.line("%s: saved", plain.Visible(e.Key))
				}
				return err
			})
		},
	}
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "further words by which it is found")
	return cmd
}

func newMemoryRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm KEY...", Short: "Remove entries",
		Example: "  teamctl memory rm shop/dev/tests\n  teamctl memory rm shop/dev/tests shop/dev/port",
		Args:    takes(1, -1, "the keys of entries"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), func(s *memory.Store) error {
				for _, key := range args { // either all of them exist, or none is removed
					if _, err := s.Get(cmd.Context(), key); err != nil {
						return err
					}
				}
				for _, key := range args {
					if err := s.Forget(cmd.Context(), key); err != nil {
						return err
					}
				}
				if !a.out.value(map[string]any{"removed": args}) {
					for _, key := range args {
						a.out.line("%s: removed", plain.Visible(key))
					}
				}
				return nil
			})
		},
	}
}

func newMemorySearch(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "search WORD...", Short: "Search entries, best match first",
		Example: "  teamctl memory search run tests\n  teamctl memory search port --limit 3 --json",
		Args:    takes(1, -1, "words"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage(cmd, "--limit is 1 or more")
			}
			return a.withMemory(cmd.Context(), func(s *memory.Store) error {
				list, err := s.Search(cmd.Context(), memory.Query{Text: strings.Join(args, " "), Limit: limit})
				if err == nil {
					a.entries(list)
				}
				return err
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 10, "maximum number of entries")
	return cmd
}

func newMemoryExport(a *app) *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use: "export [PREFIX]", Short: "Write entries as Markdown or JSON lines",
		Example: "  teamctl memory export --format jsonl > memory.jsonl\n  teamctl memory export shop/ --format md",
		Args:    takes(0, 1, "the beginning of keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != memory.FormatMarkdown && format != memory.FormatJSONL {
				return usage(cmd, "--format is md or jsonl")
			}
			return a.withMemory(cmd.Context(), func(s *memory.Store) (err error) {
				to := a.out.stdout
				if file != "" {
					f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
					if err != nil {
						return team.Errorf(team.CodeInvalid, "%w", err)
					}
					defer func() { err = errors.Join(err, f.Close()) }()
					to = f
				}
				return s.Export(cmd.Context(), to, format, strings.Join(args, ""))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", memory.FormatMarkdown, "md or jsonl")
	cmd.Flags().StringVar(&file, "file", "", "write to this file instead of standard output")
	return cmd
}

func newMemoryImport(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Read entries from JSON lines",
		Example: "  teamctl memory import memory.jsonl\n  teamctl memory import - < memory.jsonl",
		Args:    takes(1, 1, "a file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), func(s *memory.Store) (err error) {
				from := a.stdin
				if args[0] != "-" {
					f, err := os.Open(args[0])
					if err != nil {
						return team.Errorf(team.CodeNotFound, "%w", err)
					}
					defer func() { err = errors.Join(err, f.Close()) }()
					from = f
				}
				n, err := s.Import(cmd.Context(), from)
				if err == nil && !a.out.value(map[string]any{"changed": n}) {
					a.out.line("%d new or newer", n)
				}
				return err
			})
		},
	}
}
