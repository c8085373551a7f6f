package supervisor

import (
	"slices"

	"github.com/teamctl/teamctl/ledger"
)

// setHidden writes the list of hidden panes to the ledger and config.json.
func (s *Supervisor) setHidden(list []string) error {
	ctx, cancel := s.write()
	defer cancel()
	row, err := s.cfg.Ledger.UpdateTeam(ctx, ledger.TeamPatch{Hidden: &list})
	if err == nil {
		s.team = row
		s.publisher.Publish()
	}
	return err
}

// notHidden removes panes from that list: a member's previous pane, and its new one, since a
// restarted tmux server reuses ids.
func (s *Supervisor) notHidden(panes ...string) {
	list := without(s.team.Hidden, panes...)
	if len(list) == len(s.team.Hidden) {
		return
	}
	if err := s.setHidden(list); err != nil {
		s.log.Warn("forget hidden panes", "panes", panes, "err", err)
	}
}

func without(list []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(id string) bool { return slices.Contains(gone, id) })
}
