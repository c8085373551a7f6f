package bridge

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
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

// TestRestsAfterAPass checks that the bridge pauses after each pass, in proportion to what it took, however
// many changes come meanwhile, and that the next pass brings over what has come.
func TestRestsAfterAPass(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.caller(r.member("codex"))
	r.once()
	b := r.begun()
	var resting atomic.Int64
	goOn := make(chan struct{})
	b.rest = func(ctx context.Context, d time.Duration) error {
		if d <= 0 || d > restMost {
			t.Errorf("it rests for %v", d)
		}
		resting.Add(1)
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.follows(b)
	r.until("it rests after its first pass", func() bool {
		r.send(codex, team.LeadName, "a change")
		return resting.Load() == 1 || b.passes.Load() > 3
	})
	if _, err := r.team.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "last"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	if got := b.passes.Load(); got != 1 {
		t.Errorf("%d passes without a rest", got)
	}
	close(goOn)
	r.until("the last change is there", func() bool {
		tasks, _, _, err := r.native().readTasks()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tasks {
			if f.View.Subject == "last" {
				return true
			}
		}
		return false
	})

	for took, want := range map[time.Duration]time.Duration{0: 0, 10 * time.Millisecond: 20 * time.Millisecond, time.Second: 2 * time.Second, time.Minute: restMost} {
		if got := restAfter(took); got != want {
			t.Errorf("after %v it rests for %v, want %v", took, got, want)
		}
	}
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
