package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/team"
)

const (
	modelsAll  = 60 // lines of /models
	modelsEach = 8  // of one provider
)

// commands are the lines of a chat that are no messages.
const commandHelp = `/models [PROVIDER]      models that can be asked
/model [PROVIDER/MODEL] show the model of this session, or set another
/agents                 agents of the team; * is the active one
/agent ID|NAME          make another one active
/queue                  what waits for the next turn
/compact [WHAT TO KEEP] sum up the conversation
/interrupt              interrupt the current turn
/approvals              what waits for an answer
/approve N [ANSWER]     allow it; a question needs the answer
/reject N WHY           refuse it
/sessions               conversations of the team
/help                   this list`

// command carries out a line that begins with a slash. It is the person's own: in mail a
// slash is a character.
func (ch *chat) command(ctx context.Context, member, text string) error {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "models":
		return ch.models(ctx, rest)
	case "model":
		return ch.model(ctx, member, rest)
	case "agents":
		return ch.agentsOf(ctx, member)
	case "agent":
		return ch.agent(ctx, member, rest)
	case "queue":
		return ch.queue(ctx, member, rest)
	case "compact":
		if err := ch.team.Compact(ctx, ch.caller, member, rest); err != nil {
			return err
		}
		ch.out.line("The conversation is summed up in the next turn.")
		return nil
	case "interrupt":
		return ch.team.Interrupt(ctx, ch.caller, member)
	case "approvals":
		list, err := ch.team.Approvals(ctx, false)
		for _, p := range list {
			ch.out.line("%d %s: %s", p.ID, p.Name, printable(p.Subject))
		}
		if err == nil && len(list) == 0 {
			ch.out.line("Nothing waits for an answer.")
		}
		return err
	case "approve", "reject":
		if ch.pane {
			ch.out.line("Nothing is approved in the pane of a member. In your shell: teamctl approvals")
			return nil
		}
		return ch.answer(ctx, name == "approve", rest)
	case "sessions":
		list, err := ch.team.Sessions(ctx, ch.caller, false)
		for _, s := range list {
			ch.out.line("%s%s %s (%s)", strings.Repeat("  ", s.Depth), s.Key, printable(s.Label), sessionTurn(s))
		}
		return err
	case "help":
		ch.out.line("%s", commandHelp)
		return nil
	}
	ch.out.line("Unknown command `/%s`. Use /help to list them.", printable(name))
	return nil
}

// models lists models, some of each provider.
func (ch *chat) models(ctx context.Context, provider string) error {
	cfg, err := config.Load(ch.team.Layout.Home)
	if err != nil {
		return err
	}
	list, err := cfg.List(ctx, provider, false)
	if err != nil {
		return err
	}
	for _, l := range modelLines(list) {
		ch.out.line("%s", printable(l))
	}
	return nil
}

func modelLines(list []config.Listed) []string {
	var out []string
	for _, p := range list {
		for i, m := range p.Models {
			if i == modelsEach || len(out) == modelsAll {
				break
			}
			out = append(out, model.Ref{Provider: p.Provider, Model: m.ID}.String())
		}
		if n := len(p.Models) - modelsEach; n > 0 && len(out) < modelsAll {
			out = append(out, fmt.Sprintf("+ (%d more)", n))
		}
	}
	return out
}

// model shows or sets the session's model.
func (ch *chat) model(ctx context.Context, member, text string) error {
	if text == "" {
		s, err := ch.team.Session(ctx, member)
		if err != nil {
			return err
		}
		now := modelName(s)
		if now == "" {
			now = "that of agent " + s.ActiveAgentID
		}
		ch.out.line("Model: %s", printable(now))
		return nil
	}
	ref, err := model.ParseRef(text)
	if err != nil {
		ch.out.line("Usage: /model <provider>/<model>. Use /models to see current.")
		return nil
	}
	if _, err := ch.team.Env.CheckModel(ctx, text); err != nil {
		return err
	}
	if _, err := ch.team.SetModel(ctx, ch.caller, member, ref.Provider, ref.Model); err != nil {
		return err
	}
	ch.out.line("Model override set to `%s` for this session.", ref)
	return nil
}

func (ch *chat) agentsOf(ctx context.Context, member string) error {
	s, err := ch.team.Session(ctx, member)
	if err != nil {
		return err
	}
	specs, err := ch.team.Specs(ctx)
	for _, sp := range specs {
		mark := "  "
		if sp.ID == s.ActiveAgentID {
			mark = "* "
		}
		ch.out.line("%s%s (%s) %s", mark, printable(sp.Name), id8(sp.ID), printable(sp.Description))
	}
	return err
}

// agent makes another spec active.
func (ch *chat) agent(ctx context.Context, member, text string) error {
	if text == "" {
		ch.out.line("Usage: /agent <agent_id|agent_name>. Use /agents to list.")
		return nil
	}
	_, spec, err := ch.team.SetAgent(ctx, ch.caller, member, text, true)
	if team.ReasonOf(err) == team.ReasonSpecNotFound {
		ch.out.line("No agent found for `%s`. Use /agents to list (match by id or name).", printable(text))
		return nil
	}
	if err == nil {
		ch.out.line("Switched to agent `%s` (%s) for this session.", printable(spec.Name), id8(spec.ID))
	}
	return err
}

func id8(id string) string { return id[:min(8, len(id))] }

// queue shows the one mode that there is, and what waits.
func (ch *chat) queue(ctx context.Context, member, text string) error {
	if text != "" && text != "steer-backlog" {
		ch.out.line("Unsupported queue mode `%s`. Supported modes: `steer-backlog`.", printable(text))
		return nil
	}
	s, err := ch.team.Session(ctx, member)
	if err != nil {
		return err
	}
	list, err := ch.team.Ledger.Backlog(ctx, s.Key)
	if err != nil {
		return err
	}
	ch.out.line("Queue mode: steer-backlog")
	for _, b := range list {
		ch.out.line("- %s", printable(firstLine(b.Text)))
	}
	if len(list) == 0 {
		ch.out.line("The backlog is empty.")
	}
	return nil
}
