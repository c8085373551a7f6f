package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// proof is a team without processes, for tests with the real program.
type proof struct {
	t      *testing.T
	layout team.Layout
	dir    string
	bin    string
	env    []string
	killed atomic.Int64 // supervisors killed by flicker
}

// newProof creates a team "t" with members that never run.
func newProof(t *testing.T, members ...string) *proof {
	t.Helper()
	return newProofOn(t, func(string) {}, members...)
}

// newProofOn is newProof with a home directory created by prepare. The cleanup functions of
// prepare run before the directory is removed.
func newProofOn(t *testing.T, prepare func(home string), members ...string) *proof {
	t.Helper()
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := exec.LookPath("teamctl")
	if err != nil {
		t.Fatal(err)
	}
	p := &proof{t: t, dir: dir, bin: bin, layout: team.Home{Dir: filepath.Join(dir, "h")}.Team("t")}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEAMCTL_") && !strings.HasPrefix(kv, "TMUX") {
			p.env = append(p.env, kv)
		}
	}
	p.env = append(p.env, team.EnvHome+"="+p.layout.Home.Dir, team.EnvRuntime+"="+team.RuntimeRoot(),
		"HOME="+dir, "GORACE=atexit_sleep_ms=0 halt_on_error=1", envIdle+"=1m")
	t.Cleanup(func() {
		if err := errors.Join(endAll(dir), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	prepare(p.layout.Home.Dir)
	p.must("create", "t")
	led := p.ledger()
	for _, name := range members {
		_, _, err := led.AddMember(t.Context(), ledger.Member{
			Name: name, SessionKey: team.TeammateSessionKey(""), Role: team.RoleExecutor,
			Desired: team.WantStopped, Observed: team.Completed, Activity: team.ActivityUnknown,
		}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *proof) ledger() *ledger.Ledger {
	p.t.Helper()
	db, err := ledger.Open(p.t.Context(), p.layout.Ledger(), ledger.Options{LockPath: p.layout.LedgerLock(), BusyTimeout: patience})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close() })
	return ledger.New(db, ledger.Direct(db))
}

func (p *proof) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.bin, args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	return cmd
}

// run runs the program and kills it with SIGKILL after killAfter, if that is positive. It is run again
// while the ledger is busy, which changes nothing: on a slow machine many writers may wait for longer than a
// person is to.
func (p *proof) run(killAfter time.Duration, args ...string) (out string, killed bool, err error) {
	for deadline := time.Now().Add(patience); ; {
		out, killed, err = p.runOnce(killAfter, args...)
		if err == nil || !strings.Contains(out, "the ledger is busy") || time.Now().After(deadline) {
			return out, killed, err
		}
	}
}

func (p *proof) runOnce(killAfter time.Duration, args ...string) (out string, killed bool, err error) {
	var buf bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &buf, &buf
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 {
		return buf.String(), true, nil
	}
	if err != nil {
		err = fmt.Errorf("teamctl %s: %w: %s", strings.Join(args, " "), err, buf.String())
	}
	return buf.String(), false, err
}

func (p *proof) must(args ...string) string {
	p.t.Helper()
	out, _, err := p.run(0, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// flicker runs supervisors of the team one after the other and kills each with SIGKILL after a
// while, until ctx is done. killed counts them.
func (p *proof) flicker(ctx context.Context) {
	for ; ctx.Err() == nil; p.killed.Add(1) {
		cmd := p.command("supervise", "--team", "t")
		if err := cmd.Start(); err != nil {
			p.t.Error(err)
			return
		}
		// Some are killed before they listen, most of them at work.
		select {
		case <-time.After(rand.N(400 * time.Millisecond)):
		case <-ctx.Done():
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		// For a while there is none.
		select {
		case <-time.After(rand.N(60 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

// during runs work in n goroutines while supervisors are started and killed.
func (p *proof) during(n int, work func(writer int) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	p.killed.Store(0)
	var wg, flicker sync.WaitGroup
	flicker.Go(func() { p.flicker(ctx) })
	for w := range n {
		wg.Go(func() {
			if err := work(w); err != nil {
				p.t.Error(err)
			}
		})
	}
	wg.Wait()
	cancel()
	flicker.Wait()
}

// TestProofWritersSwitch checks that concurrent writers lose and duplicate nothing while the
// supervisor that commits for them is repeatedly killed and restarted.
func TestProofWritersSwitch(t *testing.T) {
	t.Parallel()
	p := newProof(t)
	writers, each := 16, 8
	if testing.Short() {
		writers, each = 6, 4
	}
	var added atomic.Int64
	p.during(writers, func(w int) error {
		for i := 0; i < each || p.killed.Load() < 3 && i < 100*each; i++ { // a fast machine finishes before the third kill
			if _, _, err := p.run(0, "task", "add", fmt.Sprintf("w%d-%d", w, i)); err != nil {
				return err
			}
			added.Add(1)
		}
		return nil
	})
	led := p.ledger()
	tasks, err := led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	seen, place := map[string]int{}, map[string]int{}
	for _, task := range tasks {
		seen[task.Subject]++
		w, i, _ := strings.Cut(task.Subject, "-")
		if fmt.Sprint(place[w]) != i {
			t.Errorf("task %s of %s comes after %d others", i, w, place[w])
		}
		place[w]++
	}
	if want := int(added.Load()); len(tasks) != want || len(seen) != want {
		t.Fatalf("%d tasks, %d different; want %d", len(tasks), len(seen), want)
	}

	// The same holds for claims: every task is claimed once.
	var mu sync.Mutex
	claimed := map[string]int{}
	p.during(writers, func(int) error {
		for {
			out, _, err := p.run(0, "task", "claim")
			id, ok := strings.CutPrefix(out, "claimed ")
			if err != nil || !ok {
				return err
			}
			id, _, _ = strings.Cut(id, ":")
			mu.Lock()
			claimed[id]++
			mu.Unlock()
		}
	})
	tasks, err = led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if claimed[task.ID] != 1 || task.Attempt != 1 || task.Status != team.TaskClaimed {
			t.Errorf("task %s: claimed by %d processes, %s, attempt %d", task.ID, claimed[task.ID], task.Status, task.Attempt)
		}
	}
	p.sound(led)
}

// TestProofSendersAreKilled checks that many writers can send to one mailbox with the real
// program while every third of their processes and the supervisors are killed. Every committed
// message is in the mailbox once, in the order of its writer.
func TestProofSendersAreKilled(t *testing.T) {
	t.Parallel()
	writers, each := 16, 12
	if testing.Short() {
		writers, each = 6, 4
	}
	// Each writer repeats a send of unknown outcome with the same key, so that every message
	// arrives.
	t.Run("and repeat", func(t *testing.T) {
		p := newProof(t, "box")
		posted := p.hammer(writers, each, true)
		if len(posted) != writers*each {
			t.Errorf("ledger: %d messages, want %d", len(posted), writers*each)
		}
		p.mailed(posted)
	})
	t.Run("and go on", func(t *testing.T) {
		p := newProof(t, "box")
		p.mailed(p.hammer(writers, each, false))
	})
}

// hammer makes every writer send a number of messages while senders and supervisors are killed.
// It returns the messages in the ledger, each "writer-number", in order.
func (p *proof) hammer(writers, each int, repeat bool) []string {
	p.t.Helper()
	var kills atomic.Int64
	p.during(writers, func(w int) error {
		for i := range each {
			key := fmt.Sprintf("w%02d-%02d", w, i)
			for again := true; again; {
				var after time.Duration
				if rand.IntN(3) == 0 {
					after = time.Millisecond + rand.N(60*time.Millisecond)
				}
				_, killed, err := p.run(after, "send", "box", key, "--idempotency-key", key)
				if err != nil {
					return err
				}
				if killed {
					kills.Add(1)
				}
				again = killed && repeat
			}
		}
		return nil
	})
	p.t.Logf("%d senders and %d supervisors were killed", kills.Load(), p.killed.Load())
	messages, err := p.ledger().Messages(p.t.Context(), ledger.MessageFilter{Recipient: "box"})
	if err != nil {
		p.t.Fatal(err)
	}
	var posted []string
	for _, m := range messages {
		posted = append(posted, m.Text)
	}
	return posted
}

// mailed checks that the mailbox has each posted message once, and those of each writer in order,
// after the next supervisor has mailed the remaining ones.
func (p *proof) mailed(posted []string) {
	p.t.Helper()
	sup := p.command("supervise", "--team", "t")
	if err := sup.Start(); err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = sup.Process.Kill(); _ = sup.Wait() }()
	box, err := inbox.Open(p.layout.Inboxes(), p.layout.Locks(), "box")
	if err != nil {
		p.t.Fatal(err)
	}
	led := p.ledger()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		out, err := led.Undelivered(p.t.Context(), 0)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(out) == 0 {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%d messages were never mailed", len(out))
		}
	}
	entries, err := box.Entries(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	want, got := perWriter(posted), perWriter(texts)
	for w := range want {
		if got[w] != want[w] {
			p.t.Errorf("of writer %s\nthe ledger has  %s\nthe mailbox has %s", w, want[w], got[w])
		}
		if ordered := strings.Fields(want[w]); !slices.IsSorted(ordered) || len(slices.Compact(ordered)) != len(strings.Fields(want[w])) {
			p.t.Errorf("of writer %s the ledger has %s", w, want[w])
		}
	}
	if len(texts) != len(posted) {
		p.t.Errorf("%d messages in the mailbox, %d in the ledger", len(texts), len(posted))
	}
	p.sound(led)
}

// perWriter lists the numbers of each writer's messages in their order.
func perWriter(texts []string) map[string]string {
	out := map[string]string{}
	for _, text := range texts {
		w, i, _ := strings.Cut(text, "-")
		out[w] += i + " "
	}
	return out
}

func (p *proof) sound(led *ledger.Ledger) {
	p.t.Helper()
	problems, err := led.Check(p.t.Context())
	if err != nil || len(problems) > 0 {
		p.t.Errorf("the ledger: %v, %v", problems, err)
	}
	left, err := filepath.Glob(filepath.Join(p.layout.Inboxes(), "*.corrupt-*"))
	if err != nil || len(left) > 0 {
		p.t.Errorf("torn mailboxes: %v, %v", left, err)
	}
}

func messagesTo(name string) ledger.MessageFilter { return ledger.MessageFilter{Recipient: name} }

func readMark(id, by string) ledger.DeliveryMark {
	return ledger.DeliveryMark{MessageID: id, Recipient: by, State: team.Read, Evidence: "test"}
}
