package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Identity is who the worker is.
type Identity struct {
	AgentID          string // name@team
	Name             string
	Team             string // key
	Color            string
	ParentSession    string
	AgentType        string
	Session          string // session key: the owner of its tasks
	Generation       string // of this start
	Role             team.Role
	Model            string
	Mode             team.Mode
	PlanModeRequired bool
}

// Env is what the worker works with. Ledger, Box and Post are needed; everything
// else has a zero value that works.
type Env struct {
	Ledger Ledger
	Box    Mailbox
	// Post posts a message durably and delivers it.
	Post func(context.Context, ledger.NewMessage) (ledger.Message, error)
	// Mail rings when the mailbox may have changed; the caller owns the watch. Nil:
	// the mailbox is looked at when the ledger changes, as it does with every delivery.
	Mail <-chan struct{}
	// Workspace is the worker's own worktree. Nil: it runs in Dir, merges and
	// commits nothing.
	Workspace Workspace
	Dir       string    // where commands run
	Out       io.Writer // the worker's screen; its errors are ignored
	Environ   []string  // the environment of commands, KEY=VALUE
	Commands  run.Book  // where commands are recorded while they run; the zero value records nothing
	// Ready is called once the worker takes messages.
	Ready func()
	Now   func() time.Time
	// Grace is how long a command has between SIGTERM and SIGKILL; 0 for five
	// seconds, half of what the supervisor gives the worker itself.
	Grace time.Duration
}

// Workspace is the worker's own worktree.
type Workspace interface {
	// Merge merges the commits that are not contained yet. A conflict is coded
	// CodeConflict with the reason merge_conflict and leaves the tree as it was.
	Merge(ctx context.Context, commits []string, message string) error
	// Commit commits everything that is not ignored; changed is false when there is nothing.
	Commit(ctx context.Context, message string) (sha string, files []string, changed bool, err error)
	// Head is the commit that is checked out.
	Head(ctx context.Context) (string, error)
}

// Checkpointer is what a Workspace may be as well: it saves the state of the
// worktree, cheaply when nothing has changed. It is called when a task is done and
// when the worker becomes idle; its error is told and harms no task.
type Checkpointer interface {
	Checkpoint(ctx context.Context, why string) error
}

// Ledger is what the worker needs of the team's ledger; *ledger.Ledger is one.
type Ledger interface {
	Task(ctx context.Context, id string) (ledger.Task, error)
	Tasks(ctx context.Context, f ledger.TaskFilter) ([]ledger.Task, error)
	Runnable(ctx context.Context, owner string) (bool, error)
	Claim(ctx context.Context, in ledger.ClaimIn) (*ledger.Task, error)
	Start(ctx context.Context, ref ledger.TaskRef) error
	Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result) (ready []string, err error)
	CompleteVerified(ctx context.Context, ref ledger.TaskRef, res ledger.Result, command string) (ready []string, err error)
	Fail(ctx context.Context, ref ledger.TaskRef, res ledger.Result) error
	Release(ctx context.Context, ref ledger.TaskRef) error
	RenewLeases(ctx context.Context, sessions []string, lease time.Duration) (int64, error)
	Member(ctx context.Context, name string) (ledger.Member, error)
	MemberBySession(ctx context.Context, session string) (ledger.Member, error)
	UpdateMember(ctx context.Context, p ledger.MemberPatch) (ledger.Member, error)
	DidSince(ctx context.Context, m ledger.Member, since ledger.TurnMark) (ledger.Did, error)
	Message(ctx context.Context, id string) (ledger.Message, error)
	Messages(ctx context.Context, f ledger.MessageFilter) ([]ledger.Message, error)
	Mailbox(ctx context.Context, session string, after int64) ([]ledger.Outgoing, error)
	Deliveries(ctx context.Context, messageID string) ([]ledger.Delivery, error)
	Mark(ctx context.Context, m ledger.DeliveryMark) (moved bool, err error)
	Changes(ctx context.Context) (wakes <-chan struct{}, stop func(), err error)
}

