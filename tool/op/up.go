package op

import (
	"context"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TeamUpIn names a team file.
type TeamUpIn struct {
	File     string `json:"file,omitempty" jsonschema:"Path of the team file; teamctl.yaml in the working directory if left out."`
	TeamName string `json:"team_name,omitempty" jsonschema:"Name of the team, instead of the one in the file."`
	DryRun   bool   `json:"dry_run,omitempty" jsonschema:"Report what differs, and change nothing."`
	Remove   bool   `json:"remove,omitempty" jsonschema:"Also remove members and pending tasks that an earlier up made and the file no longer has."`
	Bypass   bool   `json:"dangerously_skip_permissions,omitempty" jsonschema:"Allow members of the file in mode bypassPermissions."`
}

// teamUp gives no consent: only a person does, at a shell.
func teamUp(ctx context.Context, s *Session, in TeamUpIn) (tool.UpOut, error) {
	c := s.outsider()
	if err := checkMode(ctx, c); err != nil {
		return tool.UpOut{}, err
	}
	switch t, _, err := s.Open(ctx, ""); {
	case err == nil:
		_ = t.Close() // it was only read
	case team.ReasonOf(err) == team.ReasonMode:
		return tool.UpOut{}, err // of the lead of the current team, whichever team the file names
	}
	out, err := s.Env.Up(ctx, c, tool.UpIn{
		File: in.File, Team: in.TeamName, DryRun: in.DryRun, Remove: in.Remove, Bypass: in.Bypass,
		TMUX: s.Place.TMUX, TMUXPane: s.Place.TMUXPane, Who: s.caller,
	})
	if err == nil && !in.DryRun {
		s.setCurrent(out.Team.TeamName)
	}
	return out, err
}
