package look

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// asker is a supervisor that is asked: it answers at once unless it is frozen.
type asker struct {
	n      atomic.Int32
	frozen atomic.Bool
	thaw   chan error // ends the open question of a frozen one
}

func (a *asker) ask(ctx context.Context) error {
	a.n.Add(1)
	if !a.frozen.Load() {
		return nil
	}
	select {
	case err := <-a.thaw:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pulsed runs f beside a pulse, in a bubble of time.
func pulsed(t *testing.T, f func(a *asker, p *pulse, looks chan<- bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &asker{thaw: make(chan error)}
		looks := make(chan bool, 1)
		p := newPulse(a.ask, looks, true, time.Now().Add(-time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		p.stop = cancel
		go func() {
			defer close(p.done)
			p.run(ctx)
		}()
		synctest.Wait()
		f(a, p, looks)
		p.end()
	})
}

// after returns how many questions are asked in a time.
func (a *asker) after(d time.Duration) int32 {
	n := a.n.Load()
	time.Sleep(d) //nolint:forbidigo // in a bubble: the time is not real
	synctest.Wait()
	return a.n.Load() - n
}

// A screen asks once when it opens, half a minute after a key, and then once a minute; when nobody
// can look it asks nothing.
func TestPulseRests(t *testing.T) {
	t.Parallel()
	pulsed(t, func(a *asker, p *pulse, looks chan<- bool) {
		if n := a.n.Load(); n != 1 {
			t.Errorf("%d questions at first", n)
		}
		if n := a.after(askFirst - time.Millisecond); n != 0 {
			t.Errorf("%d questions before the first pause has ended", n)
		}
		if n := a.after(time.Millisecond); n != 1 {
			t.Errorf("%d questions after the first pause", n)
		}
		if n := a.after(10 * askMost); n != 10 {
			t.Errorf("%d questions in ten minutes", n)
		}
		looks <- false
		p.read() // the team changes while nobody looks
		if n := a.after(time.Hour); n != 0 {
			t.Errorf("%d questions while nobody looks, just after an answer", n)
		}
		p.read()
		if n := a.after(time.Hour); n != 1 {
			t.Errorf("%d questions for a change while nobody looks", n)
		}
		looks <- true
		if n := a.after(time.Second); n != 1 {
			t.Errorf("%d questions when somebody looks again", n)
		}
		looks <- true // has an answer that is fresh
		if n := a.after(time.Second); n != 0 {
			t.Errorf("%d questions for the next key", n)
		}
		if !p.silence().IsZero() {
			t.Errorf("silent since %v", p.silence())
		}
	})
}

// A frozen supervisor is known a bounded time after the last look, its facts are of its last
// answer, nothing is asked while it is frozen, and its answer counts at once.
func TestPulseFrozen(t *testing.T) {
	t.Parallel()
	pulsed(t, func(a *asker, p *pulse, looks chan<- bool) {
		answered := time.Now()
		a.frozen.Store(true)
		time.Sleep(askFresh) //nolint:forbidigo // in a bubble: the time is not real
		looks <- true
		if n := a.after(askLate - time.Millisecond); n != 1 || !p.silence().IsZero() {
			t.Errorf("%d questions, silent since %v before it is late", n, p.silence())
		}
		if a.after(time.Millisecond); !p.silence().Equal(answered) {
			t.Errorf("silent since %v, want %v", p.silence(), answered)
		}
		select {
		case <-p.turned:
		default:
			t.Error("nobody was told of the silence")
		}
		looks <- true
		if n := a.after(24 * time.Hour); n != 0 {
			t.Errorf("%d more questions of a frozen one", n)
		}
		a.thaw <- errors.New("the connection has ended")
		if n := a.after(askAgain); n != 1 || p.silence().IsZero() {
			t.Errorf("%d questions after the connection has ended, silent since %v", n, p.silence())
		}
		a.frozen.Store(false)
		a.thaw <- nil
		synctest.Wait()
		select {
		case <-p.turned:
		default:
			t.Error("nobody was told of the answer")
		}
		if !p.silence().IsZero() {
			t.Errorf("silent since %v after an answer", p.silence())
		}
	})
}

// One that is frozen before the screen opens has facts of the last change that is known.
func TestPulseFrozenBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asker{thaw: make(chan error)}
		a.frozen.Store(true)
		known := time.Now().Add(-time.Hour)
		p := newPulse(a.ask, nil, true, known)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(p.done)
			p.run(ctx)
		}()
		time.Sleep(askLate) //nolint:forbidigo // in a bubble: the time is not real
		synctest.Wait()
		if !p.silence().Equal(known) {
			t.Errorf("silent since %v, want %v", p.silence(), known)
		}
		cancel()
		<-p.done
	})
}
