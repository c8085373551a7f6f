package bridge

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// joins enters the native member anew, at a time.
func (r *rig) joins(at time.Time) {
	r.Helper()
	text, err := os.ReadFile(r.native().config())
	if err != nil {
		r.Fatal(err)
	}
	r.write(r.native().config(), strings.ReplaceAll(string(text), "1795236672316", strconv.FormatInt(at.UnixMilli(), 10)))
}

// spawned does what a lead does after it has entered a teammate in the configuration: it empties the
// mailbox and writes a prompt into it.
func (w program) spawned(r *rig, name, prompt string) {
	r.Helper()
	r.write(filepath.Join(w.inboxes(), name+".json"), "[]")
	if err := w.mail(r, name, team.LeadName, prompt); err != nil {
		r.Fatal(err)
	}
}

// TestMailForOneThatStarts: what is sent to a teammate that starts waits for its prompt, which its
// lead writes into an emptied mailbox, and for the marks of all reads that were under way then: each
// takes what is there, and marks what is there later.
func TestMailForOneThatStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.joins(time.Now())
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	b, pass := r.stepped()
	b.starts.prompt, b.starts.marks = time.Hour, time.Hour
	path := filepath.Join(p.inboxes(), "researcher.json")

	id := r.send(r.caller(codex), "researcher", "before it starts")
	waits := func(when string, has ...string) {
		t.Helper()
		soon, err := b.pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range r.box("researcher") {
			texts = append(texts, e.Text)
		}
		if !slices.Equal(texts, has) {
			t.Fatalf("%s: its mailbox has %q, want %q", when, texts, has)
		}
		if d, err := r.team.Ledger.Delivery(t.Context(), id, "researcher"); err != nil || d.State != team.Mailed {
			t.Fatalf("%s: %+v, %v", when, d, err)
		}
		if waiting := len(has) == 0 || r.unread("researcher") == 0; waiting && !soon {
			t.Errorf("%s: nothing looks again", when)
		}
	}
	waits("before the prompt")
	p.spawned(r, "researcher", "look")
	waits("with the prompt", "look")
	for range 2 { // two reads, before the first mark
		if got := unreadOf(r, "researcher"); !slices.Equal(got, []string{"look"}) {
			t.Fatalf("it takes %q", got)
		}
	}
	p.mark(r, "researcher")
	waits("after the first mark", "look")
	p.mark(r, "researcher")
	waits("after the second mark", "look")

	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	pass()
	got, err := p.take(r, "researcher")
	if err != nil || !slices.Equal(got, []string{"before it starts"}) {
		t.Fatalf("it takes %q, %v", got, err)
	}
	pass()
	r.state(id, "researcher", team.Accepted)
}

