package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// outputs returns the directory for results that are too long for a conversation.
func (p *Program) outputs() string { return p.Team.Layout.Bundle(p.Member.Name).Outputs() }

// seenEntries is how many of a session's newest entries a new process reads for the files that the
// session has seen.
const seenEntries = 2000

// space returns the space of a session's tools. It is opened with the session's first turn and
// remembers what the session has read.
func (p *Program) space(ctx context.Context, session string, cfg *config.Config) (*tools.Space, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.spaces[session]; s != nil {
		return s, nil
	}
	p.closeOld(ctx)
	home := p.Team.Layout.Home
	dir := p.outputs()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "make the directory of long results: %w", err)
	}
	seen, err := p.Team.Ledger.SeenFiles(ctx, session, seenEntries)
	if err != nil {
		return nil, err
	}
	open := []string{filepath.Join(home.Dir, "workspace")}
	if p.temp != "" {
		open = append(open, p.temp)
	}
	s, err := tools.Open(tools.Config{
		Dir: p.Env.Dir, Outputs: dir, Home: home.Dir, Open: open, Closed: cfg.KeyFiles(), Seen: seen, Rules: p.rules,
		Shell: tools.ShellConfig{Env: p.environ(cfg), Commands: p.Env.Commands, Task: p.inHand, Enter: p.enter}, Secrets: &p.secrets,
	})
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "open the worktree for tools: %w", err)
	}
	todo, err := p.list(ctx, session)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if todo != nil {
		s.RestoreTodo(todo)
	}
	p.spaces[session] = s
	return s, nil
}

// closeOld ends the background commands of closed sessions. The lock is held.
func (p *Program) closeOld(ctx context.Context) {
	for key, space := range p.spaces {
		if s, err := p.Team.Ledger.Session(ctx, key); err == nil && s.State == ledger.SessionClosed {
			_ = space.Close() // what could not be ended is ended by the next life
			delete(p.spaces, key)
			delete(p.ops, key)
			delete(p.providers, key)
		}
	}
}

// close ends the background commands.
func (p *Program) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.spaces {
		_ = s.Close() // the next life ends the rest
	}
	p.spaces = nil
	if p.servers != nil {
		p.servers.Close()
	}
	if p.temp != "" {
		_ = os.RemoveAll(p.temp) // the next life creates it again
	}
}

// environ returns the environment of what tools start: without keys and without the member's
// token, so that teamctl cannot act as the member there; the team's operations are tools.
func (p *Program) environ(cfg *config.Config) []string {
	withheld := append(cfg.KeyVariables(), team.EnvToken)
	env := slices.DeleteFunc(slices.Clone(p.Env.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(withheld, name)
	})
	env = append(env, "PWD="+p.Env.Dir)
	if p.temp != "" {
		env = append(env, "TMPDIR="+p.temp)
	}
	return env
}

// inHand returns the variables of the member's current task.
func (p *Program) inHand(ctx context.Context) ([]string, error) {
	tasks, err := p.Team.Ledger.InHand(ctx, []string{p.id.Session})
	t := tasks[p.id.Session]
	if err != nil || t.Status != team.TaskClaimed && t.Status != team.TaskInProgress {
		return nil, err
	}
	return []string{team.EnvTaskID + "=" + t.ID, team.EnvAttempt + "=" + strconv.Itoa(t.Attempt)}, nil
}

// rules returns the current rules of the team, and the member's mode.
func (p *Program) rules(ctx context.Context) (tools.Rules, error) {
	m, err := p.Team.Ledger.MemberBySession(ctx, p.id.Session)
	if err != nil {
		return tools.Rules{}, err
	}
	rules, err := p.Team.Permissions(ctx)
	return tools.Rules{Permissions: rules, Member: m.Name, Mode: cmp.Or(m.Spec.Mode, team.ModeDefault)}, err
}

// filter returns the tools that a session may use: those that its own spec, its kind and the mode
// of the member allow, and that its parents have too.
func (p *Program) filter(ctx context.Context, s ledger.Session, m ledger.Member, spec team.AgentSpec, all []tools.Tool) ([]tools.Tool, error) {
	for {
		key, err := team.ParseSessionKey(s.Key)
		if err != nil {
			return nil, err
		}
		all = tools.Policy{Spec: spec.Policy.Tools, Kind: key.Kind, Mode: m.Spec.Mode}.Filter(all)
		if s.Owner == "" {
			return all, nil
		}
		if s, err = p.Team.Ledger.Session(ctx, s.Owner); err != nil {
			return nil, err
		}
		if spec, err = p.spec(ctx, s); err != nil {
			return nil, err
		}
	}
}

