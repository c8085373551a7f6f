// Package found reads the roster of a team from its files, to rebuild a ledger.
package found

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// Members returns the roster according to config.json and the members' bundles. cfg may be nil.
// unread says what may be missing from it because a file or a directory could not be read.
func Members(l team.Layout, cfg *team.Config) (list []ledger.FoundMember, unread []string) {
	known := map[string]bool{}
	find := func(c team.ConfigMember) ledger.FoundMember {
		f, err := member(l, c)
		if err != nil {
			unread = append(unread, fmt.Sprintf("member %s: its own files could not be read: %v", c.Name, err))
		}
		return f
	}
	if cfg != nil {
		for _, c := range cfg.Members {
			known[strings.ToLower(c.Name)] = true
			list = append(list, find(c))
		}
	}
	entries, err := os.ReadDir(l.Members())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the directory there are no bundles
		unread = append(unread, fmt.Sprintf("members: their directory could not be read: %v", err))
	}
	for _, e := range entries {
		if known[strings.ToLower(e.Name())] {
			continue
		}
		// A former member's bundle may still exist: only a living one counts.
		f := find(team.ConfigMember{Name: e.Name(), AgentID: team.AgentID(e.Name(), l.Key)})
		if f.Lives {
			list = append(list, f)
		}
	}
	return list, unread
}

// member returns what config.json and the bundle of a member contain. An error says that the bundle
// has more.
func member(l team.Layout, c team.ConfigMember) (ledger.FoundMember, error) {
	b := l.Bundle(c.Name)
	m := ledger.Member{
		AgentID: c.AgentID, Name: c.Name, Role: team.RoleExecutor, JoinedAt: c.JoinedAt, Color: c.Color,
		Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown,
		Spec: team.MemberSpec{
			Agent: team.AgentCommand, Backend: c.BackendType, Prompt: c.Prompt, AgentType: c.AgentType, Model: c.Model,
			Mode: team.Mode(c.Mode), Restart: team.RestartOnFailure, WorktreeMode: "none", Cwd: c.Cwd,
		},
	}
	if c.Name == team.LeadName {
		m.Role, m.Spec.Agent, m.Spec.Restart = team.RoleLeader, team.AgentLead, ""
		return ledger.FoundMember{Member: m}, nil
	}
	launch, err := bundle.ReadLaunch(b, "")
	if err == nil {
		m.Generation, m.Spec.Limits = launch.Generation, launch.Limits
		if m.Spec.Cwd == "" {
			m.Spec.Cwd = launch.Dir
		}
	}
	if team.IsCode(err, team.CodeNotFound) {
		err = nil
	}
	switch {
	case team.KindOf(c.AgentType).NeedsNoFile:
		m.Spec.Agent, m.Spec.AgentType = c.AgentType, ""
	case len(launch.Argv) > 0:
		m.Spec.Command = launch.Argv
	}
	if c.WorktreePath != "" {
		m.Worktree = c.WorktreePath
		if filepath.Dir(c.WorktreePath) == l.Worktrees() {
			m.Spec.WorktreeMode, m.Branch = "own", trees.BranchName(l.Key, c.Name, "")
		} else {
			m.Spec.WorktreeMode = c.WorktreePath
		}
	}
	f := ledger.FoundMember{}
	held, lerr := bundle.Running(b)
	if f.Lives = lerr == nil && held && m.Generation != ""; f.Lives {
		living(&m, b)
	} else if m.Generation != "" && m.Observed == team.Pending {
		m.Observed, m.Reason = team.Completed, "its ledger was lost"
	}
	secret, terr := regular.ReadFile(b.Token())
	switch {
	case terr == nil:
		f.TokenHash = ledger.HashToken(strings.TrimSpace(string(secret)))
	case errors.Is(terr, fs.ErrNotExist):
		terr = nil
	}
	f.Member = m
	return f, cmp.Or(err, lerr, terr)
}

// living fills in the bundle's data about a living generation.
func living(m *ledger.Member, b team.Bundle) {
	m.Desired, m.Observed = team.WantRunning, team.Running
	if p, err := bundle.ReadProc(b, m.Generation); err == nil {
		m.PID, m.StartedAt = p.Agent.PID, p.StartedAt.UnixMilli()
	}
	if p, err := bundle.ReadPane(b, m.Generation); err == nil {
		m.PaneID = p.PaneID
		if m.Spec.Backend == "" {
			m.Spec.Backend = p.Backend
		}
	}
	if m.Spec.Backend == "" {
		m.Spec.Backend = string(team.PaneAuto)
	}
}
