package courier

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// A screen is read when the output has come to rest, at intervals while it has not, and once more
// later, so that a hook's report has had time to show.
const (
	lookQuiet   = 400 * time.Millisecond
	lookMost    = 3 * time.Second
	lookConfirm = 3 * time.Second
	lookWithin  = 5 * time.Second
	titleTail   = 16 * 1024
)

// looker reads the screen of one generation by the rules of its kind.
type looker struct {
	f      Facts
	s      Screen
	rules  *adapter.Rules // nil: its screens are unknown
	limits limits
}

func newLooker(f Facts, s Screen, rules *adapter.Rules) *looker {
	l := &looker{f: f, s: s, rules: rules}
	l.limits.load(f)
	return l
}

// see reads the screen.
func (l *looker) see(ctx context.Context) (adapter.Seen, error) {
	seen, _, err := l.read(ctx)
	return seen, err
}

// read is see, and also returns what the screen shows apart from the text of a limit.
func (l *looker) read(ctx context.Context) (seen, past adapter.Seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if l.rules == nil {
		seen.Activity = team.ActivityUnknown
		return seen, seen, nil
	}
	text, err := l.s.Capture(ctx, 0)
	if err != nil {
		return seen, seen, err
	}
	seen, past = l.at(text, time.Now())
	if seen.Activity != team.Waiting && l.asking() {
		seen = adapter.Seen{Activity: team.ActivityUnknown}
		past = seen
	}
	return seen, past, nil
}

// title returns the terminal title that the program set last.
func (l *looker) title() string {
	f, err := regular.Open(l.f.Bundle.Log())
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // read only
	if info, err := f.Stat(); err == nil && info.Size() > titleTail {
		if _, err := f.Seek(-titleTail, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, titleTail))
	if err != nil {
		return ""
	}
	return adapter.LastTitle(data)
}

// watchScreen reports changes of what the screen shows until stop is called, which waits for the
// end.
func watchScreen(f Facts, d *dialogs, r Report) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	written, leave, err := f.Listen(f.Bundle.Log())
	if err != nil {
		f.Log.Warn("watch the screen", "member", f.Name, "err", err)
		cancel()
		return func() {}
	}
	done.Go(func() {
		defer leave()
		f.look.watch(ctx, written, d, r)
	})
	return func() {
		cancel()
		done.Wait()
	}
}

func (l *looker) watch(ctx context.Context, written <-chan struct{}, d *dialogs, r Report) {
	quiet, confirm := time.NewTimer(0), time.NewTimer(lookConfirm)
	defer quiet.Stop()
	defer confirm.Stop()
	var began time.Time
	var lastSeen adapter.Seen
	var lastTold time.Time
	var lastTitle string
	look := func() {
		seen, err := l.see(ctx)
		if err != nil || ctx.Err() != nil {
			confirm.Reset(lookConfirm) // tmux was slow, or it is gone and the process reports that
			return
		}
		if t := l.title(); t != lastTitle {
			lastTitle = t
			if a := l.rules.Title(t); a != "" {
				r(team.Observation{Tier: team.TierTitle, Activity: a, At: time.Now(), Source: "title", Evidence: []string{t}})
			}
		}
		for _, o := range d.saw(seen, time.Now()) {
			r(o)
		}
		if l.rules == nil || same(seen, lastSeen) && !l.asked(lastTold) {
			return
		}
		lastSeen, lastTold = seen, time.Now()
		if seen.Activity == team.Limited {
			l.limits.tell(seen)
		}
		r(observation(seen))
	}
	for {
		select {
		case <-written:
			now := time.Now()
			if began.IsZero() {
				began = now
			}
			quiet.Reset(min(lookQuiet, max(0, began.Add(lookMost).Sub(now))))
		case <-quiet.C:
			began = time.Time{}
			look()
			confirm.Reset(lookConfirm)
		case <-confirm.C:
			lastSeen.Rule = "" // report again: this is newer than any earlier hook
			look()
		case <-ctx.Done():
			return
		}
	}
}

// asked reports whether a hook has since reported a request that the screen must show, too.
func (l *looker) asked(since time.Time) bool {
	last, ever, err := ReadSeen(l.f.Bundle, l.f.Generation)
	return err == nil && ever && last.Confirm && last.At.After(since)
}

func same(a, b adapter.Seen) bool {
	return a.Activity == b.Activity && a.For == b.For && a.Rule == b.Rule && a.Until.Equal(b.Until) &&
		(a.Input == "") == (b.Input == "") && slices.Equal(a.Lines, b.Lines)
}
