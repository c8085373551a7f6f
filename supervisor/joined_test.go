package supervisor

import (
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// joins adds a program that has joined by itself.
func (r *rig) joins(name string) ledger.Member {
	r.Helper()
	m, _, err := r.led.AddMember(r.Context(), ledger.Member{Name: name, Role: team.RoleExecutor,
		Desired: team.WantStopped, Observed: team.Pending, Spec: team.MemberSpec{Agent: team.AgentExternal, WorktreeMode: "none"}}, true)
	if err != nil {
		r.Fatal(err)
	}
	mkdir(r.T, string(r.layout.Bundle(name)))
	if err := os.WriteFile(r.layout.Bundle(name).Token(), []byte("x"), 0o600); err != nil {
		r.Fatal(err)
	}
	return m
}

func (r *rig) asksJoined(m ledger.Member, deadline time.Time) ledger.Message {
	r.Helper()
	in, err := services.JoinedRequest(team.LeadName, m, "done", deadline)
	if err != nil {
		r.Fatal(err)
	}
	msg, _, err := r.mailer().Post(r.Context(), in)
	if err != nil {
		r.Fatal(err)
	}
	return msg
}

// A program that joined and was asked to leave is removed from the roster at the deadline, by the
// supervisor that runs then. One that has rejected stays.
func TestJoinedDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent, no, later := r.joins("silent"), r.joins("no"), r.joins("later")
	// Before the first supervisor: its deadline has passed meanwhile.
	r.asksJoined(silent, time.Now().Add(-time.Second))
	refused := r.asksJoined(no, time.Now().Add(-time.Second))
	text, err := inbox.Encode(inbox.ShutdownRejected{RequestID: refused.RequestID, From: "no", Reason: "not now", Timestamp: inbox.Timestamp(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindShutdownRejected, From: "no", To: team.LeadName,
		RequestID: refused.RequestID, Parent: refused.ID, Text: text}); err != nil {
		t.Fatal(err)
	}
	r.idle = time.Millisecond // it stays for as long as a deadline is open
	s := r.supervisor()
	gone := func(m ledger.Member) bool { return m.RemovedAt != 0 }
	r.wait("silent", "off the roster", gone)
	<-s.Done()

	r.asksJoined(later, time.Now().Add(time.Second))
	s = r.supervisor()
	if m := r.wait("later", "off the roster", gone); m.RemovedAt == 0 {
		t.Error("the supervisor has left before the deadline")
	}
	<-s.Done()
	if m, err := r.led.Member(t.Context(), "no"); err != nil || m.RemovedAt != 0 {
		t.Errorf("one that rejected: %+v, %v", m, err)
	}
	if _, err := os.Stat(r.layout.Bundle("silent").Token()); !os.IsNotExist(err) {
		t.Errorf("its token: %v", err)
	}
	told, err := r.led.Messages(t.Context(), ledger.MessageFilter{Kind: inbox.TeammateTerminated{}.Kind()})
	if err != nil || len(told) != 2 {
		t.Errorf("%d notices, %v", len(told), err)
	}
}

// A running supervisor keeps the deadline of a request that comes later.
func TestJoinedDeadlineOfANewRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.joins("silent")
	r.supervisor()
	r.asksJoined(m, time.Now().Add(50*time.Millisecond))
	r.wait("silent", "off the roster", func(m ledger.Member) bool { return m.RemovedAt != 0 })
}