// Mailbox is what the worker needs of its mailbox; *inbox.Box is one.
type Mailbox interface {
	Unread(ctx context.Context) ([]inbox.Entry, error)
	Consume(ctx context.Context, limit int, keep func(inbox.Entry) bool) ([]inbox.Entry, error)
}

// lookEvery is the shortest time between two looks at a ledger that keeps
// changing: a team of idle workers must not read it once per write of others.
// The first look after a quiet time is immediate.
const lookEvery = 25 * time.Millisecond

// worker is one life of a worker. Everything here belongs to the goroutine of Run.
type worker struct {
	id   Identity
	env  Env
	out  *output
	life string // uuid: makes the notices of this life its own

	changes  <-chan struct{}
	lastLook time.Time
	again    time.Duration // pause before the next look after an error; 0 for none

	next     *ledger.Task // claimed on request, not begun
	activity team.Activity
	last     *outcome        // of the newest task
	mark     ledger.TurnMark // what the next idle notice tells from
	broken   bool            // the turn was ended by somebody
	failed   string          // the turn was ended by an error
	notified bool            // this idle period has been announced
	periods  int
	mailErr  string                         // last complaint about the mailbox
	handled  map[string]bool                // by entry, until it is marked read
	owed     map[string]ledger.DeliveryMark // receipts by entry: handled, and not noted in the ledger
}

// newWorker returns a life with the environment completed.
func newWorker(id Identity, env Env) *worker {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.Grace <= 0 {
		env.Grace = killGrace
	}
	if env.Out == nil {
		env.Out = io.Discard
	}
	return &worker{
		id: id, env: env, out: newOutput(env.Out), life: team.NewUUID(),
		handled: map[string]bool{}, owed: map[string]ledger.DeliveryMark{},
	}
}

// Run works until a shutdown request has been approved (nil) or ctx ends (an
// error that wraps its cause). Any other error means that it cannot work:
// a broken worktree, a team or member that is gone.
func Run(ctx context.Context, id Identity, env Env) (err error) {
	w := newWorker(id, env)
	changes, stop, err := env.Ledger.Changes(ctx)
	if err != nil {
		return fmt.Errorf("worker %s: watch the ledger: %w", id.AgentID, err)
	}
	defer stop()
	w.changes = changes
	defer w.letGo(ctx)

	w.did(ctx)

	w.out.line("%s: worker ready in %s", id.AgentID, env.Dir)
	if err := w.loop(ctx); err != nil {
		if ctx.Err() != nil {
			w.out.line("%s: stopped: %v", id.AgentID, context.Cause(ctx))
			return fmt.Errorf("worker %s: %w", id.AgentID, context.Cause(ctx))
		}
		w.out.line("%s: cannot go on: %v", id.AgentID, err)
		return fmt.Errorf("worker %s: %w", id.AgentID, err)
	}
	return nil
}

func (w *worker) loop(ctx context.Context) error {
	if err := w.recover(ctx); err != nil {
		return err
	}
	if w.env.Ready != nil {
		w.env.Ready()
	}
	for {
		w.again = 0
		if w.readMail(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t, err := w.nextTask(ctx)
		if err != nil {
			return err
		}
		if t != nil {
			if err := w.work(ctx, *t); err != nil {
				return err
			}
			continue
		}
		w.idle(ctx)
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

// wait returns at the next event, and not sooner than lookEvery after the last
// time that it did.
func (w *worker) wait(ctx context.Context) error {
	var retry <-chan time.Time
	if w.again > 0 {
		t := time.NewTimer(w.again)
		defer t.Stop()
		retry = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case _, ok := <-w.changes:
		if !ok {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.New("the watch of the ledger ended")
		}
	case _, ok := <-w.env.Mail:
		if !ok {
			w.env.Mail = nil // the ledger still tells of deliveries
		}
	case <-retry:
	}
	if d := lookEvery - time.Since(w.lastLook); d > 0 {
		if err := pause.For(ctx, d); err != nil {
			return err
		}
	}
	w.lastLook = time.Now()
	return nil
}

// letGo gives back a task that was claimed and never begun.
func (w *worker) letGo(ctx context.Context) {
	if w.next != nil {
		w.release(ctx, *w.next, "not begun")
		w.next = nil
	}
}
