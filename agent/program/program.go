package program

import (
	"context"
	"sync"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/mcp"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/secrets"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// Program is a member with a model.
type Program struct {
	Tools     *tool.Env // access to the team's operations
	Team      *tool.Team
	Member    ledger.Member
	Env       agent.Env
	Token     string          // of this start
	Interrupt <-chan struct{} // interrupts the current turn
	// Who verifies the caller of the team's operations; nil: the member, by its token.
	Who func(ctx context.Context, t *tool.Team) (tool.Caller, error)
	// Place is the location of the screen, for panes next to it.
	Place team.Place

	id        agent.Identity
	ops       map[string]*op.Session // by session
	work      *agent.Work
	mu        sync.Mutex
	spaces    map[string]*tools.Space // by session
	providers map[string]string       // of the current turns, by session
	secrets   secrets.Set
	enter     func() error // confines what tools start; nil: not confined
	temp      string       // temporary directory of confined commands

	servers  *mcp.Set                  // nil before the first turn, and if there are none
	serves   map[string]team.MCPServer // configuration of servers
	troubles []string                  // problems of servers that were shown
}

// Run serves the sessions of the member until a shutdown is approved or ctx ends.
func (p *Program) Run(ctx context.Context, id agent.Identity) error {
	p.begin(id)
	defer p.close()
	var beside sync.WaitGroup
	beside.Go(func() { _, _ = descriptions() }) // the first turn needs them, after waits for the disk
	defer beside.Wait()
	if p.Env.Out != nil {
		screen := p.secrets.Writer(p.Env.Out)
		defer func() { _ = screen.Close() }() // the screen may be gone
		p.Env.Out = screen
	}
	if cfg, err := config.Load(p.Team.Layout.Home); err == nil { // otherwise the turns report the error
		servers, err := p.serversOf(ctx, cfg)
		if err != nil {
			return err
		}
		p.learn(cfg, servers)
	}
	err := p.withdrawAll(ctx)
	if err != nil {
		return err
	}
	if p.enter, p.temp, err = p.bounds(); err != nil {
		return err
	}
	p.work = agent.NewWork(id, p.Env)
	ref, err := birthModel(id.Model)
	if err != nil {
		return err
	}
	mine := p.Team.Ledger.As(p.Member.Name)
	return agent.Serve(ctx, id, p.Env, agent.ServeIn{
		Sessions: mine, Turns: &llm.Runner{Sessions: mine, Resolve: p.resolve, Texts: texts{p}}, Model: ref,
		First: p.first(ctx), Prompt: p.Member.Spec.Prompt, Interrupt: p.Interrupt, Quota: account{p}, Hide: p.secrets.Hide,
		Aside: p.aside, Keep: p.keep,
	})
}

// begin initialises the program for sessions.
func (p *Program) begin(id agent.Identity) {
	p.id, p.ops, p.spaces, p.providers = id, map[string]*op.Session{}, map[string]*tools.Space{}, map[string]string{}
}

// birthModel returns the model requested by a spawn, as the initial override of a new session.
func birthModel(s string) (team.SpecModel, error) {
	if s == "" {
		return team.SpecModel{}, nil
	}
	ref, err := model.ParseRef(s)
	return team.SpecModel{Provider: ref.Provider, Model: ref.Model}, err
}
