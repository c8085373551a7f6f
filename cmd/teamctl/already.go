package main

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// answeredApproval is the result of an answer.
type answeredApproval struct {
	tool.Answered
	Mode     team.Mode `json:"permissionMode,omitempty"` // of an approved plan
	ModeFrom string    `json:"modeFrom,omitempty"`       // when the running agent follows
}

// removedService is the result of service uninstall.
type removedService struct {
	tool.Service
	Outcome string `json:"outcome"` // removed or already_removed
}

// sinkList are the sinks, after a change of them or not.
type sinkList struct {
	Sinks   []string `json:"sinks"`
	Outcome string   `json:"outcome,omitempty"` // already_there or already_gone
}

// hiddenMember is the result of hide and show.
type hiddenMember struct {
	Member  string `json:"member"`
	Hidden  bool   `json:"hidden"`
	Outcome string `json:"outcome"` // hidden, shown, already_hidden or already_shown
}

// isHidden reports whether the pane that a member is in is out of sight.
func isHidden(ctx context.Context, t *tool.Team, name string) (bool, error) {
	pane, err := t.Pane(ctx, name)
	if err != nil {
		return false, err
	}
	row, err := t.Ledger.Team(ctx)
	return slices.Contains(row.Hidden, pane.PaneID), err
}
