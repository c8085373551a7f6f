package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A mailer needs the ledger's write lock between writing the mailbox entry and marking it in the
// ledger. A test that holds this lock stops a mailer exactly there and can kill it.

// lock holds a lock of the team until unlock is called.
func (p *proof) lock(path string) (unlock func()) {
	p.t.Helper()
	held, err := filelock.Lock(p.t.Context(), path)
	if err != nil {
		p.t.Fatal(err)
	}
	return func() {
		if err := held.Unlock(); err != nil {
			p.t.Error(err)
		}
	}
}

// times counts the entries with a message's id.
func (p *proof) times(box, id string) (n int) {
	p.t.Helper()
	entries, err := p.box(box).Entries(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if e.ID == id {
			n++
		}
	}
	return n
}

// until waits for a condition and reports whether it became true in time.
func (p *proof) until(ok func() bool, wait time.Duration) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(wait); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// supervise starts a supervisor and waits until it serves requests.
func (p *proof) supervise() *exec.Cmd {
	p.t.Helper()
	cmd := p.command("supervise", "--team", "t")
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	client := control.NewClient(p.layout.Socket())
	defer client.Close()
	if !p.until(func() bool { _, err := client.Status(p.t.Context()); return err == nil }, patience) {
		p.t.Fatal("no supervisor came up")
	}
	return cmd
}

// kill9 kills a supervisor once first has returned.
func (p *proof) kill9(sup *exec.Cmd, first func()) {
	first()
	_ = sup.Process.Kill()
	_ = sup.Wait()
}

// delivered waits until every posted message is mailed.
func (p *proof) delivered() {
	p.t.Helper()
	led := p.ledger()
	if !p.until(func() bool {
		out, err := led.Undelivered(p.t.Context(), 0)
		return err == nil && len(out) == 0
	}, patience) {
		p.t.Fatal("not everything was mailed")
	}
}

func (p *proof) remove(path string) {
	p.t.Helper()
	if err := os.Remove(path); err != nil {
		p.t.Fatal(err)
	}
}

// once checks that the mailbox contains a message once and that the ledger has it as mailed.
func (p *proof) once(led *ledger.Ledger, how, id string) {
	p.t.Helper()
	p.until(func() bool {
		d, err := led.Delivery(p.t.Context(), id, "box")
		return err == nil && d.State != team.Posted
	}, patience)
	d, err := led.Delivery(p.t.Context(), id, "box")
	if n := p.times("box", id); n != 1 || err != nil || d.State != team.Mailed {
		p.t.Errorf("after %s the message is in the mailbox %d times and is %s, %v", how, n, d.State, err)
	}
}

// killSender sends a message and kills the sender between the two steps.
func (p *proof) killSender(led *ledger.Ledger) (id string) {
	p.t.Helper()
	guard := filepath.Join(p.layout.Locks(), "box.guard")
	for range 50 { // a sender may be delayed for longer than the test waits
		letIn := p.lock(guard)
		before, err := led.Messages(p.t.Context(), ledger.MessageFilter{})
		if err != nil {
			p.t.Fatal(err)
		}
		cmd := exec.Command(p.bin, "send", "box", "x")
		cmd.Env, cmd.Dir = p.env, p.dir
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
		posted := p.until(func() bool {
			now, err := led.Messages(p.t.Context(), ledger.MessageFilter{})
			if err == nil && len(now) > len(before) {
				id = now[len(now)-1].ID
			}
			return err != nil || len(now) > len(before)
		}, patience)
		if !posted || id == "" {
			p.t.Fatal("nothing was posted")
		}
		letMark := p.lock(p.layout.LedgerLock())
		letIn()
		there := p.until(func() bool { return p.times("box", id) > 0 }, time.Second)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		letMark()
		if there {
			if d, err := led.Delivery(p.t.Context(), id, "box"); err != nil || d.State != team.Posted {
				p.t.Fatalf("the sender got further: %+v, %v", d, err)
			}
			return id
		}
		p.must("send", "box", "after") // mails the previous one first
	}
	p.t.Fatal("no sender was in time")
	return ""
}

// TestMailOnceThoughTheSenderIsKilled kills a sender after it has written the mailbox entry and
// before it has marked it. The next mailer finds the entry.
func TestMailOnceThoughTheSenderIsKilled(t *testing.T) {
	t.Parallel()
	p := newProof(t, "box")
	led := p.ledger()
	for how, repair := range map[string]func(){
		"the next message":    func() { p.must("send", "box", "next") },
		"doctor --repair":     func() { p.repair(); p.must("send", "box", "next") },
		"a deleted mailbox":   func() { p.remove(p.box("box").Path()); p.must("send", "box", "next") },
		"the supervisor":      func() { p.kill9(p.supervise(), p.delivered) },
		"two supervisors":     func() { p.kill9(p.supervise(), func() {}); p.kill9(p.supervise(), p.delivered) },
		"its recipient's eye": func() { p.must("inbox", "box"); p.must("send", "box", "next") },
	} {
		id := p.killSender(led)
		repair()
		p.once(led, how, id)
	}
	// If the recipient reads it and marks it as read meanwhile, it is not delivered again.
	id := p.killSender(led)
	if _, err := p.box("box").MarkAllRead(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.must("send", "box", "next")
	p.once(led, "a look at it", id)
	p.settle() // a delayed sender leaves its message to others
	if unread, err := p.box("box").Unread(t.Context()); err != nil || len(unread) != 1 {
		t.Errorf("%d are unread, %v", len(unread), err)
	}
}

// TestMailOnceThoughTheSupervisorIsKilled is the same for a supervisor that mails the message of
// a dead sender.
func TestMailOnceThoughTheSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	p := newProof(t, "box")
	led := p.ledger()
	for _, how := range []string{"the next supervisor", "the next message"} {
		sup := p.supervise()
		letIn := p.lock(filepath.Join(p.layout.Locks(), "box.guard"))
		msg, _, err := led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "box", Text: how})
		if err != nil {
			t.Fatal(err)
		}
		letMark := p.lock(p.layout.LedgerLock())
		letIn()
		if !p.until(func() bool { return p.times("box", msg.ID) > 0 }, patience) {
			t.Fatal("the supervisor did not mail it")
		}
		p.kill9(sup, func() {})
		letMark()
		if d, err := led.Delivery(t.Context(), msg.ID, "box"); err != nil || d.State != team.Posted {
			t.Fatalf("the supervisor got further: %+v, %v", d, err)
		}
		if how == "the next message" {
			p.must("send", "box", "next")
		} else {
			p.kill9(p.supervise(), p.delivered)
		}
		p.once(led, how, msg.ID)
	}
}
