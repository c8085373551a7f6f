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

// Identity identifies the worker.
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

// Env is the worker's environment. Ledger, Box and Post are required, and Tasks of an agent that
// claims tasks by itself; the zero value of every other field works.
type Env struct {
	Ledger Ledger
	Tasks  Tasks
	Box    Mailbox
	// Post posts a message durably and delivers it.
	Post func(context.Context, ledger.NewMessage) (ledger.Message, error)
	// Mail signals possible changes of the mailbox; the caller owns the watch. Nil: the mailbox is
	// read when the ledger changes, as it does with every delivery.
	Mail <-chan struct{}
	// Workspace is the worker's own worktree. Nil: it runs in Dir, and neither merges nor commits.
	Workspace Workspace
	Dir       string    // working directory of commands
	Out       io.Writer // the worker's screen; its errors are ignored
	Environ   []string  // the environment of commands, KEY=VALUE
	Commands  run.Book  // where commands are recorded while they run; the zero value records nothing
	// Ready is called once the worker takes messages.
	Ready func()
	Now   func() time.Time
	// Grace is the time between SIGTERM and SIGKILL for a command; 0 means five seconds, half of
	// what the supervisor gives the worker itself.
	Grace time.Duration
}

// Workspace is the worker's own worktree.
type Workspace interface {
	// Merge merges the commits that are not contained yet. A conflict is CodeConflict with the
	// reason merge_conflict and leaves the tree unchanged.
	Merge(ctx context.Context, commits []string, message string) error
	// Commit commits everything that is not ignored; changed is false if there is nothing to
	// commit.
	Commit(ctx context.Context, message string) (sha string, files []string, changed bool, err error)
	// Head returns the commit that is checked out.
	Head(ctx context.Context) (string, error)
}

// Checkpointer is an optional interface of a Workspace: it saves the state of the worktree,
// cheaply if nothing has changed. It is called when a task is done and when the worker becomes
// idle; its error is only reported.
type Checkpointer interface {
	Checkpoint(ctx context.Context, why string) error
}

// Tasks is the board for an agent that works on tasks; *tool.Work implements it. Claim refuses with
// CodeDenied if the role or the mode of the agent does not allow it to take tasks, and returns nil if
// no task with a command is ready. Complete asks the team's hooks; passed is the command that has
// verified the task, "" for none.
type Tasks interface {
	Claim(ctx context.Context, id string) (*ledger.Task, error)
	Start(ctx context.Context, ref ledger.TaskRef) error
	Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result, passed string) error
	Fail(ctx context.Context, ref ledger.TaskRef, res ledger.Result) error
	Release(ctx context.Context, ref ledger.TaskRef) error
}

// Ledger is the part of the team's ledger that the worker uses itself: what it reads, its activity,
// and the receipts of its mail; *ledger.Ledger implements it.
type Ledger interface {
	Task(ctx context.Context, id string) (ledger.Task, error)
	Tasks(ctx context.Context, f ledger.TaskFilter) ([]ledger.Task, error)
	Runnable(ctx context.Context, owner string) (bool, error)
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
	ChangesFor(ctx context.Context, member string) (wakes <-chan struct{}, stop func(), err error)
}

// Mailbox is the part of its mailbox that the worker uses; *inbox.Box implements it.
type Mailbox interface {
	Unread(ctx context.Context) ([]inbox.Entry, error)
	Consume(ctx context.Context, limit int, keep func(inbox.Entry) bool) ([]inbox.Entry, error)
}

// lookEvery is the minimum time between two reads of a ledger that keeps changing: a team of idle
// workers must not read it once per write of others. The first read after a quiet time is
// immediate.
const lookEvery = 25 * time.Millisecond

// worker is one life of a worker. Only the goroutine of Run uses it.
type worker struct {
	id   Identity
	env  Env
	out  *output
	life string // uuid that distinguishes the notices of this life

	changes  <-chan struct{}
	lastLook time.Time
	again    time.Duration // pause before the retry after an error; 0 for none

	next     *ledger.Task // claimed on request, not started
	activity team.Activity
	last     *outcome        // of the newest task
	mark     ledger.TurnMark // start of the next idle notice's summary
	broken   bool            // the turn was interrupted
	failed   string          // error that ended the turn
	notified bool            // this idle period has been announced
	periods  int
	unsaved  string                         // why a checkpoint is owed; "" for none
	mailErr  string                         // last reported error of the mailbox
	handled  map[string]bool                // by entry, until it is marked read
	owed     map[string]ledger.DeliveryMark // receipts by entry: handled, and not recorded in the ledger yet
}

// newWorker returns a worker with a completed environment.
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

// Run works until a shutdown request has been approved (nil) or ctx ends (an error that wraps its
// cause). Any other error means that it cannot work: a broken worktree, or a deleted team or
// member.
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
	defer w.save(ctx)
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
			w.save(ctx)
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

// wait returns at the next event, at least lookEvery after its previous return.
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
			w.env.Mail = nil // the ledger still reports deliveries
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

// letGo releases a task that was claimed and never started.
func (w *worker) letGo(ctx context.Context) {
	if w.next != nil {
		w.release(ctx, *w.next, "not begun")
		w.next = nil
	}
}