// skillFilters returns the filters of a session's skills: its own and those of its parents.
func (p *Program) skillFilters(ctx context.Context, s ledger.Session, spec team.AgentSpec) ([]team.Filter, error) {
	out := []team.Filter{spec.Policy.Skills}
	for s.Owner != "" {
		var err error
		if s, err = p.Team.Ledger.Session(ctx, s.Owner); err != nil {
			return nil, err
		}
		if spec, err = p.spec(ctx, s); err != nil {
			return nil, err
		}
		out = append(out, spec.Policy.Skills)
	}
	return out, nil
}

// toolset returns the tools that a turn of the session lists and can call, by name: those of its
// worktree, the team's operations and others.
func (p *Program) toolset(ctx context.Context, s ledger.Session, m ledger.Member, spec team.AgentSpec, cfg *config.Config, servers map[string]team.MCPServer, more []tools.Tool) ([]llm.Tool, *tools.Space, error) {
	space, err := p.space(ctx, s.Key, cfg)
	if err != nil {
		return nil, nil, err
	}
	all := append(space.Tools(), more...)
	all = append(all, p.mcpTools(ctx, cfg, servers, space)...)
	ops, err := p.operations(ctx, s.Key)
	if err != nil {
		return nil, nil, err
	}
	run := map[string]llm.Tool{}
	for _, o := range append(ops, p.personTools(s.Key)...) {
		class := tools.Team
		if team.AboutSessions(o.Name) {
			class = tools.Session
		}
		all = append(all, tools.Tool{Tool: o.Tool, Class: class, ReadOnly: o.ReadOnly})
		run[o.Name] = o
	}
	allowed, err := p.filter(ctx, s, m, spec, all)
	if err != nil {
		return nil, nil, err
	}
	var out []llm.Tool
	for _, t := range allowed {
		if o, ok := run[t.Name]; ok {
			out = append(out, o)
			continue
		}
		out = append(out, llm.Tool{Tool: t.Tool, ReadOnly: t.ReadOnly, Run: func(ctx context.Context, c llm.Call) (llm.Result, error) {
			return p.gated(ctx, space, t, c)
		}})
	}
	return out, space, nil
}

// notAsked is the result of a call whose turn ended before it was approved.
const notAsked = "Nothing was done: the turn ended while this waited for an approval."

// gated runs a call once it is permitted.
func (p *Program) gated(ctx context.Context, space *tools.Space, t tools.Tool, c llm.Call) (llm.Result, error) {
	d, err := space.Gate(ctx, t, c.Input)
	if err != nil {
		return llm.Result{}, err
	}
	decision := d.Why
	switch d.Verdict {
	case tools.Deny:
		return notAllowed(d), nil
	case tools.Ask:
		asked := string(c.Input)
		approval, refusal, err := p.ask(ctx, &c, about(t, d.Subject))
		if approval != 0 {
			decision = fmt.Sprintf("approval %d", approval)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return llm.Result{Failed: true, Text: notAsked, Decision: decision}, nil
		case err != nil || refusal != "":
			return llm.Result{Failed: true, Text: refusal, Decision: decision}, err
		}
		if string(c.Input) == asked {
			break
		}
		// The approver has changed it: forbidden input is still denied.
		if d, err = space.Gate(ctx, t, c.Input); err != nil {
			return llm.Result{}, err
		}
		if d.Verdict == tools.Deny {
			return notAllowed(d), nil
		}
	case tools.Allow:
	}
	out, err := t.Run(ctx, tools.Call{ID: c.ID, Input: c.Input})
	return llm.Result{
		Text: p.secrets.Hide(out.Text), Failed: out.Failed, Note: out.Note, Diff: p.secrets.Hide(out.Diff), Paths: out.Paths, File: out.File, Seen: out.Seen,
		Decision: decision,
	}, err
}

func notAllowed(d tools.Decision) llm.Result {
	return llm.Result{Failed: true, Text: "Not allowed: " + d.Why, Decision: d.Why}
}

// about describes a call for the person who decides about it.
func about(t tools.Tool, s tools.Subject) string {
	switch {
	case s.Command != "":
		return s.Command
	case s.Host != "":
		return t.Name + " " + s.Host
	}
	return strings.TrimSpace(t.Name + " " + strings.Join(s.Paths, " "))
}
