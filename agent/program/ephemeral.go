package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// behind is the content that a request shows after its conversation, besides the mode and the
// date.
type behind struct {
	announces  []ledger.Announced // of children
	memory     string             // memory entries relevant to the turn
	todo       string
	background []string // commands
}

// ephemeral returns the text after the conversation in each request of a turn, which is not
// stored.
func (p *Program) ephemeral(ctx context.Context, b behind) (string, error) {
	m, err := p.Team.Ledger.MemberBySession(ctx, p.id.Session)
	if err != nil {
		return "", err
	}
	var parts []string
	state, err := p.teamState(ctx)
	if err != nil {
		return "", err
	}
	if state != "" {
		parts = append(parts, within("team", state))
	}
	for _, a := range b.announces {
		text, err := announced(a)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	for _, c := range []struct{ name, text string }{
		{"memory", b.memory}, {"todo", b.todo}, {"commands in the background", strings.Join(b.background, "\n")},
	} {
		if c.text != "" {
			parts = append(parts, within(c.name, c.text))
		}
	}
	mode := m.Spec.Mode
	if mode == "" {
		mode = team.ModeDefault
	}
	parts = append(parts, fmt.Sprintf("[Context: session]\nMode: %s\nDate: %s\n[/Context]", mode, time.Now().Format(time.DateOnly)))
	return strings.Join(parts, "\n\n"), nil
}

// announced formats the result of a child for its parent's turn.
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
	return within("subagent_announce", text), nil
}

// within returns a block of the ephemeral part. No text can end the block, or look like another
// one.
func within(name, text string) string {
	text = strings.NewReplacer("[/Context]", "[/ Context]", "[Context:", "[ Context:").Replace(strings.TrimSpace(text))
	return "[Context: " + name + "]\n" + text + "\n[/Context]"
}