// unreadOf returns what a read of a mailbox takes.
func unreadOf(r *rig, name string) (texts []string) {
	r.Helper()
	for _, e := range r.box(name) {
		if !e.Read {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// TestMailForOneWithoutAPrompt: a teammate that has no prompt, since a person has started it, gets
// its mail a while after it has joined, without any other event.
func TestMailForOneWithoutAPrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	joined := time.Now()
	r.joins(joined)
	codex := r.member("codex")
	r.once()
	b := r.begun()
	b.starts.prompt, b.starts.reads = time.Since(joined)+time.Second, time.Second
	r.send(r.caller(codex), "researcher", "hello")
	r.follows(b)
	r.until("it is in the mailbox", func() bool { return r.unread("researcher") == 1 })
}

// TestMailForOneStartedByHand: what is sent to a teammate that nothing is known of waits until its
// program reads the mailbox, and has done so for a while. A program that starts has several reads
// under way, and takes what is there with each. That is so where reads leave no access time, and for
// a teammate without a mailbox.
func TestMailForOneStartedByHand(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	b, pass := r.stepped()
	b.starts.reads, b.starts.marks = time.Hour, time.Hour
	id := r.send(r.caller(codex), "researcher", "hello")
	for range 2 {
		pass()
		if got := p.look(r, "researcher"); len(got) > 0 {
			t.Fatalf("it takes %q at its start", got)
		}
	}
	if d, err := r.team.Ledger.Delivery(t.Context(), id, "researcher"); err != nil || d.State != team.Mailed || !r.said(NoteWaits, "researcher") {
		t.Fatalf("%+v, %v", d, err)
	}
	b.starts.marks = 0
	pass()
	if got, err := p.take(r, "researcher"); err != nil || !slices.Equal(got, []string{"hello"}) {
		t.Fatalf("it takes %q, %v", got, err)
	}
	pass()
	r.state(id, "researcher", team.Accepted)
}

// TestReadsWakeTheBridge: a bridge that waits for a program to read its mailbox does nothing
// meanwhile, and is woken by the reads.
func TestReadsWakeTheBridge(t *testing.T) {
	t.Parallel()
	needsReads(t)
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	b := r.begun()
	b.starts.reads, b.starts.marks = time.Hour, time.Millisecond
	r.send(r.caller(codex), "researcher", "hello")
	r.follows(b)
	r.until("it waits", func() bool { return r.said(NoteWaits, "researcher") })
	r.rests(b, 300*time.Millisecond)
	p := program{native: r.native(), inPlace: true}
	if got := p.look(r, "researcher"); len(got) > 0 {
		t.Fatalf("it takes %q at its start", got)
	}
	r.until("it is in the mailbox", func() bool { return r.unread("researcher") == 1 })
}

// TestMailForOneThatNothingIsKnownOf: a teammate that a person has started long after it was entered
// in the configuration, without a prompt, has no record of a conversation and has reported nothing.
// Its mail arrives, nothing is taken for a receipt, and what it takes without a record is given twice
// at most. Other mail does not wait for that. Its state stays unknown.
func TestMailForOneThatNothingIsKnownOf(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true, busy: true}
	b, pass := r.stepped()
	b.patience = 0
	id := r.send(r.caller(codex), "researcher", "hello")
	takes := func(want ...string) {
		t.Helper()
		pass()
		r.state(id, "researcher", team.Injected)
		got, err := p.take(r, "researcher")
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("it takes %q, %v, want %q", got, err, want)
		}
	}
	takes("hello")
	takes(knownAlready + "\n\nhello")
	pass()
	r.state(id, "researcher", team.Unknown)
	next := r.send(r.caller(codex), "researcher", "next")
	pass()
	r.state(id, "researcher", team.Unknown)
	r.state(next, "researcher", team.Injected)
	if m, err := r.team.Ledger.Member(t.Context(), "researcher"); err != nil || m.Activity != team.ActivityUnknown || m.Ready {
		t.Errorf("it is %s, ready %v, %v", m.Activity, m.Ready, err)
	}
	p.busy = false
	if got, err := p.take(r, "researcher"); err != nil || !slices.Equal(got, []string{"next"}) {
		t.Fatalf("it takes %q, %v", got, err)
	}
	pass()
	r.state(next, "researcher", team.Accepted)
	// Its record is found, and lacks the first message.
	takes(knownAlready + "\n\nhello")
	pass()
	r.state(id, "researcher", team.Accepted)
}

// TestMailForTheLead: a lead has no prompt to wait for, nor has a teammate of a version that takes
// mail under the lock.
func TestMailForTheLead(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{"the lead": team.LeadName, "a newer teammate": "researcher"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			text, err := os.ReadFile(r.native().config())
			if err != nil {
				t.Fatal(err)
			}
			now := strconv.FormatInt(time.Now().UnixMilli(), 10)
			changed := strings.NewReplacer("1795236672316", now, "1795236000000", now).Replace(string(text))
			if to != team.LeadName {
				changed = strings.Replace(changed, `"leadSessionId"`, `"leadProcess": {"pid": 1}, "leadSessionId"`, 1)
			}
			r.write(r.native().config(), changed)
			codex := r.member("codex")
			r.once()
			b, pass := r.stepped()
			b.starts.prompt = time.Hour
			r.send(r.caller(codex), to, "hello")
			pass()
			if n := r.unread(to); n != 1 {
				t.Errorf("%d in the mailbox", n)
			}
		})
	}
}
