package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// fixer returns who can fix a branch: its owner, or the lead if the owner is a built-in worker,
// which only runs commands.
func (t *Team) fixer(ctx context.Context, session string) (string, error) {
	m, err := t.Ledger.MemberBySession(ctx, session)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return "", err
	}
	if err == nil && m.RemovedAt == 0 && !team.KindOf(m.Spec.Agent).Worker {
		return session, nil
	}
	row, err := t.Ledger.Team(ctx)
	return row.LeadSession, err
}

func mergeTask(m ledger.Merge, n team.LaneNote) *ledger.NewTask {
	var b strings.Builder
	subject := ""
	if n.State == team.LaneConflict {
		subject = fmt.Sprintf("resolve the conflicts of %s with %s", m.Branch, m.Target)
		fmt.Fprintf(&b, "Merging %s (%.12s, the work of %s) into %s (%.12s) conflicts in:\n", m.Branch, m.Tip, m.Member, m.Target, n.Onto)
		for _, f := range n.Files[:min(len(n.Files), 100)] {
			fmt.Fprintf(&b, "  %s\n", f)
		}
		fmt.Fprintf(&b, "\nIn the worktree of %s: git merge %s, resolve the files, test, commit. Then the branch can be merged again: teamctl merge %s --into %s\n",
			m.Member, m.Target, m.Member, m.Target)
	} else {
		subject = fmt.Sprintf("mend %s: %s fails", m.Branch, n.Ran.Run)
		fmt.Fprintf(&b, "%s (%.12s, the work of %s) on top of %s does not pass: %s: %s.\nThe whole output is in %s. Its end:\n\n%s\n\n",
			m.Branch, m.Tip, m.Member, m.Target, n.Ran.Run, n.Ran.Why(), n.Log, n.Ran.Tail)
		fmt.Fprintf(&b, "Mend it in the worktree of %s, commit, and the branch can be merged again: teamctl merge %s --into %s\n", m.Member, m.Member, m.Target)
	}
	meta, err := json.Marshal(map[string]any{"merge": map[string]any{
		"id": m.ID, "state": n.State, "branch": m.Branch, "target": m.Target, "files": n.Files, "log": n.Log,
	}})
	if err != nil {
		meta = nil // strings only: cannot fail
	}
	return &ledger.NewTask{Subject: strings.Join(strings.Fields(subject), " "), Description: b.String(), Metadata: meta, Priority: 1}
}

// afterMerge rebases the clean, idle worktrees on the target if that was requested, and notifies
// the other members that it has moved.
func (t *Team) afterMerge(ctx context.Context, c Caller, led *ledger.Ledger, repo, into string, refresh bool) ([]RefreshedMember, error) {
	r, err := t.repo(ctx, repo)
	if err != nil {
		return nil, err
	}
	head, err := r.Resolve(ctx, "refs/heads/"+into)
	if err != nil {
		return nil, err
	}
	ms, err := t.treeMembers(ctx, nil, false)
	if err != nil {
		return nil, err
	}
	held, err := t.holders(ctx)
	if err != nil {
		return nil, err
	}
	var out []RefreshedMember
	for _, m := range ms {
		if m.Spec.Repo != repo {
			continue
		}
		in, err := r.IsAncestor(ctx, head, "refs/heads/"+m.Branch)
		if err != nil {
			out = append(out, RefreshedMember{Member: m.Name, Into: into, Why: err.Error()})
			continue
		}
		if in {
			continue
		}
		why := "nobody asked to"
		if refresh {
			why = t.refresh(ctx, led, r, m, head, held)
		}
		out = append(out, RefreshedMember{Member: m.Name, Into: into, Done: why == "", Why: why})
		if why == "" || !m.Observed.Alive() {
			continue
		}
		_, err = t.Post(ctx, ledger.NewMessage{Kind: team.KindInfo, From: c.Name, To: m.Name,
			Text:    fmt.Sprintf("%s has moved on to %.12s: branches of the team were merged into it. Bring it into your branch when it suits you: git merge %s", into, head, into),
			Summary: into + " has moved on", IdemKey: "moved:" + into + ":" + head + ":" + m.Name})
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// refresh rebases one worktree, and returns why not, or "".
func (t *Team) refresh(ctx context.Context, led *ledger.Ledger, r *worktree.Repo, m ledger.Member, head string, held map[string]bool) string {
	now, err := t.Ledger.MemberBySession(ctx, m.SessionKey)
	switch {
	case err != nil:
		return err.Error()
	case held[m.SessionKey]:
		return "it has a task in work"
	case !resting(now):
		return "it is " + string(now.Activity)
	}
	if _, _, err := t.saver().Save(ctx, r, now, "before a refresh"); err != nil {
		return err.Error()
	}
	if _, err := r.Refresh(ctx, m.Worktree, head); err != nil {
		return err.Error()
	}
	if _, err := led.UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, Base: &head}); err != nil {
		return err.Error()
	}
	return ""
}
