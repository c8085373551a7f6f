package bridge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// look is the program's look at a mailbox without the lock: it takes what is unread, and marks it
// later. The system's record of the read is later than the last write.
func (w program) look(r *rig, name string) (texts []string) {
	r.Helper()
	path := filepath.Join(w.inboxes(), name+".json")
	info, err := os.Stat(path)
	if err != nil {
		r.Fatal(err)
	}
	r.until("a read that is later than the write", func() bool {
		if time.Since(info.ModTime()) < 20*time.Millisecond { // a tick of the kernel's clock is shorter
			return false
		}
		data, err := os.ReadFile(path)
		if err != nil {
			r.Fatal(err)
		}
		return len(data) > 0
	})
	for _, e := range r.box(name) {
		if !e.Read {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// mark is the end of a look: all that is there then is marked.
func (w program) mark(r *rig, name string) {
	r.Helper()
	path := filepath.Join(w.inboxes(), name+".json")
	err := w.edit(r, path, func(list []map[string]any) []map[string]any {
		for _, e := range list {
			e["read"] = true
		}
		return list
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) unread(name string) (n int) {
	r.Helper()
	for _, e := range r.box(name) {
		if !e.Read {
			n++
		}
	}
	return n
}

// needsReads skips a test where the system does not record reads.
func needsReads(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	b, err := (&bridge{native: native{dir, nativeName}, locks: dir}).box("x")
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	err = errors.Join(os.MkdirAll(filepath.Dir(b.Path()), 0o700), os.WriteFile(b.Path(), []byte("[]"), 0o600), os.Chtimes(b.Path(), long.Add(-time.Hour), long))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(b.Path()); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.ReadSince(); !ok {
		t.Skip("this file system records no reads")
	}
}

// TestMarkedLate: Claude Code 2.1.112 marks what it has read only when it has drawn it, and reads
// again before. It finds nothing then, for the bridge has marked it; what follows is added when the
// program has written its own marks, which it writes to all that is there.
func TestMarkedLate(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
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
	defer func() {
		stop()
		if err := errors.Join(<-done, unlock()); err != nil {
			t.Error(err)
		}
	}()

	p := program{native: r.native(), inPlace: true}
	long := strings.Repeat("long ", 10_000)
	first := r.send(r.caller(codex), "researcher", long)
	r.until("it is in the mailbox", func() bool { return r.unread("researcher") == 1 })
	if got := p.look(r, "researcher"); len(got) != 1 {
		t.Fatalf("the first look takes %d", len(got))
	}
	r.until("the bridge has marked it", func() bool { return r.unread("researcher") == 0 })
	if got := p.look(r, "researcher"); len(got) != 0 {
		t.Fatalf("the second look takes %d", len(got))
	}
	r.state(first, "researcher", team.Injected) // a read is not a receipt
	if err := p.turn(r, "researcher", []string{long}); err != nil {
		t.Fatal(err)
	}
	r.until("it is accepted", func() bool {
		d, err := r.team.Ledger.Delivery(t.Context(), first, "researcher")
		if err != nil {
			t.Fatal(err)
		}
		return d.State == team.Accepted
	})

	r.send(r.caller(codex), "researcher", "next")
	r.until("it waits", func() bool { return r.said(NoteWaits, "researcher") })
	if n := len(r.box("researcher")); n != 1 {
		t.Fatalf("%d entries before the program's mark", n)
	}
	p.mark(r, "researcher")
	r.until("the next is there", func() bool { return r.unread("researcher") == 1 })
	if got := p.look(r, "researcher"); len(got) != 1 || got[0] != "next" {
		t.Fatalf("it has %q", got)
	}
}

// stepped is a bridge that the test runs pass by pass. Each pass follows a look at what was read.
func (r *rig) stepped() (b *bridge, pass func()) {
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
	if err := b.begin(context.WithoutCancel(r.Context())); err != nil {
		r.Fatal(err)
	}
	b.taken.setReports(true)
	return b, func() {
		r.Helper()
		if err := b.taken.look(r.Context(), "researcher"); err != nil {
			r.Fatal(err)
		}
		if _, err := b.pass(r.Context()); err != nil {
			r.Fatal(err)
		}
	}
}

// TestReadByAnother: another program reads the mailbox, a backup for one, so the bridge marks what
// was not taken. It is given again when the program has read without it for long enough, and the
// bridge marks nothing more there.
func TestReadByAnother(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	if err := p.turn(r, "researcher", []string{"before"}); err != nil {
		t.Fatal(err)
	}
	b, pass := r.stepped()
	b.patience = 0
	id := r.send(r.caller(codex), "researcher", "not taken")
	pass()
	p.look(r, "researcher")
	for range 3 { // nothing reads it now: its program may be held up
		pass()
	}
	if n := r.unread("researcher"); n != 0 {
		t.Fatalf("%d are unread", n)
	}
	r.state(id, "researcher", team.Injected)
	for range 2 {
		p.look(r, "researcher")
		pass()
		box := r.box("researcher")
		if len(box) != 2 || box[1].Read || box[1].ID != id || box[1].Text != knownAlready+"\n\nnot taken" {
			t.Fatalf("researcher has %+v", box)
		}
	}
	if _, err := p.take(r, "researcher"); err != nil {
		t.Fatal(err)
	}
	pass()
	r.state(id, "researcher", team.Accepted)
}

// TestMarksItsOwnOnly: mail that did not come over the bridge cannot be given again, and is left
// as it is.
func TestMarksItsOwnOnly(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	_, pass := r.stepped()
	r.send(r.caller(codex), "researcher", "ours")
	pass()
	if err := p.mail(r, "researcher", team.LeadName, "of its lead"); err != nil {
		t.Fatal(err)
	}
	p.look(r, "researcher")
	pass()
	if box := r.box("researcher"); len(box) != 2 || !box[0].Taken || box[1].Read {
		t.Errorf("researcher has %+v", box)
	}
}

// TestLeftToTheProgram: a member in the process of its lead takes one message at each look, and a
// newer program takes mail under the lock: there the bridge marks nothing.
func TestLeftToTheProgram(t *testing.T) {
	t.Parallel()
	needsReads(t)
	for name, change := range map[string][2]string{
		"in the process of its lead": {`"%3"`, `"` + team.PaneInProcess + `"`},
		"newer":                      {`"leadSessionId"`, `"leadProcess": {"pid": 1}, "leadSessionId"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			text, err := os.ReadFile(r.native().config())
			if err != nil {
				t.Fatal(err)
			}
			r.write(r.native().config(), strings.Replace(string(text), change[0], change[1], 1))
			codex := r.member("codex")
			r.once()
			_, pass := r.stepped()
			r.send(r.caller(codex), "researcher", "one")
			pass()
			if got := (program{native: r.native()}).look(r, "researcher"); len(got) != 1 {
				t.Fatalf("it sees %q", got)
			}
			pass()
			if n := r.unread("researcher"); n != 1 {
				t.Error("it was marked")
			}
		})
	}
}
