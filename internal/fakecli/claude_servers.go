package fakecli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// servers are the MCP servers of a session: those of --mcp-config, those of the person,
// and those of the repository that the person has consented to. It asks for consent where
// there is no answer yet, and keeps the answer in the settings of the repository.
func (c *claudeSession) servers(ctx context.Context, flags map[string][]string) (map[string]mcpServer, error) {
	var given, project struct{ MCPServers map[string]mcpServer }
	if err := readJSON(one(flags, "--mcp-config"), &given); err != nil {
		return nil, err
	}
	if _, strict := flags["--strict-mcp-config"]; strict {
		return given.MCPServers, nil
	}
	file, err := homeFile(".claude.json")
	if err != nil {
		return nil, err
	}
	var person struct {
		MCPServers map[string]mcpServer
		Projects   map[string]struct{ MCPServers map[string]mcpServer }
	}
	if err := readJSON(file, &person); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(c.dir, ".mcp.json"), &project); err != nil {
		return nil, err
	}
	places := placesOf(ctx, c.dir)
	all := map[string]mcpServer{}
	maps.Copy(all, person.MCPServers)
	consented, err := c.consented(ctx, places, slices.Sorted(maps.Keys(project.MCPServers)))
	if err != nil {
		return nil, err
	}
	for _, name := range consented {
		all[name] = project.MCPServers[name]
	}
	for _, p := range places {
		maps.Copy(all, person.Projects[p].MCPServers)
	}
	maps.Copy(all, given.MCPServers)
	return all, nil
}

// consented are those of the names that the person has consented to. The newest version
// keeps that in the repository for all of its work trees, an older one in each.
func (c *claudeSession) consented(ctx context.Context, places, names []string) ([]string, error) {
	root := places[0]
	if claudeIs(claudeNewest) {
		root = places[len(places)-1]
	}
	file := filepath.Join(root, ".claude", "settings.local.json")
	var said struct {
		EnabledMcpjsonServers  []string `json:"enabledMcpjsonServers,omitempty"`
		DisabledMcpjsonServers []string `json:"disabledMcpjsonServers,omitempty"`
	}
	if err := readJSON(file, &said); err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains(said.EnabledMcpjsonServers, n) || slices.Contains(said.DisabledMcpjsonServers, n)
	})
	if len(open) > 0 {
		dialog := []string{"", rule, fmt.Sprintf("  %d new MCP servers found in this project", len(open)), "  Select any you wish to enable.", ""}
		for i, n := range open {
			mark := "   "
			if i == 0 {
				mark = "  ❯"
			}
			dialog = append(dialog, mark+" [✔] "+n)
		}
		if c.screen.ask(ctx, append(dialog, "       Enable selected", " Space to select · Esc to reject all")) == "1" {
			said.EnabledMcpjsonServers = append(said.EnabledMcpjsonServers, open...)
		} else {
			said.DisabledMcpjsonServers = append(said.DisabledMcpjsonServers, open...)
		}
		b, err := json.Marshal(said)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			err = os.WriteFile(file, b, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("keep the answer: %w", err)
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(said.EnabledMcpjsonServers, n) }), nil
}
