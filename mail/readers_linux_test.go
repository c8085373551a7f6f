package mail

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// rewrite changes a mailbox as another program does that knows no msg_id: it reads the file
// and puts a new one in its place.
func (r *rig) rewrite(box *inbox.Box, keep func(i int, e map[string]any) bool) {
	r.Helper()
	data, err := os.ReadFile(box.Path())
	if err != nil {
		r.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		r.Fatal(err)
	}
	kept := []map[string]any{}
	for i, e := range all {
		if keep(i, e) {
			kept = append(kept, e)
		}
	}
	if data, err = json.Marshal(kept); err != nil {
		r.Fatal(err)
	}
	next := filepath.Join(r.layout.Dir, "next.json")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(next, box.Path()); err != nil {
		r.Fatal(err)
	}
}

// accessTimes skips a test where the file system does not tell that a file was read.
func accessTimes(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Unix(0, 0), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Atim.Sec == 0 {
		t.Skip("the file system keeps no access times")
	}
}

// A reader that drops the keys that it does not know, takes out what it has read, or
// clears its mailbox is given nothing a second time by the next supervisor of another boot,
// and the ledger says how each message is known to be read.
func TestForeignReadersGetNothingTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep func(int, map[string]any) bool
		left []string
		read map[int]string
	}{
		"drops the ids": {func(i int, e map[string]any) bool {
			delete(e, "msg_id")
			e["read"] = i < 2
			return true
		}, []string{"1", "2", "3"}, map[int]string{0: inbox.TakenMarked, 1: inbox.TakenMarked, 2: ""}},
		"removes what it has read": {func(i int, _ map[string]any) bool { return i == 2 }, []string{"3"},
			map[int]string{0: inbox.TakenRemoved, 1: inbox.TakenRemoved, 2: ""}},
		"clears": {func(int, map[string]any) bool { return false }, nil,
			map[int]string{0: inbox.TakenEmptied, 1: inbox.TakenEmptied, 2: inbox.TakenEmptied}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "clears" {
				accessTimes(t)
			}
			r := newRig(t)
			m, to, box := r.mailed("1", "2", "3")
			r.rewrite(box, c.keep)
			for range 2 {
				if err := m.AfterBoot(t.Context(), team.NewUUID()); err != nil {
					t.Fatal(err)
				}
				if err := m.Rebuild(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.holds(box, c.left...)
			}
			all, err := r.led.Mailbox(t.Context(), to.SessionKey, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range all {
				want := team.Mailed
				if c.read[i] != "" {
					want = team.Read
				}
				if d := o.Delivery; d.State != want || want == team.Read && d.Evidence != c.read[i] {
					t.Errorf("message %d is %s, %q", i+1, d.State, d.Evidence)
				}
			}
			if _, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "4"}); err != nil {
				t.Fatal(err)
			}
			r.holds(box, append(c.left, "4")...)
		})
	}
}

// A mailbox that an accident has overwritten, by an older copy or by an empty array, has
// everything again after the next message, the next reading, a repair, or the next
// supervisor, and what had been there says that it may be known.
func TestOverwrittenMailboxIsRestored(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]func(first string) string{
		"an empty array": func(string) string { return "[]" },
		"an older copy":  func(first string) string { return first },
	} {
		for next, do := range map[string]func(*rig, Mailer, ledger.Member) error{
			"a message": func(r *rig, m Mailer, _ ledger.Member) error {
				_, _, err := m.Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "4"})
				return err
			},
			"a reading":    func(r *rig, m Mailer, to ledger.Member) error { return m.Collect(r.Context(), to) },
			"a supervisor": func(r *rig, m Mailer, _ ledger.Member) error { return m.Rebuild(r.Context()) },
			"a repair": func(r *rig, m Mailer, to ledger.Member) error {
				_, err := m.RepairBox(r.Context(), to)
				return err
			},
		} {
			t.Run(what+", "+next, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				m, to, box := r.mailed("1")
				first, err := os.ReadFile(box.Path())
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"2", "3"} {
					if _, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text}); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(box.Path(), []byte(text(string(first))), 0o600); err != nil {
					t.Fatal(err)
				}
				lost := 3
				if what == "an older copy" {
					lost = 2
				}
				if n, err := m.Lost(t.Context(), to); err != nil || n != lost {
					t.Errorf("%d are seen as lost, %v", n, err)
				}
				if err := do(r, m, to); err != nil {
					t.Fatal(err)
				}
				want := []string{"1", "2", "3"}
				if next == "a message" {
					want = append(want, "4")
				}
				r.holds(box, want...)
				entries, err := box.Entries(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					again := e.MayBeKnown()
					if want := e.Text == "2" || e.Text == "3" || e.Text == "1" && lost == 3; again != want {
						t.Errorf("%s says that it may be known: %v", e.Text, again)
					}
				}
				if n, err := m.Lost(t.Context(), to); err != nil || n != 0 {
					t.Errorf("%d are lost, %v", n, err)
				}
			})
		}
	}
}

// A watch sees at once that a mailbox was overwritten: what is lost comes back without any
// command, and what a reader has cleared is known to be read before the
// reader's next look hides that it was.
func TestOverwrittenMailboxIsSeen(t *testing.T) {
	t.Parallel()
	accessTimes(t)
	r := newRig(t)
	m, to, box := r.mailed("1", "2")
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan struct{}, 100)
	wait, err := m.Watch(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
		looks <- struct{}{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer wait()
	defer cancel()
	<-looks
	state := func(i int) team.DeliveryState {
		all, err := r.led.Mailbox(t.Context(), to.SessionKey, 0)
		if err != nil {
			t.Fatal(err)
		}
		return all[i].Delivery.State
	}
	if err := os.WriteFile(box.Path(), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(r.texts(box)) == 2 })
	if _, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "3"}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(box.Path()); err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	if err := os.WriteFile(box.Path(), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return state(2) == team.Read })
	r.holds(box)
}
