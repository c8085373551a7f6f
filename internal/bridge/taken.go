package bridge

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/readwatch"
	"github.com/teamctl/teamctl/team"
)

// Claude Code 2.1.112 reads its mailbox once a second, without the lock, and begins to mark the mail
// as read without waiting for it. If it begins a turn with long texts it draws them first: 280 kB
// hold up the marking for seconds, and the next read takes the same mail again. So the bridge marks
// the mail that it has handed over as soon as the mailbox was read.
//
// This is not evidence that the program has the mail, since another program may have read the file.
// Only messages are marked that the bridge can deliver again, and a receipt still needs the record
// of the conversation. After one mark that was wrong, the mailbox is left to its program.
//
// The program still writes its own marks, to all entries that it finds then. What is added before
// that is marked and lost, so nothing is added while an entry has the bridge's mark.

const (
	// markWithin is how long a program has for its own mark, which takes milliseconds unless it is held
	// up. It reads again after a second.
	markWithin = 250 * time.Millisecond
	// readPause is the longest time between two reads of a program that is not held up for longer.
	readPause = 15 * time.Second
)

// taker marks mail as read that the program has taken out of its mailboxes.
type taker struct {
	dir  string
	box  func(agent string) (*inbox.Box, error)
	kick chan struct{} // has run look at the mailboxes

	mu       sync.Mutex
	begins   func()                     // called when a program begins to read an awaited mailbox; nil: nothing is watched
	watching *readwatch.Watcher         // nil while there is nothing to watch for
	reports  bool                       // reads are reported
	since    time.Time                  // since when they are not
	handed   map[string]map[string]bool // by mailbox: messages that are unread, or have the bridge's mark
	again    map[string]time.Time       // by mailbox: the first read since the bridge's mark
	mistaken map[string]bool            // mailboxes that other programs read
	awaited  map[string]time.Time       // mailboxes whose reads are awaited, since when
	reads    map[string]reads           // by file
}

// reads are what is known of a file's readers.
type reads struct {
	taken       bool      // it was read since the last write to it
	first, last time.Time // of the reads that go on
}

func newTaker(n native, box func(agent string) (*inbox.Box, error)) *taker {
	return &taker{dir: n.inboxes(), box: box, kick: make(chan struct{}, 1), since: time.Now(), handed: map[string]map[string]bool{},
		again: map[string]time.Time{}, mistaken: map[string]bool{}, awaited: map[string]time.Time{}, reads: map[string]reads{}}
}

// watch allows reads to be watched, which they are only while there is a reason, until stop is called.
// begins is called when a program begins to read an awaited mailbox; it must not block.
func (t *taker) watch(begins func()) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begins = begins
	return func() {
		t.mu.Lock()
		t.begins = nil
		t.mu.Unlock()
		t.adjust()
	}
}

// adjust begins or ends to watch reads. The methods that call it are for one goroutine.
func (t *taker) adjust() {
	t.mu.Lock()
	w, needed := t.watching, t.begins != nil && len(t.handed)+len(t.awaited) > 0
	t.mu.Unlock()
	if needed == (w != nil) {
		return
	}
	var next *readwatch.Watcher
	var err error
	if needed {
		next, err = readwatch.Watch(t.dir, t.note)
	} else {
		w.Close() // waits for note, which needs the mutex
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watching = next; next == nil {
		clear(t.reads)
	}
	if t.reports && err != nil {
		t.since = time.Now()
	}
	t.reports = err == nil
}

// note notes an event.
func (t *taker) note(e readwatch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.reads[e.Name]
	switch {
	case e.Name == "":
		clear(t.reads)
		return
	case e.Written:
		r.taken = false
	default:
		r.taken = true
		begun := time.Since(r.last) > readPause
		if r.last = time.Now(); begun {
			r.first = r.last
		}
		for there := range t.awaited {
			if begun && t.begins != nil && boxFile(there) == e.Name {
				t.begins()
			}
		}
		for there := range t.handed {
			if boxFile(there) == e.Name {
				t.wake()
			}
		}
	}
	if r != (reads{}) {
		t.reads[e.Name] = r
	}
}

// run looks at the mailboxes shortly after each read.
func (t *taker) run(quit <-chan struct{}) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-t.kick:
		case <-quit:
			return
		}
		wait.Reset(markWithin)
		select {
		case <-wait.C:
		case <-quit:
			return
		}
		for _, there := range t.mailboxes() {
			_ = t.look(context.Background(), there) // what is not marked here, the program marks
		}
	}
}

