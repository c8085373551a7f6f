package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// A mailbox keeps unread messages and the newest read ones. The ledger keeps all of them, and that
// they were read, which only the file had said.
func TestReadMailLeavesTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	row, _, err := r.led.AddMember(ctx, ledger.Member{Name: "a", Spec: team.MemberSpec{Agent: team.AgentExternal}}, true)
	if err != nil {
		t.Fatal(err)
	}
	mailer := r.mailer()
	var ids []string
	post := func(n, bytes int) {
		for range n {
			m, _, err := mailer.Post(ctx, ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a",
				Text: fmt.Sprintf("message %d %s", len(ids), strings.Repeat("x", bytes))})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, m.ID)
		}
	}
	post(mail.KeepRead+10, 300)
	if _, err := r.box("a").MarkAllRead(ctx); err != nil { // as another program does: it tells the ledger nothing
		t.Fatal(err)
	}
	post(5, 300)
	s := r.supervisor()
	count := func() int {
		all, err := r.box("a").Entries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	eventually(t, func() bool { return count() == mail.KeepRead+5 })
	state := func(id string) team.DeliveryState {
		d, err := r.led.Delivery(ctx, id, "a")
		if err != nil {
			t.Fatal(err)
		}
		return d.State
	}
	for i, want := range map[int]team.DeliveryState{0: team.Read, 9: team.Read, 10: team.Mailed, mail.KeepRead + 14: team.Mailed} {
		if got := state(ids[i]); got != want {
			t.Errorf("message %d is %s, want %s", i, got, want)
		}
	}
	if posted, err := r.led.Mailbox(ctx, row.SessionKey, 0); err != nil || len(posted) != len(ids) {
		t.Errorf("the ledger has %d messages, %v", len(posted), err)
	}
	// What left the file does not come back into it.
	if err := mailer.Restore(ctx, row); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != mail.KeepRead+5 {
		t.Errorf("%d entries after a repair", n)
	}
	// Growth is seen while the supervisor is up.
	if _, err := r.box("a").MarkAllRead(ctx); err != nil {
		t.Fatal(err)
	}
	post(20, 8<<10)
	if _, err := r.box("a").MarkAllRead(ctx); err != nil {
		t.Fatal(err)
	}
	post(20, 8<<10)
	eventually(t, func() bool { return count() == mail.KeepRead+20 })
	s.Close()
}

// A held member is on the roster and starts when it is told to, also after the supervisor that
// holds it was killed.
func TestHeldMember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	hold := func(name string) {
		in := team.SpawnRequest{Name: name, Hold: true, Spec: team.MemberSpec{Agent: "command", Command: []string{"agent"}, WorktreeMode: "none", Cwd: r.layout.Dir}}
		out, err := s.Spawn(t.Context(), in)
		if err != nil || out.Member.Observed != team.Pending {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	hold("a")
	hold("b")
	if all, err := r.led.Members(t.Context(), false); err != nil || len(all) != 3 || r.m.starts != 0 {
		t.Fatalf("%d members, %d starts, %v", len(all), r.m.starts, err)
	}
	for range 2 { // the second finds it up
		out, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "a", Held: true})
		if err != nil || out.Member.Observed != team.Running || r.m.starts != 1 {
			t.Fatalf("%+v, %d starts, %v", out, r.m.starts, err)
		}
	}
	if _, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "c", Held: true}); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("%v", err)
	}
	s.Close()
	s = r.supervisor()
	out, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "b", Held: true})
	if err != nil || out.Member.Observed != team.Running || r.m.starts != 2 {
		t.Fatalf("%+v, %d starts, %v", out, r.m.starts, err)
	}
}

// A request in the lead's mailbox is processed when it arrives.
func TestLeadMailIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	looks := make(chan struct{}, 300)
	r.leadMail = func() { looks <- struct{}{} }
	r.supervisor()
	<-looks
	if err := r.box("other").Append(t.Context(), inbox.Entry{From: "x", Text: "not for the lead"}); err != nil {
		t.Fatal(err)
	}
	if err := r.box(team.LeadName).Append(t.Context(), inbox.Entry{From: "x", Text: "please"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-looks:
	case <-time.After(5 * time.Minute):
		t.Fatal("nobody looks")
	}
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never happens")
		}
	}
}
