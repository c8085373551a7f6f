package bridge

import (
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
// What waits is in our mailbox, and nothing is recorded of the waiting: after a kill, the files show
// the same.

const (
	// startWithin is how long a lead has for the prompt. A teammate without one was started by hand,
	// and gets its mail then. The retries after the last change go on for longer.
	startWithin = 30 * time.Second
	// marksWithin is how long the reads that were under way at the first mark may take for their own.
	// A later mark is one of mail that the program lacks: it is given again.
	marksWithin = 5 * time.Second
)

// starting reports whether a native member may not have completed its first reads yet. An entry with
// an id has come over the bridge, since these versions write none.
func (p *pass) starting(box *inbox.Box, there string, entries []inbox.Entry) (bool, error) {
	m := p.cfg.Member(there)
	if !p.takesAll(there) || isLead(p.cfg, *m) || slices.ContainsFunc(entries, func(e inbox.Entry) bool { return e.ID != "" }) {
		return false, nil
	}
	since, within := time.UnixMilli(m.JoinedAt), p.startWithin
	if slices.ContainsFunc(entries, func(e inbox.Entry) bool { return e.Read }) {
		info, err := os.Stat(box.Path())
		if err != nil {
			return false, unsettled(err)
		}
		since, within = info.ModTime(), p.marksWithin
	}
	age := time.Since(since)
	starts := age >= 0 && age < within // by another clock it may be in the future
	p.soon = p.soon || starts
	return starts, nil
}
