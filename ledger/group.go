package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	// maxGroup limits a transaction, and with it the time for which others wait
	// for the lock.
	maxGroup = 512
	// patience limits the wait for writers of the last group that may be about
	// to write again. Without it they split into two halves, each arriving
	// while the other is being committed, and there are twice as many commits.
	patience = 200 * time.Microsecond
)

// Group is the supervisor's Writer: the operations that queue while one group
// is being committed, and those that follow immediately, form the next group,
// so that one fsync serves all of them.
type Group struct {
	db       *DB
	queue    chan *waiting
	patience time.Duration

	mu      sync.RWMutex // held for reading while an operation enters the queue
	stopped bool
	started bool
	done    chan struct{}
}

// waiting is a job in the queue. Whichever moves it out of queued decides its
// fate: the caller whose context ended, or the loop that begins it.
type waiting struct {
	job
	state  atomic.Int32
	answer chan struct{}
}

const (
	queued int32 = iota
	begun
	given // abandoned by the caller
)

// NewGroup returns a Group, which must be started.
func NewGroup(db *DB) *Group {
	return &Group{db: db, queue: make(chan *waiting, maxGroup), patience: patience, done: make(chan struct{})}
}

// Start starts serving. A Group is started once.
func (g *Group) Start(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started || g.stopped {
		return team.Errorf(team.CodeInternal, "the group writer was already started")
	}
	g.started = true
	go g.loop()
	return nil
}

// Stop refuses new operations, applies those in the queue, and returns when all
// are answered, or when ctx ends.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	if !g.stopped {
		g.stopped = true
		close(g.queue)
		if !g.started {
			close(g.done)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the group writer: %w", ctx.Err())
	}
}

// Write queues op and waits until its group is committed. If ctx ends before op
// has begun, op is not applied; once it has begun, Write waits for its answer.
func (g *Group) Write(ctx context.Context, op Op) (json.RawMessage, error) {
	w := &waiting{job: job{op: op}, answer: make(chan struct{})}
	if err := g.enter(ctx, w); err != nil {
		return nil, err
	}
	select {
	case <-w.answer:
	case <-ctx.Done():
		if w.state.CompareAndSwap(queued, given) {
			return nil, busyOr(ctx.Err(), op.Name)
		}
		<-w.answer
	}
	return w.res, w.err
}

func (g *Group) enter(ctx context.Context, w *waiting) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.stopped || !g.started {
		return fmt.Errorf("%s: %w", w.op.Name, ErrWriterGone)
	}
	select {
	case g.queue <- w:
		return nil
	case <-ctx.Done():
		return busyOr(ctx.Err(), w.op.Name)
	}
}

func (g *Group) loop() {
	defer close(g.done)
	expected := 1
	for first := range g.queue {
		batch := g.collect(first, expected)
		if len(batch) == 0 {
			continue
		}
		jobs := make([]*job, len(batch))
		for i, w := range batch {
			jobs[i] = &w.job
		}
		g.commit(jobs)
		expected = len(batch) + len(g.queue)
		for _, w := range batch {
			close(w.answer)
		}
	}
}

// collect takes the jobs in the queue. If there are fewer than expected it
// waits for more, but not for long: a writer that does not arrive is not
// expected the next time.
func (g *Group) collect(w *waiting, expected int) []*waiting {
	var batch []*waiting
	var late <-chan time.Time
	for {
		if w.state.CompareAndSwap(queued, begun) {
			batch = append(batch, w)
		}
		if len(batch) == maxGroup {
			return batch
		}
		var ok bool
		select {
		case w, ok = <-g.queue:
			if !ok {
				return batch
			}
			continue
		default:
		}
		if len(batch) == 0 || len(batch) >= expected {
			return batch
		}
		if late == nil {
			timer := time.NewTimer(g.patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case w, ok = <-g.queue:
			if !ok {
				return batch
			}
		case <-late:
			return batch
		}
	}
}

// commit applies a batch. If the transaction itself fails (a full disk rolls
// all of it back), it tries each operation alone, so that one that cannot be
// written does not fail the others.
func (g *Group) commit(jobs []*job) {
	err := g.db.transact(background, jobs)
	if err == nil {
		return
	}
	alone := len(jobs) > 1 && !team.IsCode(g.db.asCoded("", err), team.CodeTimeout)
	for _, j := range jobs {
		err := err
		if alone {
			err = g.db.transact(background, []*job{j})
		}
		if err != nil {
			j.res, j.err = nil, g.db.asCoded(j.op.Name, err)
		}
	}
}
