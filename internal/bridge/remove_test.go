package bridge

import (
	"context"
	"os"
	"testing"

	"github.com/teamctl/teamctl/internal/readwatch"
)

// TestRemoveWhileItIsWritten: some versions write config.json in place, so it may be read half
// written. Remove reads it again.
func TestRemoveWhileItIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.member("codex")
	r.once()
	whole, err := os.ReadFile(r.native().config())
	if err != nil {
		t.Fatal(err)
	}
	r.write(r.native().config(), string(whole[:len(whole)/2]))
	reads := make(chan struct{}, 1)
	w, err := readwatch.Watch(r.native().team(), func(readwatch.Event) {
		select {
		case reads <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- Remove(context.WithoutCancel(t.Context()), r.in()) }()
	for range 3 { // more than one attempt makes
		select {
		case <-reads:
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		}
	}
	r.write(r.native().config(), string(whole))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.config().Member("codex") != nil {
		t.Error("codex is still there")
	}
}

// TestRemove takes the members of each side out of the other, and leaves the rest.
func TestRemove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.member("codex")
	before, err := os.ReadFile(r.native().config())
	if err != nil {
		t.Fatal(err)
	}
	r.once()
	if err := Remove(t.Context(), r.in()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(r.native().config()); err != nil || string(after) != string(before) {
		t.Errorf("the config is not what it was (%v):\n%s", err, after)
	}
	if m, err := r.team.Ledger.Member(t.Context(), "researcher"); err != nil || m.RemovedAt == 0 {
		t.Errorf("researcher stayed (%v)", err)
	}
}
