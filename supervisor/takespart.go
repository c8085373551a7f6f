package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// takesPartLimit bounds the check of a program's actions in the team.
const takesPartLimit = 2 * time.Second

// takesPart reports whether a program that is not known to answer shutdown requests has used the
// team since its start: it has read mail, sent some, or worked on tasks. Such a program is asked
// too, and ended at the deadline if it does not answer.
func (s *Supervisor) takesPart(row ledger.Member) bool {
	ctx, cancel := context.WithTimeout(s.ctx, takesPartLimit)
	defer cancel()
	does, err := s.mailer().TakesPart(ctx, row, row.StartedAt)
	if err != nil {
		s.log.Warn("look whether a member reads its mail", "member", row.Name, "err", err)
	}
	return does
}
