package mail

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Damage that restoring itself meets costs no message: the one whose turn it was
// is put back too.
func TestRestoreMeetsDamage(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
			if _, err := m.restore(ctx, box, to.SessionKey); err == nil {
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

// A member that starts again finds the mail in its mailbox that a damaged or deleted
// file had lost: whoever finds the damage repairs it, and then nothing shows it.
func TestStartPutsBackLostMail(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(r *rig, box *inbox.Box) error{
		"damaged": func(_ *rig, box *inbox.Box) error { return os.WriteFile(box.Path(), []byte("[{"), 0o600) },
		"deleted": func(_ *rig, box *inbox.Box) error { return os.Remove(box.Path()) },
		"damaged, and a reader repaired it": func(r *rig, box *inbox.Box) error {
			if err := os.WriteFile(box.Path(), []byte(`[{"from":"x","text":"0"},`), 0o600); err != nil {
				return err
			}
			if _, err := box.Unread(r.Context()); !damaged(err) {
				r.Errorf("damage was not found: %v", err)
			}
			if n, err := box.Unread(r.Context()); err != nil || len(n) != 1 {
				r.Errorf("not repaired: %v, %v", n, err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m, to, box := r.mailed("1", "2", "3")
			to.StartedAt = 1
			if err := hurt(r, box); err != nil {
				t.Fatal(err)
			}
			if err := m.Fresh(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			want := []string{"1", "2", "3"}
			if name == "damaged, and a reader repaired it" {
				want = append([]string{"0"}, want...)
			}
			r.holds(box, want...)
			if m.lacking(box) {
				t.Error("the mark is left")
			}
		})
	}
}

// A mailbox is deleted while a message waits for its lock: the message does not make
// a file that hides what is missing.
func TestMailboxDeletedUnderASender(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("1", "2")
	held, err := filelock.Lock(t.Context(), filepath.Join(r.layout.Locks(), "a.guard"))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		_, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "3"})
		sent <- err
	}()
	there := time.NewTimer(200 * time.Millisecond) // for it to have looked and to wait
	defer there.Stop()
	<-there.C
	if err := os.Remove(box.Path()); err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for again := time.Nanosecond; again > 0; <-tick.C { // where it was too late it is the supervisor's
		if _, again, err = m.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.holds(box, "1", "2", "3")
}

// TestMailboxDeletedAtAnyMoment: whatever the moment at which a mailbox is deleted
// while it is written and restored, a file that is there lacks nothing, or is marked.
func TestMailboxDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("first")
	want := []string{"first"}
	took := time.Millisecond
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for i := range rounds {
		deleted := make(chan struct{})
		began := time.Now()
		at := began.Add(time.Duration(rand.Int64N(int64(took)))) // any moment will do
		go func() {
			defer close(deleted)
			for time.Now().Before(at) {
				runtime.Gosched()
			}
			_ = os.Remove(box.Path())
		}()
		want = append(want, strconv.Itoa(i))
		_, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		took = max(time.Millisecond, time.Since(began))
		<-deleted
		if ds[0].State != team.Mailed { // deleted again and again: the supervisor mails it
			if err := m.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !m.lacking(box) {
			if entries, err := box.Entries(t.Context()); err != nil || len(entries) != len(want) {
				t.Fatalf("%d of %d messages in a mailbox that is not marked, %v", len(entries), len(want), err)
			}
		}
	}
	if err := m.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	r.holds(box, want...)
}
