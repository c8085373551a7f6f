package look

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/teamctl/teamctl/tool"
)

// The kernel reports that a supervisor has ended, but not that it is stopped or too busy to run:
// that is known only by asking it, and a question wakes both processes. It is therefore asked when
// a person begins to look (the screen opens, the first key for a while, the focus comes back), when
// the team has changed, and by a clock only while somebody may look. Without an answer one question
// stays open, which wakes nobody: the supervisor answers it as soon as it runs again.
const (
	// askLate is the time without an answer after which the facts are shown as old.
	askLate = tool.SilentAfter
	// askFresh is the age of an answer up to which a key asks nothing.
	askFresh = 5 * time.Second
	// askFirst is the pause after a key, askMost the longest.
	askFirst = 30 * time.Second
	askMost  = time.Minute
	// askGrid divides the pauses of the clock, which end at its multiples: a process that follows
	// several teams wakes once to ask all of their supervisors.
	askGrid = 5 * time.Second
	// askAgain is the first pause after the connection of an open question has ended.
	askAgain = time.Second
)

// pulse tells whether one supervisor answers.
type pulse struct {
	ask    func(context.Context) error // returns once the supervisor has answered
	looks  <-chan bool                 // see view.Interest
	reads  chan struct{}               // the team has been read
	turned chan struct{}               // the result of silence has changed
	pid    int
	stop   context.CancelFunc
	done   chan struct{}

	here  bool          // somebody may look
	pause time.Duration // of the clock
	last  time.Time     // end of the last question

	mu       sync.Mutex
	answered time.Time // up to when the facts are right
	silent   bool
	crash    string // a panic of its goroutines, with the stack
}

// check panics as a goroutine of the pulse has: the caller of Follow recovers it, or does not.
func (p *pulse) check() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crash != "" {
		panic(p.crash)
	}
}

// crashed notes a recovered panic for check.
func (p *pulse) crashed(what any) {
	p.mu.Lock()
	p.crash = crashText(what)
	p.mu.Unlock()
	wakeOne(p.turned)
}

// crashText is a recovered panic, with the stack of the goroutine.
func crashText(what any) string { return fmt.Sprintf("%v\n\n%s", what, debug.Stack()) }

var errCrashed = errors.New("the question has failed")

// newPulse returns a pulse of a supervisor whose facts are right up to known.
func newPulse(ask func(context.Context) error, looks <-chan bool, here bool, known time.Time) *pulse {
	return &pulse{
		ask: ask, looks: looks, here: here, answered: known, pause: askFirst,
		reads: make(chan struct{}, 1), turned: make(chan struct{}, 1), done: make(chan struct{}), stop: func() {},
	}
}

// follow returns the pulse of the supervisor that is standing now, which may be p.
func (p *pulse) follow(ctx context.Context, t *tool.Team, pid int, looks <-chan bool) (*pulse, error) {
	if p != nil && p.pid == pid {
		return p, nil
	}
	here := true
	if p != nil {
		p.end()
		here = p.here
	}
	known, err := t.LastSign(ctx)
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context) error { return t.Env.Ping(ctx, t.Layout) }
	p = newPulse(ask, looks, here, known)
	p.pid = pid
	if pid == 0 || t.Elsewhere != nil || t.Env.Ping == nil {
		close(p.done)
		return p, nil
	}
	ctx, p.stop = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		defer func() {
			if what := recover(); what != nil {
				p.crashed(what)
			}
		}()
		p.run(ctx)
	}()
	return p, nil
}

func (p *pulse) end() {
	if p != nil {
		p.stop()
		<-p.done
	}
}

// silence returns the time since which the supervisor has not answered, zero if it does.
func (p *pulse) silence() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silent {
		return time.Time{}
	}
	return p.answered
}

// read tells that the team has been read, since it has changed.
func (p *pulse) read() {
	select {
	case p.reads <- struct{}{}:
	default:
	}
}

func (p *pulse) run(ctx context.Context) {
	for p.question(ctx) && p.rest(ctx) {
	}
}

// rest returns when the next question is due, false if ctx has ended.
func (p *pulse) rest(ctx context.Context) bool {
	for {
		var clock <-chan time.Time
		stop := func() bool { return true }
		if p.here {
			at := p.last.Add(p.pause)
			timer := time.NewTimer(time.Until(at) - time.Duration(at.UnixNano())%askGrid)
			clock, stop = timer.C, timer.Stop
		}
		due := false
		select {
		case <-ctx.Done():
			stop()
			return false
		case p.here = <-p.looks:
			if p.here {
				p.pause = askFirst
				due = time.Since(p.last) >= askFresh
			}
		case <-p.reads:
			due = time.Since(p.last) >= askFirst
		case <-clock:
			p.pause, due = askMost, true
		}
		stop()
		if due {
			return true
		}
	}
}

// question asks once, and again where a silent supervisor has ended the connection; false if ctx
// has ended. An error before the silence says nothing: if the supervisor has ended, the kernel
// reports it.
func (p *pulse) question(ctx context.Context) bool {
	for pause := askAgain; ; pause = min(2*pause, askMost) {
		err := p.await(ctx)
		if ctx.Err() != nil {
			return false
		}
		p.last = time.Now()
		if err == nil {
			p.turn(false)
			return true
		}
		if p.silence().IsZero() {
			return true
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return false
		}
	}
}

// await asks, and notes a silence when the answer is late.
func (p *pulse) await(ctx context.Context) error {
	answer := make(chan error, 1)
	go func() {
		defer func() {
			if what := recover(); what != nil {
				p.crashed(what)
				answer <- errCrashed
			}
		}()
		answer <- p.ask(ctx)
	}()
	late := time.NewTimer(askLate)
	defer late.Stop()
	began := time.Now()
	select {
	case err := <-answer:
		return err
	case <-late.C:
	}
	if time.Since(began) > askLate+time.Second { // this process did not run itself: once more
		late.Reset(askLate)
		select {
		case err := <-answer:
			return err
		case <-late.C:
		}
	}
	p.turn(true)
	return <-answer
}

// turn notes whether the supervisor answers.
func (p *pulse) turn(silent bool) {
	p.mu.Lock()
	changed := p.silent != silent
	if p.silent = silent; !silent {
		p.answered = time.Now()
	}
	p.mu.Unlock()
	if changed {
		select {
		case p.turned <- struct{}{}:
		default:
		}
	}
}
