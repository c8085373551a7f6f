package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// recorded is a recorded screen and how it was read.
type recorded struct {
	Member   string          `json:"member"`
	File     string          `json:"file"`
	Agent    string          `json:"agent"`
	Version  adapter.Version `json:"version"`
	Rule     string          `json:"rule"` // the rule that must match it
	Activity team.Activity   `json:"activity"`
	For      team.WaitFor    `json:"for,omitempty"`
	Lines    []string        `json:"lines"`    // matched by the rule
	Replaced []string        `json:"replaced"` // kinds of private text that were replaced
}

// recording says what to record, as set by flags.
type recording struct {
	dir, rule, version string
	force              bool
}

func newDebugRecord(a *app) *cobra.Command {
	var r recording
	cmd := &cobra.Command{
		Use:   "record MEMBER",
		Short: "Record a member's screen, for a test of its patterns",
		Long: `Write a member's screen to a file named after the rule that must match it:
PROGRAM-VERSION-RULE.txt, as the tests of the rules read them. Your home directory,
the repository's, your name and machine, addresses, ids, and anything that looks like
a key or a token are replaced. Text that the program has broken over two lines is not
found, so read the file before you share it. --rule names the rule for a screen that
no rule matches yet, or that the wrong rule matches.`,
		Example:           "  teamctl debug record ann\n  teamctl debug record ann --rule update-prompt --dir internal/adapter/testdata/screens",
		Args:              takes(1, 1, "the name of a member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				if err := memberNames(cmd.Context(), t, args); err != nil {
					return err
				}
				rec, err := record(cmd.Context(), t, args[0], r)
				if err != nil || a.out.value(rec) {
					return err
				}
				a.out.line("wrote %s", view.Clean(rec.File))
				what := string(rec.Activity)
				if rec.For != "" {
					what += " for " + string(rec.For)
				}
				a.out.line("%s %s is %s", rec.Agent, rec.Version, what)
				for _, l := range rec.Lines {
					a.out.line("    %s", view.Clean(l))
				}
				if len(rec.Replaced) > 0 {
					a.out.note("replaced in it: %s", strings.Join(rec.Replaced, ", "))
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.dir, "dir", ".", "directory that the file goes to")
	f.StringVar(&r.rule, "rule", "", "rule that must match the screen (default the one that matches)")
	f.StringVar(&r.version, "cli-version", "", "version of its program, if unknown")
	f.BoolVar(&r.force, "force", false, "replace the file if it is there")
	return cmd
}

// record writes the file. It contains only text that is recognised.
func record(ctx context.Context, t *tool.Team, name string, in recording) (recorded, error) {
	m, err := t.Member(ctx, name)
	if err != nil {
		return recorded{}, err
	}
	// A plain command has no link, hence neither a version nor a secret.
	link, err := courier.ReadLink(t.Layout.Bundle(m.Name), m.Generation)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return recorded{}, err
	}
	out := recorded{Member: m.Name, Agent: m.Spec.Agent, Rule: in.rule, Lines: []string{}, Replaced: []string{}}
	known := false
	if out.Version, known = adapter.ParseVersion(cmp.Or(in.version, link.Version)); !known {
		return recorded{}, team.Errorf(team.CodeInvalid, "the version of %s of %s is unknown", m.Spec.Agent, m.Name).WithReason(team.ReasonNoVersion).
			WithHint("--cli-version 1.2.3")
	}
	s, err := t.RunningSupervisor(ctx)
	if err != nil {
		return recorded{}, err
	}
	screen, err := s.Capture(ctx, m.Name, 0)
	if err != nil {
		return recorded{}, err
	}
	rules, err := courier.LoadRules(t.Layout.Home, m.Spec.Agent)
	if err != nil {
		return recorded{}, err
	}
	if rules == nil {
		rules = &adapter.Rules{}
	}
	screen = strings.TrimRight(plain.Text(screen), " \n") + "\n"
	was := rules.Look(screen, out.Version, time.Now())
	text, gone := private(m, link).Scrub(screen)
	seen := rules.Look(text, out.Version, time.Now())
	out.Activity, out.For, out.Replaced = seen.Activity, seen.For, append(out.Replaced, gone...)
	for _, l := range seen.Lines {
		out.Lines = append(out.Lines, strings.TrimSpace(l))
	}
	if out.Rule = cmp.Or(in.rule, seen.Rule); out.Rule == "" || in.rule == "" && was.Rule != seen.Rule {
		return recorded{}, team.Errorf(team.CodeNotFound, "no rule of %s knows this screen, as %s would be written down", m.Spec.Agent, m.Name).
			WithReason(team.ReasonNoRule).WithHint("--rule NAME is the rule that is to know it")
	}
	file, err := adapter.ScreenName(out.Agent, out.Version, out.Rule)
	if err != nil {
		return recorded{}, err
	}
	dir, err := absolute(in.dir)
	if err != nil {
		return recorded{}, err
	}
	out.File = filepath.Join(dir, file)
	return out, writeScreen(out.File, text, in.force)
}

// private returns what a member's screen may reveal about the person.
func private(m ledger.Member, link adapter.Link) adapter.Private {
	p := adapter.Private{Dirs: []string{m.Worktree, m.Spec.Cwd}, Secrets: []string{link.Secret}}
	for _, env := range []map[string]string{environment(), m.Spec.Env} {
		for k, v := range env {
			if secretName(k) {
				p.Secrets = append(p.Secrets, v)
			}
		}
	}
	// If the name cannot be determined, the screen does not show it either.
	p.Home, _ = os.UserHomeDir()
	p.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		p.User = u.Username
	}
	return p
}

func environment() map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

// secretName reports whether the name of a variable suggests a secret.
func secretName(name string) bool {
	for _, end := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"} {
		if strings.HasSuffix(strings.ToUpper(name), end) {
			return true
		}
	}
	return false
}

func writeScreen(path, text string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return team.Errorf(team.CodeConflict, "%s already exists", path).WithReason(team.ReasonExists).WithHint("--force replaces it")
	}
	err := atomicfile.Write(path, []byte(text), 0o600, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return team.Errorf(team.CodeNotFound, "directory %s does not exist", filepath.Dir(path)).WithHint("--dir is where the file goes to")
	case err != nil:
		return team.Errorf(team.CodeUnavailable, "write the screen: %w", err)
	}
	return nil
}
