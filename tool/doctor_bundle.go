package tool

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// bundleChecks reports members that cannot be inspected, and bundles with unreadable files.
func (e *Env) bundleChecks(ctx context.Context, key string) []Check {
	t, err := e.Open(ctx, key)
	if err != nil {
		return nil // reported already
	}
	members, err := t.Ledger.Members(ctx, false)
	_ = t.Close() // it was only read
	if err != nil {
		return nil
	}
	var out []Check
	for _, m := range members {
		if m.Name == team.LeadName {
			continue
		}
		problems := supervisor.BundleProblems(t.Layout.Bundle(m.Name))
		why := m.Reason
		if len(problems) > 0 {
			words := make([]string, len(problems))
			for i, p := range problems {
				words[i] = p.Error()
			}
			why = strings.Join(words, "; ")
		}
		switch hint := fmt.Sprintf("teamctl kill %s --team %s ends what can be found of it", m.Name, key); {
		case state.Unknown(m):
			out = append(out, checked("team "+key, "it is not known whether %s lives: %s", m.Name, why).warn(hint))
		case len(problems) > 0 && m.Observed.Alive():
			out = append(out, checked("team "+key, "the files of %s are damaged, another supervisor cannot adopt it: %s", m.Name, why).
				warn(fmt.Sprintf("teamctl restart %s --team %s writes them anew", m.Name, key)))
		case state.HasNoHooks(m):
			out = append(out, checked("team "+key, "%s: %s", m.Name, m.Reason).
				warn(fmt.Sprintf("let its program run hooks (disableAllHooks, hooksConfig, a managed policy), then: teamctl restart %s --team %s", m.Name, key)))
		case len(problems) > 0:
			out = append(out, checked("team "+key, "the files of %s are damaged: %s", m.Name, why).
				warn(fmt.Sprintf("teamctl delete %s --force keeps them aside; a start writes those anew that it can", key)))
		}
	}
	return out
}

// noTeamCheck reports a directory among the teams that has no ledger. Its worktrees may hold the
// only copy of somebody's work.
func noTeamCheck(l team.Layout) Check {
	if lostLedger(l) {
		err := errLostLedger(l.Key)
		return checked("team "+l.Key, "%v", err).fail(err.Hint)
	}
	trees, err := leftIn(l)
	if err != nil || len(trees) > 0 {
		what := strings.Join(trees, ", ")
		if err != nil {
			what = err.Error()
		}
		return checked("leftover", "%s is not a team, and has worktrees: %s", l.Dir, what).
			warn("save the work in them before you remove it: git -C " + team.ShellQuote(filepath.Join(l.Worktrees(), first(trees))) + " status")
	}
	return checked("leftover", "%s is not a team", l.Dir).warn("remove it if you do not need it")
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
