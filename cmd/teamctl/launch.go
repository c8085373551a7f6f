package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// launcher adapts adapter.Launcher to supervisor.Launcher.
type launcher struct {
	exe  string
	home team.Home
	log  *slog.Logger
}

// adapters returns the launcher with the person's own agent kinds.
func adapters(exe string, home team.Home) (adapter.Launcher, error) {
	custom, err := courier.LoadCustom(home)
	return adapter.Launcher{Exe: exe, Small: bundle.Small(exe), Custom: custom}, err
}

// Plan implements supervisor.Launcher.
func (l launcher) Plan(ctx context.Context, in supervisor.PlanIn) (supervisor.Plan, error) {
	m := in.Member
	ad, err := adapters(l.exe, l.home)
	if err != nil && ad.Custom == nil {
		// A broken file of another kind must not keep this one from starting.
		if _, known := (adapter.Launcher{}).Lookup(m.Spec.Agent); known != nil && m.Spec.Agent != "" {
			return supervisor.Plan{}, err
		}
		l.log.Warn("read the person's agents", "err", err)
	}
	ai := adapter.Input{
		MemberSpec: m.Spec, Layout: in.Layout, Team: in.Layout.Key, Name: m.Name, AgentID: m.AgentID, Color: m.Color, Session: m.SessionKey,
		Plan: m.Spec.Mode == team.ModePlan, Dir: in.Dir, Environ: in.Env, Generation: m.Generation, GitDirs: gitDir(in.Team.Repo),
	}
	dir := in.Layout.Bundle(m.Name)
	if !in.Adopt {
		if info, err := ad.Lookup(m.Spec.Agent); err == nil && info.NeedsModel {
			all, err := in.Members(ctx)
			if err != nil {
				return supervisor.Plan{}, err
			}
			ai.Role, ai.Peers = m.Role, tool.PeersOf(m.Name, all)
		}
		if ai, err = courier.Prepare(ctx, ad, ai); err != nil {
			return supervisor.Plan{}, fmt.Errorf("plan the launch of %s: %w", m.Name, err)
		}
	}
	out, err := ad.Plan(ai)
	if err != nil {
		return supervisor.Plan{}, fmt.Errorf("plan the launch of %s: %w", m.Name, err)
	}
	if !in.Adopt {
		if err := courier.WriteFiles(dir, out); err != nil {
			return supervisor.Plan{}, fmt.Errorf("plan the launch of %s: %w", m.Name, err)
		}
		for _, n := range out.Notes {
			l.log.Warn("launch", "member", m.Name, "note", n)
		}
	}
	if len(out.Argv) > 0 && !filepath.IsAbs(out.Argv[0]) && filepath.Base(out.Argv[0]) != out.Argv[0] {
		out.Argv[0] = filepath.Join(in.Dir, out.Argv[0])
	}
	if !in.Adopt {
		programs := out.Argv[:min(1, len(out.Argv))]
		if info, err := ad.Lookup(m.Spec.Agent); err == nil && info.TakesCommand { // it may run behind a program of teamctl
			programs = append(slices.Clip(programs), m.Spec.Command[:min(1, len(m.Spec.Command))]...)
		}
		for _, p := range programs {
			if _, err := shim.Find(p, in.Dir, out.Env); err != nil {
				return supervisor.Plan{}, supervisor.NotExecutable(m.Name, in.Dir, err)
			}
		}
	}
	return supervisor.Plan{
		Argv: out.Argv, Env: out.Env, AnswersShutdown: out.AnswersShutdown || m.Spec.Asks, ReportsReady: out.ReportsReady,
		Channel: out.Link != nil && needsChannel(out.Link.Ways), Notes: out.Notes,
	}, nil
}

// needsChannel reports whether mail needs the supervisor's help.
func needsChannel(ways []adapter.Way) bool {
	return len(ways) > 0 && ways[0] != adapter.WayACP && ways[0] != adapter.WayMailbox
}

// gitDir returns the git directory of the team's repository: a sandboxed agent must write there to
// commit in its worktree.
func gitDir(repo string) []string {
	if repo == "" {
		return nil
	}
	dir := filepath.Join(repo, ".git")
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return []string{dir}
	}
	return []string{repo}
}

// couriers adapts the courier to supervisor.Courier.
type couriers struct {
	*courier.Courier
	exe string
	env func() []string // of the person
}

// Open implements delivery.Courier.
func (c couriers) Open(ctx context.Context, in delivery.ChannelIn) (delivery.Channel, error) {
	m := in.Member
	dir := in.Layout.Bundle(m.Name)
	link, err := courier.ReadLink(dir, m.Generation)
	if err != nil {
		return nil, err
	}
	ch, err := c.Courier.Open(ctx, courier.Facts{
		Layout: in.Layout, Bundle: dir, Name: m.Name, AgentID: m.AgentID, Session: m.SessionKey, Generation: m.Generation,
		Dir: in.Dir, PID: in.PID, Mode: m.Spec.Mode, Link: link, Probe: c.probe(in.Layout.Home, m.Spec),
	}, in.Screen, in.Report)
	if ch == nil || err != nil {
		return nil, err
	}
	return ch, nil
}

// probe asks a member's program for its version.
func (c couriers) probe(home team.Home, spec team.MemberSpec) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		ad, err := adapters(c.exe, home)
		if err != nil && ad.Custom == nil {
			return "", err
		}
		return courier.AskVersion(ctx, ad, adapter.Input{MemberSpec: spec, Layout: team.Layout{Home: home}, Environ: c.env()})
	}
}
