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

// markWithin is how long a program has for its own mark, which takes milliseconds unless it is held
// up. It reads again after a second.
const markWithin = 250 * time.Millisecond

// taker marks mail as read that the program has taken out of its mailboxes.
type taker struct {
	dir  string
	box  func(agent string) (*inbox.Box, error)
	kick chan struct{} // has run look at the mailboxes

	mu       sync.Mutex
	since    time.Time                  // since when reads are not reported
	handed   map[string]map[string]bool // by mailbox: messages that are unread, or have the bridge's mark
	looked   map[string]time.Time       // by mailbox: the read after which look was last made
	again    map[string]time.Time       // by mailbox: the first read since the bridge's mark
	mistaken map[string]bool            // mailboxes that other programs read
	reports  bool                       // reads are reported
}

func newTaker(n native, box func(agent string) (*inbox.Box, error)) *taker {
	return &taker{dir: n.inboxes(), box: box, kick: make(chan struct{}, 1), since: time.Now(),
		handed: map[string]map[string]bool{}, looked: map[string]time.Time{}, again: map[string]time.Time{}, mistaken: map[string]bool{}}
}

// follow marks mail until end is called.
func (t *taker) follow() (end func()) {
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { t.run(quit) })
	return func() {
		close(quit)
		running.Wait()
	}
}

// run looks at the mailboxes shortly after each read. Reads are watched only while mail is handed
// over.
func (t *taker) run(quit <-chan struct{}) {
	var watching *readwatch.Watcher
	stop := func() {
		if watching != nil {
			watching.Close()
		}
		watching = nil
	}
	defer stop()
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-t.kick:
		case <-quit:
			return
		}
		all := t.mailboxes()
		if len(all) == 0 {
			stop()
			continue
		}
		if watching == nil {
			w, err := readwatch.Watch(t.dir, func(string) { t.wake() })
			if err == nil {
				watching = w
			}
			t.setReports(err == nil)
		}
		wait.Reset(markWithin)
		select {
		case <-wait.C:
		case <-quit:
			return
		}
		for _, there := range all {
			_ = t.look(context.Background(), there) // what is not marked here, the program marks
		}
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

func (t *taker) setReports(are bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reports && !are {
		t.since = time.Now()
	}
	t.reports = are
}

// expect sets the messages that are handed over in a mailbox.
func (t *taker) expect(there string, ids map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(t.handed[there], ids) {
		return
	}
	if t.handed[there] = ids; len(ids) == 0 {
		delete(t.handed, there)
	}
	delete(t.looked, there)
	t.wake() // also for a read before it was watched
}

// look marks the mail that was handed over in a mailbox, if the mailbox was read. It looks once after
// each read, since its own look is reported as a read.
func (t *taker) look(ctx context.Context, there string) error {
	box, err := t.box(there)
	if err != nil {
		return err
	}
	at, read := box.ReadSince()
	ids, known := t.due(there, at)
	if !read || known {
		return nil
	}
	entries, err := box.Look()
	if err != nil {
		return err
	}
	ours, marked := slices.ContainsFunc(entries, hasOurMark), 0
	if !ours && len(ids) > 0 {
		ctx, cancel := context.WithTimeout(ctx, lockWait)
		defer cancel()
		if marked, err = box.MarkTaken(ctx, ids); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked[there] = at
	if marked > 0 {
		delete(t.again, there)
	} else if ours && t.again[there].IsZero() {
		t.again[there] = time.Now()
	}
	return nil
}

// due returns the messages in a mailbox that the bridge may mark, and whether it has looked at the
// mailbox since a read.
func (t *taker) due(there string, read time.Time) (ids map[string]bool, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mistaken[there] {
		ids = t.handed[there]
	}
	return ids, t.looked[there].Equal(read)
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
