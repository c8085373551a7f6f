package bridge

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/teamctl/teamctl/inbox"
)

// A teammate of a version up to 2.1.112 that starts may have several reads of its mailbox under way
// before its first mark: it takes the same mail with each of them, and each then marks all that is
// there, read or not. Its lead enters it in the configuration first, may empty its mailbox then, and
// writes its prompt into it. So the first mail over the bridge waits until the program has read and
// marked the prompt, and is done with the marks of its other reads.
//
// A teammate that a person starts has no prompt. Its first mail waits until its program is seen to
// read the mailbox, which it does once a second, and has done so for as long.
//
// What waits is in our mailbox, and nothing is recorded of the waiting: after a kill, the files show
// the same.

const (
	// startWithin is how long a lead has for the prompt. A teammate without one was started by hand.
	// The retries after the last change go on for longer.
	startWithin = 30 * time.Second
	// marksWithin is how long the reads that were under way at the first mark, or begin at the start,
	// may take for their own. A later mark is one of mail that the program lacks: it is given again.
	marksWithin = 5 * time.Second
	// readsWithin is how long mail waits for a program that is not seen to read, since its reads may
	// not be seen: it may run on another machine.
	readsWithin = 5 * time.Minute
)

// starts has the constants, for tests.
type starts struct{ prompt, marks, reads time.Duration }

// stage is how far a native member is with its start.
type stage int

const (
	started      stage = iota
	startsNow          // it may not have completed its first reads
	readsNothing       // it was not seen to read its mailbox, or not for long enough
)

// starting returns how far a native member is. An entry with an id has come over the bridge, since
// these versions write none.
func (p *pass) starting(ctx context.Context, box *inbox.Box, there string, entries []inbox.Entry) (stage, error) {
	m := p.cfg.Member(there)
	if !p.takesAll(there) || isLead(p.cfg, *m) || slices.ContainsFunc(entries, func(e inbox.Entry) bool { return e.ID != "" }) {
		return started, nil
	}
	since, within := time.UnixMilli(m.JoinedAt), p.starts.prompt
	if slices.ContainsFunc(entries, func(e inbox.Entry) bool { return e.Read }) {
		info, err := os.Stat(box.Path())
		if err != nil {
			return started, unsettled(err)
		}
		since, within = info.ModTime(), p.starts.marks
	}
	if age := time.Since(since); age >= 0 && age < within { // by another clock it may be in the future
		p.soon = true
		return startsNow, nil
	}
	if len(entries) > 0 || p.in.Once {
		return started, nil
	}
	return p.awaitReads(ctx, box, there)
}

// awaitReads is starting for a member that nothing is known of.
func (p *pass) awaitReads(ctx context.Context, box *inbox.Box, there string) (stage, error) {
	since, reads, ok := p.taken.await(there)
	due := since.Add(p.starts.reads)
	if reads.first.IsZero() {
		if _, err := os.Lstat(box.Path()); errors.Is(err, fs.ErrNotExist) {
			if err := p.deliver(ctx, box, there, batch{}); err != nil { // what is not there is not seen to be read
				return started, err
			}
		}
	} else if steady := reads.first.Add(p.starts.marks); steady.Before(due) {
		due = steady
	}
	if !ok || !due.After(time.Now()) {
		return started, nil
	}
	if p.next.IsZero() || due.Before(p.next) {
		p.next = due
	}
	return readsNothing, nil
}
