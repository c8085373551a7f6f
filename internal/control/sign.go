package control

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// sign records when a supervisor was last seen running: the modification time of its lock, which no
// other process changes. It is set when the supervisor has looked at a change of the ledger, when
// it answers a ping, and at its end, so that a supervisor at rest writes nothing.
type sign struct {
	lock    *os.File
	adopted chan struct{} // closed once the ledger's state of members is maintained
}

// newSign begins with the end of the previous supervisor, if that was seen: the file of its pid,
// which says so, is about to be replaced.
func newSign(l team.Layout, lock *os.File) *sign {
	s := &sign{lock: lock, adopted: make(chan struct{})}
	if b, err := regular.ReadFile(l.SupervisorPID()); err == nil {
		if at := team.ParseSupervisorEnd(b); !at.IsZero() {
			s.set(at)
		}
	}
	return s
}

// give records the current time. Before the members are adopted it does nothing, since what the
// ledger says of them is of the previous supervisor.
func (s *sign) give() {
	select {
	case <-s.adopted:
		s.set(time.Now())
	default:
	}
}

func (s *sign) set(at time.Time) {
	raw, err := s.lock.SyscallConn()
	if err != nil {
		return
	}
	tv := unix.NsecToTimeval(at.UnixNano())
	// An error leaves an older time, which is a sign as well.
	_ = raw.Control(func(fd uintptr) { _ = unix.Futimes(int(fd), []unix.Timeval{tv, tv}) })
}
