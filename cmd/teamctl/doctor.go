package main

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newDoctor(a *app) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine and the teams, and repair them",
		Long: `Check the machine and the teams on it: programs and their versions, the home
directory, disk, sockets, watches, ui.yaml, and teams whose supervisor or directory is
missing.
It changes nothing. The exit status is 7 if a check failed, but not for warnings.

With --repair it rebuilds config.json, the mailboxes and the registry from the
ledgers, of all teams or the one of --team, and reports the changes. It renames
unreadable files with ".corrupt-"; only leftovers of killed commands are deleted.`,
		Example: "  teamctl doctor\n  teamctl doctor --json\n  teamctl doctor --repair --team demo",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := team.FindHome() // the doctor reports what is wrong with it
			if repair {
				home, err = findHome()
			}
			if err != nil {
				return err
			}
			env, err := a.toolsIn(home)
			if err != nil {
				return err
			}
			if repair {
				return a.repair(cmd.Context(), env)
			}
			checks := append(env.Doctor(cmd.Context()), screenCheck(home)...)
			failed := 0
			for _, c := range checks {
				if c.Status == tool.CheckFail {
					failed++
				}
			}
			if a.out.json {
				a.out.value(map[string]any{"checks": checks, "ok": failed == 0})
				if failed > 0 {
					return errSaid
				}
				return nil
			}
			for _, c := range checks {
				mark := map[tool.CheckStatus]string{
					tool.CheckOK: a.out.style.Green("ok  "), tool.CheckWarn: a.out.style.Yellow("warn"), tool.CheckFail: a.out.style.Red("fail"),
				}[c.Status]
				a.out.line("%s  %s  %s", mark, view.Pad(c.Name, 12), view.Clean(c.Detail))
				if c.Hint != "" && c.Status != tool.CheckOK {
					a.out.line("      %s  %s", view.Pad("", 12), a.out.style.Dim("-> "+c.Hint))
				}
			}
			if failed > 0 {
				return team.Errorf(team.CodeUnavailable, "%d of %d checks failed", failed, len(checks)).WithReason(team.ReasonChecksFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "rebuild the teams' files from their ledgers")
	return cmd
}

// screenCheck reports a mistake in ui.yaml, and nothing where there is none.
func screenCheck(home team.Home) []tool.Check {
	_, err := tui.ReadConfig(home.Dir)
	if err == nil {
		return nil
	}
	return []tool.Check{{Name: "screen", Status: tool.CheckWarn, Detail: err.Error(),
		Hint: cmp.Or(team.HintOf(err), "correct "+filepath.Join(home.Dir, tui.ConfigName)+": until then the screen has its default keys")}}
}

func (a *app) repair(ctx context.Context, env *tool.Env) error {
	key := ""
	if a.team != "" {
		var err error
		if key, err = a.key(ctx, env); err != nil {
			return err
		}
	}
	steps, err := env.Repair(ctx, a.outsider(), key)
	if err != nil {
		return err
	}
	failed := 0
	for _, s := range steps {
		if s.Status == tool.RepairFail {
			failed++
		}
	}
	if a.out.value(map[string]any{"steps": steps, "ok": failed == 0}) {
		if failed > 0 {
			return errSaid
		}
		return nil
	}
	for _, s := range steps {
		mark := map[tool.RepairStatus]string{
			tool.RepairOK: a.out.style.Green("ok   "), tool.RepairFixed: a.out.style.Yellow("fixed"), tool.RepairFail: a.out.style.Red("fail "),
		}[s.Status]
		a.out.line("%s  %s  %s  %s", mark, view.Pad(dash(s.Team), 12), view.Pad(view.Clean(s.Step), 20), view.Clean(s.Detail))
		if s.Hint != "" {
			a.out.line("       %s  %s", view.Pad("", 12), a.out.style.Dim("-> "+s.Hint))
		}
	}
	if failed > 0 {
		return team.Errorf(team.CodeUnavailable, "%d of %d steps failed", failed, len(steps)).WithReason(team.ReasonRepairFailed)
	}
	return nil
}
