package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// traffic posts messages and adds tasks all along, whatever happens to the team.
// What was acknowledged has to be there in the end.
type traffic struct {
	w      *world
	rand   *rand.Rand
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	posted  []string // ids of messages that were acknowledged
	tasks   []string
	refused int     // by a full disk or the cap
	wrong   []error // refused for no good reason
	lenient bool    // the disk is full: errors are in order
	left    int     // messages that this round still has
}

// A round posts this many messages, and adds a task for every third: the same number on a slow
// machine as on a fast one, since a backlog makes all later rounds slower.
const perRound = 3

func newTraffic(w *world) *traffic {
	return &traffic{w: w, rand: rand.New(rand.NewPCG(w.opt.seed, 2))}
}

// start continues until stop.
func (t *traffic) start(ctx context.Context) {
	ctx, t.cancel = context.WithCancel(ctx)
	t.over = make(chan struct{})
	go func() {
		defer close(t.over)
		tick := time.NewTicker(120 * time.Millisecond)
		defer tick.Stop()
		for sent := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !t.take() {
				continue
			}
			t.message(ctx)
			if sent++; sent%3 == 0 {
				t.task(ctx)
			}
		}
	}()
}

// next gives the traffic its messages for one more round.
func (t *traffic) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = min(t.left+perRound, 4*perRound)
}

func (t *traffic) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return false
	}
	t.left--
	return true
}

func (t *traffic) stop() {
	if t.cancel != nil {
		t.cancel()
		<-t.over
		t.cancel = nil
	}
}

// message sends to a random member.
func (t *traffic) message(ctx context.Context) {
	to := t.w.members[t.rand.IntN(len(t.w.members))].name
	full := t.full()
	if err := t.send(ctx, to); err != nil {
		t.fail(ctx, full, fmt.Errorf("send to %s: %w", to, err))
	}
}

// send posts one message and remembers it.
func (t *traffic) send(ctx context.Context, to string) error {
	// The end of the traffic does not cancel a post.
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	out, err := t.w.team.Send(c, tool.Person(), tool.SendIn{Recipient: to, Content: fmt.Sprintf("hello %s, it is %s", to, time.Now().Format("15:04:05.000"))})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = append(t.posted, out.MessageID)
	return nil
}

// task adds a task that writes a file; some need the work of an earlier one.
func (t *traffic) task(ctx context.Context) {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	run := `f=work/$TEAMCTL_TASK_ID; mkdir -p work; echo "$TEAMCTL_TASK_ID" > "$f"`
	if t.rand.IntN(3) == 0 {
		run = `read -t 0.3 < <(tail -f /dev/null); ` + run // long enough to be hit
	}
	in := ledger.NewTask{Subject: "write a file", Priority: t.rand.IntN(3)}
	t.mu.Lock()
	if n := len(t.tasks); n > 0 && t.rand.IntN(4) == 0 {
		dep := t.tasks[max(0, n-1-t.rand.IntN(10))]
		in.DependsOn = []string{dep}
		run = "test -s work/" + dep + " || exit 9; " + run
	}
	t.mu.Unlock()
	in.Metadata, _ = json.Marshal(map[string]any{"run": run})
	full := t.full()
	out, err := t.w.team.TaskAdd(c, tool.Person(), tool.TaskAddIn{Tasks: []ledger.NewTask{in}})
	if err != nil {
		t.fail(ctx, full, fmt.Errorf("add a task: %w", err))
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range out {
		t.tasks = append(t.tasks, x.ID)
	}
}

// full reports whether errors are permitted now.
func (t *traffic) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lenient
}

// fail records an error of an operation that must work whatever is dead. full is whether errors
// were permitted when it began: what met a full disk may answer long after there is space again.
func (t *traffic) fail(ctx context.Context, full bool, err error) {
	if ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if full || t.lenient || team.CodeOf(err) == team.CodeLimit {
		t.refused++
		return
	}
	t.wrong = append(t.wrong, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
}

// leniently sets whether errors are permitted from now on.
func (t *traffic) leniently(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lenient = on
}

// acknowledged records a message that a victim was told is posted.
func (t *traffic) acknowledged(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = append(t.posted, ids...)
}

func (t *traffic) snapshot() (posted, tasks []string, wrong []error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrong, t.wrong = t.wrong, nil
	return append([]string(nil), t.posted...), append([]string(nil), t.tasks...), wrong
}
