package mcp

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

//go:embed prompt/*.md
var promptTexts embed.FS

// prompts are texts about coordinating a team.
var prompts = []sdk.Prompt{
	{Name: "team-workflow", Title: "Team workflow", Description: "How to lead a team from its creation to its end, in six steps."},
	{Name: "delegate-mode", Title: "Delegate mode", Description: "What a lead in delegate mode may use, and what it is there for."},
	{Name: "shutdown-reminder", Title: "Shutdown reminder", Description: "For a lead that runs without a person: the team ends before the answer."},
}

func (s *Server) addPrompts() {
	for _, p := range prompts {
		s.sdk.AddPrompt(&p, func(ctx context.Context, _ *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text, err := s.prompt(ctx, p.Name)
			if err != nil {
				return nil, err
			}
			return &sdk.GetPromptResult{Description: p.Description, Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: text}},
			}}, nil
		})
	}
}

// instructions returns the text that the caller gets at the start. For a lead in delegate mode it
// includes what that mode permits, since the client may never read the prompt.
func (s *Server) instructions(ctx context.Context) string {
	t, c, err := s.session.Open(ctx, "")
	if err != nil {
		return instructions // there is no team yet, or the first call reports the error
	}
	text, terr := "", error(nil)
	if c.Session != "" && !c.Person && c.Name != team.LeadName {
		text, terr = introduce(ctx, t, c)
	}
	terr = errors.Join(terr, t.Close())
	if terr == nil && c.Mode == team.ModeDelegate {
		rest, err := s.prompt(ctx, "delegate-mode")
		text, terr = strings.TrimPrefix(text+"\n\n"+rest, "\n\n"), err
	}
	if terr != nil || text == "" {
		return instructions
	}
	return instructions + "\n\n" + text
}

// introduce returns a description of a member and its team, for that member.
func introduce(ctx context.Context, t *tool.Team, c tool.Caller) (string, error) {
	roster, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return "", err
	}
	self := team.Peer{Name: c.Name, Role: c.Role}
	for _, m := range roster {
		if m.Name == c.Name {
			self.Type = m.Spec.AgentType
		}
	}
	return fmt.Sprintf("You are %q, a member of the team %q.\n", c.Name, t.Layout.Key) + team.Introduce(self, tool.PeersOf(c.Name, roster)), nil
}

// prompt returns a prompt with the current team filled in.
func (s *Server) prompt(ctx context.Context, name string) (string, error) {
	b, err := promptTexts.ReadFile("prompt/" + name + ".md")
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if !strings.Contains(text, "{") {
		return text, nil
	}
	t, _, err := s.session.Open(ctx, "")
	if err != nil {
		return "", err
	}
	text = strings.NewReplacer("{teamName}", t.Layout.Key, "{taskListPath}", t.Layout.Ledger()).Replace(text)
	return text, t.Close()
}
