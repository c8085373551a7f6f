package bridge

import (
	"context"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// TestRest: with nothing to bring over the bridge does nothing, also while mail waits
// behind unread mail and a refused entry lies in a mailbox.
func TestRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	if err := (program{native: r.native(), inPlace: true}).mail(r, "researcher", team.LeadName, "unread"); err != nil {
		t.Fatal(err)
	}
	if err := (program{native: r.native(), ids: true}).mail(r, "codex", "ghost", "refused"); err != nil {
		t.Fatal(err)
	}
	r.send(r.caller(codex), "researcher", "waits")

	b := r.begun()
	r.follows(b)
	r.until("the waiting is told", func() bool { return r.said(NoteWaits, "researcher") })
	r.rests(b, 500*time.Millisecond)

	// An event wakes it: the program reads its mail, and gets what waited.
	if _, err := (program{native: r.native(), inPlace: true}).take(r, "researcher"); err != nil {
		t.Fatal(err)
	}
	r.until("the mail that waited arrives", func() bool {
		entries, err := readBox(r.native(), "researcher")
		return err == nil && len(entries) == 2 && entries[1].Text == "waits"
	})
}

// begun is a bridge that has begun and holds its lock until the end of the test.
func (r *rig) begun() *bridge {
	r.Helper()
	b, unlock, err := open(r.Context(), r.in())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := unlock(); err != nil {
			r.Error(err)
		}
	})
	if err := b.begin(context.WithoutCancel(r.Context())); err != nil { // it lasts until the clean-up
		r.Fatal(err)
	}
	return b
}

// follows has the bridge follow all changes until the end of the test.
func (r *rig) follows(b *bridge) {
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	done := make(chan error, 1)
	go func() { done <- b.follow(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			r.Error(err)
		}
	})
}

// rests waits until the bridge has done nothing for long.
func (r *rig) rests(b *bridge, long time.Duration) {
	r.Helper()
	was, since := b.passes.Load(), time.Now()
	r.until("the bridge rests", func() bool {
		if now := b.passes.Load(); now != was {
			was, since = now, time.Now()
		}
		return time.Since(since) > long
	})
}
