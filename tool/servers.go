package tool

import (
	"context"
	"reflect"

	"github.com/teamctl/teamctl/team"
)

// settingServers is the setting with the MCP servers of the team's file, by name. It is set with
// the person's consent if the file came with a repository.
const settingServers = "mcp"

// Servers returns the MCP servers that the team's file defines for agents of kind llm.
func (t *Team) Servers(ctx context.Context) (servers map[string]team.MCPServer, err error) {
	_, err = t.Ledger.Setting(ctx, settingServers, &servers)
	return servers, err
}

// SetServers sets the MCP servers of the team's file.
func (t *Team) SetServers(ctx context.Context, c Caller, servers map[string]team.MCPServer) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	for name, s := range servers {
		if err := s.Validate(name); err != nil {
			return err
		}
	}
	is, err := t.Servers(ctx)
	if err != nil || len(is) == 0 && len(servers) == 0 || reflect.DeepEqual(is, servers) {
		return err
	}
	var v any
	if len(servers) > 0 {
		v = servers
	}
	return t.as(c).Set(ctx, settingServers, v)
}