// follow marks mail until end is called; begins is that of watch.
func (t *taker) follow(begins func()) (end func()) {
	stop := t.watch(begins)
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { t.run(quit) })
	return func() {
		close(quit)
		running.Wait()
		stop()
	}
}

func (t *taker) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

func (t *taker) mailboxes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.handed))
}

// expect sets the messages that are handed over in a mailbox.
func (t *taker) expect(there string, ids map[string]bool) {
	t.mu.Lock()
	if !maps.Equal(t.handed[there], ids) {
		if t.handed[there] = ids; len(ids) == 0 {
			delete(t.handed, there)
		}
		t.wake() // also for a read before it was watched
	}
	t.mu.Unlock()
	t.adjust()
}

// await begins to watch for the reads of a mailbox, if it does not yet, and returns since when it
// does and the reads that go on. ok is false where reads are not reported.
func (t *taker) await(there string) (since time.Time, goOn reads, ok bool) {
	t.mu.Lock()
	if t.awaited[there].IsZero() {
		t.awaited[there] = time.Now()
	}
	t.mu.Unlock()
	t.adjust()
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.reads[boxFile(there)]; time.Since(r.last) <= readPause {
		goOn = r
	}
	return t.awaited[there], goOn, t.watching != nil
}

// leave ends what await has begun.
func (t *taker) leave(there string) {
	t.mu.Lock()
	delete(t.awaited, there)
	t.mu.Unlock()
	t.adjust()
}

// keep forgets all mailboxes but these.
func (t *taker) keep(all []string) {
	t.mu.Lock()
	maps.DeleteFunc(t.handed, func(there string, _ map[string]bool) bool { return !slices.Contains(all, there) })
	maps.DeleteFunc(t.awaited, func(there string, _ time.Time) bool { return !slices.Contains(all, there) })
	t.mu.Unlock()
	t.adjust()
}

// taken reports whether another program has read a mailbox since the last write to it: reads before
// they were watched are known where the file system records them.
func (t *taker) taken(there string, box *inbox.Box) bool {
	t.mu.Lock()
	w := t.watching
	t.mu.Unlock()
	if w != nil {
		w.Flush()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reads[boxFile(there)].taken {
		return true
	}
	_, read := box.ReadSince()
	return read
}

// look marks the mail that was handed over in a mailbox, if the mailbox was read.
func (t *taker) look(ctx context.Context, there string) error {
	box, err := t.box(there)
	if err != nil || !t.taken(there, box) {
		return err
	}
	entries, err := box.Look()
	if err != nil {
		return err
	}
	ours, marked := slices.ContainsFunc(entries, hasOurMark), 0
	if ids := t.mayTake(there); !ours && len(ids) > 0 {
		ctx, cancel := context.WithTimeout(ctx, lockWait)
		defer cancel()
		if marked, err = box.MarkTaken(ctx, ids, func() bool { return t.taken(there, box) }); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if marked > 0 {
		delete(t.again, there)
	} else if ours && t.again[there].IsZero() {
		t.again[there] = time.Now()
	}
	return nil
}

// mayTake returns the messages in a mailbox that the bridge may mark.
func (t *taker) mayTake(there string) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mistaken[there] {
		return nil
	}
	return t.handed[there]
}

func hasOurMark(e inbox.Entry) bool { return e.Taken }

// overdue reports whether the program has read a mailbox for so long since the bridge's mark that it
// will not add its own.
func (t *taker) overdue(there string, patience time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, read := t.again[there]
	if !t.reports {
		since, read = t.since, true
	}
	return read && time.Since(since) > patience
}

// mistake leaves a mailbox to its program: what the bridge marked was not taken.
func (t *taker) mistake(there string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mistaken[there] = true
}

// markAwaited reports whether the program has yet to write its own marks where the bridge has marked
// mail.
func (p *pass) markAwaited(there string, entries []inbox.Entry, u *underway) bool {
	marked := false
	for _, e := range entries {
		if e.Taken {
			u.handed[e.ID], marked = true, true
		}
	}
	if !marked || !p.mayMark(there) {
		return false
	}
	p.soon = p.soon || !p.in.Once
	return true
}

// mayMark reports whether the program may still write its own marks after those of the bridge.
func (p *pass) mayMark(there string) bool {
	return p.takesAll(there) && !p.taken.overdue(there, p.patience)
}

// takesAll reports whether a native member takes all unread mail when it reads its mailbox, and marks
// it later. Newer versions take it under the lock, and a member in the process of the lead takes one
// message at a time.
func (p *pass) takesAll(there string) bool {
	m := p.cfg.Member(there)
	return !p.bursts && m != nil && m.BackendType != team.PaneInProcess && m.TmuxPaneID != team.PaneInProcess
}
