package bridge

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/readwatch"
	"github.com/teamctl/teamctl/team"
)

// look is the program's look at a mailbox without the lock: it takes what is unread, and marks it
// later. It leaves no access time.
func (w program) look(r *rig, name string) (texts []string) {
	r.Helper()
	f, err := os.OpenFile(filepath.Join(w.inboxes(), boxFile(name)), os.O_RDONLY|noAccessTime, 0)
	if err != nil {
		r.Fatal(err)
	}
	_, err = io.Copy(io.Discard, f)
	if err := errors.Join(err, f.Close()); err != nil {
		r.Fatal(err)
	}
	return unreadOf(r, name)
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

// needsReads skips a test where the system does not report reads.
func needsReads(t *testing.T) {
	t.Helper()
	w, err := readwatch.Watch(t.TempDir(), func(readwatch.Event) {})
	if err != nil {
		t.Skip(err)
	}
	w.Close()
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
	b := r.begun()
	b.starts.reads = 0
	r.follows(b)
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

// TestReadWhileNoBridgeRuns: what the program has read while the bridge was killed is marked by the
// next one, where the file system records the read.
func TestReadWhileNoBridgeRuns(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	r.send(r.caller(codex), "researcher", "long")
	r.once()
	path := filepath.Join(r.native().inboxes(), boxFile("researcher"))
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long.Add(-time.Hour), long); err != nil { // no two in one tick of the kernel's clock
		t.Fatal(err)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if box, err := (&bridge{native: r.native(), locks: t.TempDir()}).box("researcher"); err != nil {
		t.Fatal(err)
	} else if _, ok := box.ReadSince(); !ok {
		t.Skip("this file system records no reads")
	}
	_, pass := r.stepped()
	pass() // it learns what it has handed over
	pass()
	if n := r.unread("researcher"); n != 0 {
		t.Errorf("%d are unread", n)
	}
}

// stepped is a bridge that the test runs pass by pass. Each pass follows a look at what was read.
func (r *rig) stepped() (b *bridge, pass func()) {
	r.Helper()
	b = r.begun()
	r.Cleanup(b.taken.watch(func() {}))
	b.starts.reads = 0
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
