package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/viewtest"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// teamName is the team that is played.
const teamName = "shop"

// limit is how long everything may take on a machine that does much else; it takes seconds.
const limit = 10 * time.Minute

// stage is the team and what it runs on.
type stage struct {
	*agentlab.Home
	exe   string
	model *fakemodel.Server
	team  *tool.Team
}

// play has the team do its work up to the middle of a day, and returns what the screens show of it.
// exe is teamctl; self is a program that calls fakecli.Main first; dir is for everything else.
func play(ctx context.Context, exe, self, dir string) (day viewtest.Day, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := &stage{exe: exe}
	if s.model, err = fakemodel.Start("", nil); err != nil {
		return day, err
	}
	defer func() { err = errors.Join(err, s.model.Close()) }()
	cache := filepath.Join(dir, "cache")
	with, err := agentlab.StandIns(self, cache)
	if err != nil {
		return day, err
	}
	if s.Home, err = agentlab.NewHome(ctx, dir, cache, s.model.URL, with); err != nil {
		return day, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.day(ctx)
}

// encode returns the day as the file has it.
func encode(day viewtest.Day) ([]byte, error) {
	b, err := json.MarshalIndent(day, "", " ")
	return append(b, '\n'), err
}

// close ends the team and everything that runs for it.
func (s *stage) close() error {
	var err error
	if s.team != nil {
		err = s.team.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, down := s.Run(ctx, s.exe, "delete", "--force")
	return errors.Join(err, down, s.Reap(), s.Remove())
}

func (s *stage) day(ctx context.Context) (day viewtest.Day, err error) {
	if err := s.begin(ctx); err != nil {
		return day, err
	}
	if s.team, err = (&tool.Env{Home: team.Home{Dir: s.Teams}}).Open(ctx, teamName); err != nil {
		return day, err
	}
	for _, step := range []func(context.Context) error{
		s.opening, s.builder, s.probe, s.review,
		func(ctx context.Context) error { return s.works(ctx, "cart", ofClaude, "5") },
		s.planner,
		func(ctx context.Context) error { return s.spawn(ctx, "docs", "gemini") },
		func(ctx context.Context) error { return s.works(ctx, "docs", ofGemini, "6") },
		func(ctx context.Context) error { return s.becomes(ctx, "cart", team.Working) },
		func(ctx context.Context) error { return s.becomes(ctx, "docs", team.Working) },
	} {
		if err := step(ctx); err != nil {
			return day, err
		}
	}
	for _, id := range []int64{1, 2} {
		r, err := look.Request(ctx, s.team, id)
		if err != nil {
			return day, err
		}
		day.Requests = append(day.Requests, r)
	}
	if day.Changes, err = look.Changes(ctx, s.team, "cart", ""); err != nil {
		return day, err
	}
	if day.Depends, err = look.Dependencies(ctx, s.team); err != nil {
		return day, err
	}
	if day.Before, err = look.Snapshot(ctx, s.team); err != nil {
		return day, err
	}
	if err := s.teamctl(ctx, "approvals", "approve", "1"); err != nil {
		return day, err
	}
	if err := s.becomes(ctx, "builder", team.Working); err != nil {
		return day, err
	}
	if day.After, err = look.Snapshot(ctx, s.team); err != nil {
		return day, err
	}
	return s.scripted(day)
}

func (s *stage) teamctl(ctx context.Context, args ...string) error {
	_, err := s.Run(ctx, append([]string{s.exe}, args...)...)
	return err
}

// all runs commands of teamctl one after the other.
func (s *stage) all(ctx context.Context, commands ...[]string) error {
	for _, c := range commands {
		if err := s.teamctl(ctx, c...); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the shop, the team and its board.
func (s *stage) begin(ctx context.Context) error {
	for path, text := range map[string]string{
		filepath.Join(s.Repo, "price.go"): "package shop\n\nfunc (p Price) Rounded() Price {\n\treturn p.sum\n}\n",
		filepath.Join(s.Repo, "cart.go"):  "package shop\n\nfunc (c *Cart) Total() Price {\n\treturn c.total\n}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	// What is published here takes long.
	if err := os.WriteFile(filepath.Join(s.Dir, "bin", "npm"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		return err
	}
	const at = "2026-03-01T08:00:00Z" // the commit has the same name in each run
	for _, argv := range [][]string{{"git", "add", "."}, {"env", "GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at, "git", "commit", "-q", "--amend", "-m", "the shop", "--date", at}} {
		if _, err := s.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return s.all(ctx,
		[]string{"create", teamName, "--repo", s.Repo},
		[]string{"task", "auto", "off"}, // each is told what to do
		[]string{"task", "add", "round the prices"},
		[]string{"task", "add", "unit tests of the cart", "--depends-on", "1"},
		[]string{"task", "add", "integration tests", "--depends-on", "2"},
		[]string{"task", "add", "publish the package", "--depends-on", "2"},
		[]string{"task", "add", "release notes", "--depends-on", "1"},
		[]string{"task", "add", "tutorial", "--depends-on", "1"},
		[]string{"task", "add", "translate the tutorial", "--depends-on", "6"},
		[]string{"task", "add", "deploy", "--depends-on", "3", "--depends-on", "4", "--depends-on", "5"},
		[]string{"task", "add", "clean the fixtures"},
	)
}

// spawn starts a member and waits until its model has answered the prompt: it follows the lines that
// come afterwards.
func (s *stage) spawn(ctx context.Context, name, agent string, args ...string) error {
	ready := name + " is ready"
	if err := s.teamctl(ctx, append([]string{"spawn", name, "--agent", agent, "--session", "--prompt", "@@say " + ready}, args...)...); err != nil {
		return err
	}
	_, err := s.model.Wait(ctx, func(r fakemodel.Request) bool { return strings.Contains(r.Answer, ready) })
	return err
}

// tell sends a member lines that its model follows.
func (s *stage) tell(ctx context.Context, name string, lines ...string) error {
	return s.teamctl(ctx, "send", name, strings.Join(lines, "\n"))
}

// call is a line that calls one of the team's tools.
func call(prefix, name string, in any) string {
	b, err := json.Marshal(in)
	if err != nil { // texts and booleans
		panic(err)
	}
	return fmt.Sprintf("@@call %s%s %s", prefix, name, b)
}

type fields = map[string]any

const (
	ofClaude = "mcp__teamctl__"
	ofGemini = "mcp_teamctl_"
)

// opening has an idle worker, and cart finish a task.
func (s *stage) opening(ctx context.Context) error {
	if err := s.teamctl(ctx, "spawn", "lint", "--session"); err != nil {
		return err
	}
	if err := s.becomes(ctx, "lint", team.Idle); err != nil {
		return err
	}
	if err := s.spawn(ctx, "cart", "codex"); err != nil {
		return err
	}
	err := s.tell(ctx, "cart", call(ofClaude, "TaskClaim", fields{"task_id": "1"}),
		"@@shell sed -i 's/p.sum/p.sum.Round(2)/; 2a // A Price has two digits.' price.go && sed -i '3a \\\tc.count()' cart.go",
		call(ofClaude, "TaskComplete", fields{"task_id": "1", "summary": "prices have two digits"}))
	if err != nil {
		return err
	}
	return s.teamctl(ctx, "wait", "--task", "1", "--timeout", limit.String())
}

// builder finishes a task, fails one, and asks for a permission in the next.
func (s *stage) builder(ctx context.Context) error {
	if err := s.spawn(ctx, "builder", "claude"); err != nil {
		return err
	}
	err := s.tell(ctx, "builder",
		call(ofClaude, "TaskClaim", fields{"task_id": "2"}), call(ofClaude, "TaskComplete", fields{"task_id": "2", "summary": "12 tests"}),
		call(ofClaude, "TaskClaim", fields{"task_id": "3"}), call(ofClaude, "TaskFail", fields{"task_id": "3", "error": "2 of 40 tests failed"}),
		call(ofClaude, "TaskClaim", fields{"task_id": "4"}),
		call("", "Bash", fields{"command": "npm publish --tag next", "description": "publish the release candidate"}))
	if err != nil {
		return err
	}
	return s.asks(ctx, "builder", 1)
}

// probe fails.
func (s *stage) probe(ctx context.Context) error {
	if err := s.teamctl(ctx, "spawn", "probe", "--session", "--restart", "never", "--", "sh", "-c", "echo no such suite; exit 127"); err != nil {
		return err
	}
	return s.until(ctx, "probe fails", func(t view.Snapshot) bool {
		return slices.ContainsFunc(t.Members, func(m view.Member) bool { return m.Name == "probe" && m.State == team.Failed })
	})
}

// review has the person comment on the changes of cart, which handles that, and begin another round.
func (s *stage) review(ctx context.Context) error {
	err := s.all(ctx, []string{"review", "add", "cart", "price.go:3", "name the unit"}, []string{"review", "send", "cart"})
	if err != nil {
		return err
	}
	err = s.tell(ctx, "cart", "@@shell sed -i 's/has two digits/is in cents, with two digits/' price.go",
		call(ofClaude, "ReviewAnswer", fields{"comment": "1.1", "handled": true, "text": "in cents"}))
	if err != nil {
		return err
	}
	err = s.until(ctx, "cart handles the comment", func(view.Snapshot) bool {
		c, err := look.Changes(ctx, s.team, "cart", "")
		return err == nil && len(c.Comments) == 1 && c.Comments[0].Answer != ""
	})
	if err != nil {
		return err
	}
	return s.teamctl(ctx, "review", "add", "cart", "price.go:5", "why two? the currency knows its digits")
}

// works has a member claim a task and run a command that takes long.
func (s *stage) works(ctx context.Context, name, prefix, task string) error {
	if err := s.tell(ctx, name, call(prefix, "TaskClaim", fields{"task_id": task}), "@@shell sleep 1000"); err != nil {
		return err
	}
	return s.until(ctx, name+" has task "+task, func(t view.Snapshot) bool {
		return slices.ContainsFunc(t.Tasks, func(x view.Task) bool { return x.ID == task && x.Active() })
	})
}

// planner submits a plan.
func (s *stage) planner(ctx context.Context) error {
	if err := s.spawn(ctx, "api", "claude", "--permission-mode", "plan"); err != nil {
		return err
	}
	plan := "# Rename the flag, keep the old one for a release\n\n1. add `--currency`, which does what `--unit` does\n2. warn where `--unit` is used\n3. remove it"
	if err := s.tell(ctx, "api", call("", "ExitPlanMode", fields{"plan": plan})); err != nil {
		return err
	}
	return s.asks(ctx, "api", 2)
}

// asks waits for a request of a member.
func (s *stage) asks(ctx context.Context, name string, id int64) error {
	return s.until(ctx, fmt.Sprintf("%s makes request %d", name, id), func(t view.Snapshot) bool {
		return slices.ContainsFunc(t.Needs, func(n view.Need) bool { return n.Member == name && n.Approval == id }) &&
			slices.ContainsFunc(t.Members, func(m view.Member) bool { return m.Name == name && m.WaitsFor != "" })
	})
}

// becomes waits for an activity of a member.
func (s *stage) becomes(ctx context.Context, name string, activity team.Activity) error {
	return s.teamctl(ctx, "wait", "--member", name, "--state", string(activity), "--timeout", limit.String())
}

// until waits for what the screens show.
func (s *stage) until(ctx context.Context, what string, ok func(view.Snapshot) bool) error {
	for {
		t, err := look.Snapshot(ctx, s.team)
		if err != nil {
			return err
		}
		if ok(t) {
			return nil
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
