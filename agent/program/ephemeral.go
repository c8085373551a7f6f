package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// ephemeral is what stands behind the conversation in each request of a turn, and is
// written nowhere: what children have announced, the todo list,
// what runs in the background, the mode and the date.
func (p *Program) ephemeral(ctx context.Context, turn ledger.ClaimedTurn, space *tools.Space) (string, error) {
	m, err := p.Team.Ledger.MemberBySession(ctx, p.id.Session)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, a := range turn.Announces {
		text, err := announced(a)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	if todo := space.Todo(); todo != "" {
		parts = append(parts, "[Context: todo]\n"+todo+"\n[/Context]")
	}
	if list := space.Background(); len(list) > 0 {
		parts = append(parts, "[Context: commands in the background]\n"+strings.Join(list, "\n")+"\n[/Context]")
	}
	mode := m.Spec.Mode
	if mode == "" {
		mode = team.ModeDefault
	}
	parts = append(parts, fmt.Sprintf("[Context: session]\nMode: %s\nDate: %s\n[/Context]", mode, time.Now().Format(time.DateOnly)))
	return strings.Join(parts, "\n\n"), nil
}

// announced is the result of a child as its parent's turn is shown it. No text of a child
// can end the block, or look like another one.
func announced(a ledger.Announced) (string, error) {
	var meta struct {
		AgentID   string `json:"source_agent_id"`
		AgentName string `json:"source_agent_name"`
		Task      struct {
			Label string `json:"label"`
		} `json:"task"`
		Result struct {
			Summary   string `json:"summary"`
			Artifacts []struct {
				Path string `json:"path"`
				SHA  string `json:"sha"`
			} `json:"artifacts"`
		} `json:"result"`
	}
	if err := json.Unmarshal(a.Meta, &meta); err != nil {
		return "", fmt.Errorf("read announce %s: %w", a.Key, err)
	}
	var artifacts []string
	for _, f := range meta.Result.Artifacts {
		artifacts = append(artifacts, f.Path+f.SHA)
	}
	text := fmt.Sprintf("From: %s#%s\nTask: %s\nResult: %s\nArtifacts: %s",
		meta.AgentName, meta.AgentID, meta.Task.Label, meta.Result.Summary, strings.Join(artifacts, " "))
	text = strings.NewReplacer("[/Context]", "[/ Context]", "[Context:", "[ Context:").Replace(text)
	return "[Context: subagent_announce]\n" + text + "\n[/Context]", nil
}
