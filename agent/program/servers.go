package program

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/mcp"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/team"
)

// serversOf returns the MCP servers of the team's file and of the user's config.yaml, which takes
// precedence for a name in both.
func (p *Program) serversOf(ctx context.Context, cfg *config.Config) (map[string]team.MCPServer, error) {
	servers, err := p.Team.Servers(ctx)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(servers)
	if all == nil {
		all = map[string]team.MCPServer{}
	}
	maps.Copy(all, cfg.MCP)
	return all, nil
}

// mcpTools returns the tools of MCP servers, which all sessions of the member share. The first
// turn starts the servers; after a change of the configuration, the next turn restarts them. The
// screen shows changes of servers that are down.
func (p *Program) mcpTools(ctx context.Context, cfg *config.Config, servers map[string]team.MCPServer, space *tools.Space) []tools.Tool {
	p.mu.Lock()
	if p.servers != nil && !reflect.DeepEqual(p.serves, servers) {
		p.servers.Close()
		p.servers = nil
	}
	if p.servers == nil && len(servers) > 0 && p.spaces != nil {
		p.servers = mcp.New(mcp.Options{Servers: servers, Dir: p.Env.Dir, Env: p.environ(cfg), Enter: p.enter})
	}
	p.serves = servers
	set := p.servers
	p.mu.Unlock()
	if set == nil {
		return nil
	}
	list, troubles := set.Tools(ctx)
	p.tell(troubles)
	out := make([]tools.Tool, 0, len(list))
	for _, t := range list {
		out = append(out, tools.Tool{Tool: t.Tool, Class: tools.MCP, ReadOnly: t.ReadOnly, Run: func(ctx context.Context, c tools.Call) (tools.Out, error) {
			r, err := set.Call(ctx, t.Name, c.Input)
			if err != nil {
				return tools.Out{}, err
			}
			fit, err := space.Fit(t.Server, r.Text)
			fit.Failed = r.Failed
			return fit, err
		}})
	}
	return out
}

// tell writes the problems of servers to the screen, unless they are the same as in the last turn.
func (p *Program) tell(troubles []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	troubles = slices.Clone(troubles)
	for i, t := range troubles { // the time until the next start changes
		troubles[i], _, _ = strings.Cut(t, "; it is started again")
	}
	if slices.Equal(troubles, p.troubles) {
		return
	}
	p.troubles = troubles
	if p.Env.Out != nil {
		for _, t := range troubles {
			_, _ = fmt.Fprintln(p.Env.Out, t)
		}
	}
}
