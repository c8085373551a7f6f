package bridge

import (
	"context"
	"errors"
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

	b, unlock, err := open(t.Context(), r.in())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.follow(ctx) }()
	r.until("the waiting is told", func() bool { return r.said(NoteWaits, "researcher") })
	was, since := b.passes.Load(), time.Now()
	r.until("the bridge rests", func() bool {
		if now := b.passes.Load(); now != was {
			was, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})

	// An event wakes it: the program reads its mail, and gets what waited.
	if _, err := (program{native: r.native(), inPlace: true}).take(r, "researcher"); err != nil {
		t.Fatal(err)
	}
	r.until("the mail that waited arrives", func() bool {
		entries, err := readBox(r.native(), "researcher")
		return err == nil && len(entries) == 2 && entries[1].Text == "waits"
	})
	stop()
	if err := errors.Join(<-done, unlock()); err != nil {
		t.Error(err)
	}
}
