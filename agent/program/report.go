package program

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// History is what a workspace may be as well: it tells which commits have appeared in it.
type History interface {
	// Since returns the commits that are checked out and that from does not have, the oldest
	// first.
	Since(ctx context.Context, from string) ([]string, error)
}

// reports returns the commit that is checked out when a turn begins, and what reports on
// the turn at its end. A turn that goes on in another process keeps the commit of its first.
func (p *Program) reports(ctx context.Context, turn ledger.TurnJob) (head string, report func(context.Context) json.RawMessage) {
	history, ok := p.Env.Workspace.(History)
	if !ok {
		return "", nil
	}
	var before struct {
		Head string `json:"head"`
	}
	if len(turn.Effective) > 0 {
		_ = json.Unmarshal(turn.Effective, &before) // it is ours
	}
	if head = before.Head; head == "" {
		var err error
		if head, err = p.Env.Workspace.Head(ctx); err != nil || head == "" {
			return "", nil // a repository without a commit
		}
	}
	return head, func(ctx context.Context) json.RawMessage {
		commits, err := history.Since(ctx, head)
		if err != nil {
			if p.Env.Out != nil {
				_, _ = fmt.Fprintf(p.Env.Out, "the commits of the turn are not known: %v\n", err)
			}
			return nil
		}
		if len(commits) == 0 {
			return nil
		}
		raw, err := json.Marshal(team.TurnReport{Commits: commits})
		if err != nil {
			return nil // texts only
		}
		return raw
	}
}
