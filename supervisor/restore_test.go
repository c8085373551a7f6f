package supervisor

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// mailed posts messages to a member of a team without a supervisor.
func (r *rig) mailed(texts ...string) (Mailer, ledger.Member, *inbox.Box) {
	r.Helper()
	to, _, err := r.led.AddMember(r.Context(), ledger.Member{
		SessionKey: team.TeammateSessionKey("a"), Name: "a", Desired: team.WantStopped, Observed: team.Pending,
		Activity: team.ActivityUnknown, Spec: ledger.MemberSpec{WorktreeMode: "none"},
	}, true)
	if err != nil {
		r.Fatal(err)
	}
	m := Mailer{r.layout, r.led}
	for _, text := range texts {
		if _, _, err := m.Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text}); err != nil {
			r.Fatal(err)
		}
	}
	box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), "a")
	if err != nil {
		r.Fatal(err)
	}
	return m, to, box
}

func (r *rig) holds(box *inbox.Box, want ...string) {
	r.Helper()
	entries, err := box.Entries(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	slices.Sort(texts)
	if !slices.Equal(texts, want) {
		r.Errorf("the mailbox holds %v; want %v", texts, want)
	}
}

// Damage that restoring itself meets costs no message: the one whose turn it was
// is put back too.
func TestRestoreMeetsDamage(t *testing.T) {
	r := newRig(t)
	m, to, box := r.mailed("1", "2", "3")
	if err := os.WriteFile(box.Path(), []byte("[]garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	r.holds(box, "1", "2", "3")
}

// A restoring that was cut short is gone on with, though the mailbox looks sound.
func TestRestoreCutShortIsGoneOnWith(t *testing.T) {
	for name, next := range map[string]func(*testing.T, Mailer) []string{
		"the next supervisor": func(t *testing.T, m Mailer) []string {
			if err := m.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			return []string{"1", "2", "3"}
		},
		"the next message": func(t *testing.T, m Mailer) []string {
			if _, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "4"}); err != nil {
				t.Fatal(err)
			}
			return []string{"1", "2", "3", "4"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m, to, box := r.mailed("1", "2", "3")
			if err := os.Remove(box.Path()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := m.restore(ctx, box, to.SessionKey); err == nil {
				t.Fatal("restored without time")
			}
			// What came as far as the file before it was cut short.
			all, err := r.led.Mailbox(t.Context(), to.SessionKey, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := box.Append(t.Context(), m.entry(t.Context(), all[0].Message)); err != nil {
				t.Fatal(err)
			}
			r.holds(box, next(t, m)...)
			if m.lacking(box) {
				t.Error("the mark is left")
			}
		})
	}
}
