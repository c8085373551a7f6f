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

// Program is a member that a model leads.
type Program struct {
	Tools     *tool.Env // the way to the team's operations
	Team      *tool.Team
	Member    ledger.Member
	Env       agent.Env
	Token     string          // of this start
	Interrupt <-chan struct{} // ends the turn under way

	id        agent.Identity
	ops       *op.Session
	work      *agent.Work
	mu        sync.Mutex
	spaces    map[string]*tools.Space // by session
	providers map[string]string       // that the current turns ask, by session
	secrets   secrets.Set
	enter     func() error // confines what tools start; nil: nothing does
	temp      string       // temporary directory of what is confined

	servers  *mcp.Set                  // nil before the first turn, and without any
	serves   map[string]team.MCPServer // that servers was made of
	troubles []string                  // of servers, that the screen has
}

// Run serves the sessions of the member until a shutdown was approved or ctx ends.
func (p *Program) Run(ctx context.Context, id agent.Identity) error {
	p.begin(id)
	defer p.close()
	if p.Env.Out != nil {
		screen := p.secrets.Writer(p.Env.Out)
		defer func() { _ = screen.Close() }() // a screen that is gone
		p.Env.Out = screen
	}
	if cfg, err := config.Load(p.Team.Layout.Home); err == nil { // else the turns say so
		servers, err := p.serversOf(ctx, cfg)
		if err != nil {
			return err
		}
		p.learn(cfg, servers)
	}
	var err error
	if p.enter, p.temp, err = p.bounds(); err != nil {
		return err
	}
	p.work = agent.NewWork(id, p.Env)
	who := func(ctx context.Context, t *tool.Team) (tool.Caller, error) {
		return t.Identify(ctx, id.AgentID, p.Token)
	}
	p.ops = op.NewSession(p.Tools, id.Team, who, func() tool.Caller { return tool.Caller{Name: id.Name} })
	ref, err := birthModel(id.Model)
	if err != nil {
		return err
	}
	mine := p.Team.Ledger.As(p.Member.Name)
	return agent.Serve(ctx, id, p.Env, agent.ServeIn{
		Sessions: mine, Turns: &llm.Runner{Sessions: mine, Resolve: p.resolve, Texts: texts{p}}, Model: ref,
		First: p.first(ctx), Prompt: p.Member.Spec.Prompt, Interrupt: p.Interrupt, Quota: account{p}, Hide: p.secrets.Hide,
	})
}

// begin makes what sessions need.
func (p *Program) begin(id agent.Identity) {
	p.id, p.spaces, p.providers = id, map[string]*tools.Space{}, map[string]string{}
}

// birthModel is the model that a spawn has asked for, as the override that a new session
// begins with.
func birthModel(s string) (team.SpecModel, error) {
	if s == "" {
		return team.SpecModel{}, nil
	}
	ref, err := model.ParseRef(s)
	return team.SpecModel{Provider: ref.Provider, Model: ref.Model}, err
}
