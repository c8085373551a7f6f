package supervisor

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func (r *rig) box(name string) *inbox.Box {
	r.Helper()
	b, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), name)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func (r *rig) unread(name string) (texts []string) {
	r.Helper()
	entries, err := r.box(name).Unread(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return texts
}

func (r *rig) shutdown(s *Supervisor, name string) {
	r.Helper()
	if _, err := s.StopMembers(r.Context(), team.StopRequest{Names: []string{name}, Force: true, Remove: true}); err != nil {
		r.Fatal(err)
	}
}

// Member a is shut down with unread mail and its name is used again. The new a gets only the mail
// sent to it, and the sender of the old mail is told.
func TestNameReuseNeverMisroutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	old := r.spawn(s, "a", team.RestartNever)
	mailer := r.mailer()
	to := func(text string) ledger.NewMessage {
		return ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text}
	}
	mailed, _, err := mailer.Post(t.Context(), to("mailed to the old one"))
	if err != nil {
		t.Fatal(err)
	}
	// Its poster was killed before it mailed, or sleeps and wakes up too late.
	posted, ds, err := r.led.Post(t.Context(), to("posted to the old one"))
	if err != nil {
		t.Fatal(err)
	}
	foreign := inbox.Entry{From: "x", Text: "foreign, to the old one", Timestamp: inbox.Timestamp(time.Now().Add(-time.Minute))}
	if err := r.box("a").Append(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	r.shutdown(s, "a")
	fresh := r.spawn(s, "a", team.RestartNever)
	if fresh.Name != "a" || fresh.SessionKey == old.SessionKey {
		t.Fatalf("%+v", fresh)
	}
	mailer.Deliver(t.Context(), ds)
	if ds[0].State != team.Dropped {
		t.Errorf("the late poster is told %+v", ds[0])
	}
	if _, _, err := mailer.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mailer.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mailer.Post(t.Context(), to("for the new one")); err != nil {
		t.Fatal(err)
	}
	if got := r.unread("a"); !slices.Equal(got, []string{"for the new one"}) {
		t.Errorf("the new one gets %q", got)
	}
	for _, id := range []string{mailed.ID, posted.ID} {
		d, err := r.led.Delivery(t.Context(), id, "a")
		if err != nil || d.State != team.Dropped || d.Session != old.SessionKey {
			t.Errorf("%+v, %v", d, err)
		}
	}
}

// Mail sent to a new member before it is up is not mistaken for a former member's.
func TestMailBeforeTheFirstStartStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	row, _, err := r.led.AddMember(t.Context(), ledger.Member{Name: "a", Spec: team.MemberSpec{Agent: "command"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	mailer := r.mailer()
	_, _, err = mailer.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "early"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.box("a").Append(t.Context(), inbox.Entry{From: "x", Text: "foreign", Timestamp: inbox.Timestamp(time.Now().Add(time.Second))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := mailer.Fresh(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.unread("a"); !slices.Equal(got, []string{"early", "foreign"}) {
		t.Errorf("left %q", got)
	}
}

// token is the token in the environment of a member's newest generation.
func (r *rig) token(name string) string {
	r.Helper()
	var found []string
	for _, kv := range r.m.agent(r.layout, name).launch.Env {
		if v, ok := strings.CutPrefix(kv, team.EnvToken+"="); ok {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		r.Fatalf("tokens in the environment: %d", len(found))
	}
	return found[0]
}

func TestEveryGenerationHasItsToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartAlways)
	other := r.spawn(s, "b", team.RestartNever)
	valid := func(session, token string) bool {
		ok, err := r.led.CheckToken(t.Context(), session, token)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	first := r.token("a")
	if !valid(m.SessionKey, first) || valid(other.SessionKey, first) || len(first) < 40 {
		t.Errorf("token of a: %d characters", len(first))
	}
	file := r.layout.Bundle("a").Token()
	data, err := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(data)) != first {
		t.Errorf("file: %v", err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	// A supervisor that adopts the agent keeps its token; a new generation gets a new token.
	s.Close()
	r.supervisor()
	if !valid(m.SessionKey, first) {
		t.Error("the token did not outlive the supervisor")
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	<-r.m.events
	r.wait("a", "restarted", func(now ledger.Member) bool { return now.Generation != m.Generation && now.Observed == team.Running })
	second := r.token("a")
	if second == first || !valid(m.SessionKey, second) || valid(m.SessionKey, first) {
		t.Error("the token of the generation before still counts")
	}
	// It is nowhere that people or other programs read.
	row, err := r.led.Member(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(r.layout.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(shown), string(config)} {
		for _, secret := range []string{second, ledger.HashToken(second)} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret stands in %s", text)
			}
		}
	}
}

// A supervisor has no process to manage for a program that has joined.
func TestJoinedMembersAreNotSupervised(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before, _, err := r.led.AddMember(t.Context(), ledger.Member{
		Name: "guest", Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	st, err := s.Status(t.Context())
	if err != nil || len(st.Members) != 1 {
		t.Errorf("%+v, %v", st.Members, err)
	}
	if now, err := r.led.Member(t.Context(), "guest"); err != nil || now.Observed != before.Observed {
		t.Errorf("%+v, %v", now, err)
	}
}
