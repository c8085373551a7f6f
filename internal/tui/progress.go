package tui

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// Options configure a Progress. Without Terminal it writes one plain line per change.
type Options struct {
	Terminal bool
	Color    bool
	Size     func() (cols, rows int) // called before every drawing; nil: 80 x 24
	Now      func() time.Time        // nil: time.Now
}

// Progress shows a task board while tasks are worked on. On a terminal finished tasks scroll by
// above a live part (a bar, and a line for each task in progress), which is redrawn in place;
// Close leaves the last state on the screen.
type Progress struct {
	out   io.Writer
	opt   Options
	style Style

	updates chan view.Snapshot
	stop    chan struct{}
	ended   sync.WaitGroup

	// Fields used only by run.
	seen  map[string]mark
	done  int // of seen
	last  view.Snapshot
	lines int // of the live part on the screen
	first time.Time
}

type mark struct {
	status  team.TaskStatus
	attempt int
}

// NewProgress starts a view that writes to out until Close.
func NewProgress(out io.Writer, opt Options) *Progress {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Size == nil {
		opt.Size = func() (int, int) { return 80, 24 }
	}
	p := &Progress{
		out: out, opt: opt, style: Style{On: opt.Color},
		updates: make(chan view.Snapshot), stop: make(chan struct{}),
		seen: map[string]mark{}, first: opt.Now(),
	}
	p.ended.Go(p.run)
	return p
}

// Update shows a new snapshot; it returns once the snapshot is taken over. After the first one, a
// snapshot of a part of the board has the tasks in progress and the changed ones. It must not be
// called after Close.
func (p *Progress) Update(s view.Snapshot) {
	select {
	case p.updates <- s:
	case <-p.stop:
	}
}

// Close draws the last state permanently and waits until everything is written.
func (p *Progress) Close() {
	close(p.stop)
	p.ended.Wait()
}

func (p *Progress) run() {
	var tick <-chan time.Time
	ticker := time.NewTicker(time.Hour)
	ticker.Stop()
	defer ticker.Stop()
	if p.opt.Terminal {
		p.write("\x1b[?25l")
		defer p.write("\x1b[?25h")
	}
	for {
		select {
		case s := <-p.updates:
			changes := p.changes(s)
			p.last = s
			p.draw(changes)
			running := p.opt.Terminal && s.Count().Active > 0
			switch {
			case running && tick == nil:
				ticker.Reset(time.Second)
				tick = ticker.C
			case !running && tick != nil:
				ticker.Stop()
				tick = nil
			}
		case <-tick:
			p.draw(nil)
		case <-p.stop:
			if p.opt.Terminal && p.last.Tasks != nil {
				p.write(p.erase() + p.bar() + "\n")
			}
			return
		}
	}
}

// changes returns the lines for what is new in s, in order.
func (p *Progress) changes(s view.Snapshot) []string {
	news := slices.Clone(s.Tasks)
	slices.SortStableFunc(news, func(a, b view.Task) int { return when(a).Compare(when(b)) })
	total := s.Count().Total
	var lines []string
	for _, t := range news {
		before, now := p.seen[t.ID], mark{t.Status, t.Attempt}
		if before == now {
			continue
		}
		was := before.status == team.TaskCompleted || before.status == team.TaskFailed
		if t.Finished() && !was {
			p.done++
		} else if !t.Finished() && was {
			p.done--
		}
		p.seen[t.ID] = now
		if line := p.change(t, before, p.done, total); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func when(t view.Task) time.Time {
	if !t.Ended.IsZero() {
		return t.Ended
	}
	return t.Began
}

// change returns the line for a task that has changed, "" for a minor change.
func (p *Progress) change(t view.Task, before mark, done, total int) string {
	of := fmt.Sprintf("%d/%d", done, total)
	who := view.Clean(t.Owner)
	switch {
	case t.Status == team.TaskCompleted:
		return fmt.Sprintf("%s %s %s  %s  %s", p.style.Green("✓"), of, view.Clean(t.Subject), who, view.Duration(t.Took(p.opt.Now())))
	case t.Status == team.TaskFailed:
		line := fmt.Sprintf("%s %s %s  %s  %s", p.style.Red("✗"), of, view.Clean(t.Subject), who, view.Duration(t.Took(p.opt.Now())))
		if note := view.Clean(t.Note); note != "" {
			line += ": " + view.Cut(note, 160)
		}
		return line
	case p.opt.Terminal:
		return "" // the live part shows it
	case t.Active() && (before.attempt != t.Attempt || before.status == team.TaskPending):
		return fmt.Sprintf("▸ %s %s  %s", of, view.Clean(t.Subject), who)
	case t.Status == team.TaskPending && before.status != "":
		return fmt.Sprintf("↺ %s %s  back on the board", of, view.Clean(t.Subject))
	}
	return ""
}

// Autowrap (DECAWM) off and on again.
const (
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

func (p *Progress) draw(changes []string) {
	if !p.opt.Terminal {
		if len(changes) > 0 {
			p.write(strings.Join(changes, "\n") + "\n")
		}
		return
	}
	cols, rows := p.opt.Size()
	var b strings.Builder
	b.WriteString(p.erase())
	for _, c := range changes {
		b.WriteString(view.Cut(c, cols-1) + "\n")
	}
	live := p.live(cols, rows)
	// tmux tells a program its new size some time after the pane has it: a line must not wrap.
	b.WriteString(noWrap + strings.Join(live, "\n") + "\n" + wrap)
	p.lines = len(live)
	p.write(b.String())
}

// erase removes the live part from the screen.
func (p *Progress) erase() string {
	if p.lines == 0 {
		return ""
	}
	n := p.lines
	p.lines = 0
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", n)
}

func (p *Progress) live(cols, rows int) []string {
	now := p.opt.Now()
	lines := []string{view.Cut(p.bar(), cols-1)}
	active := p.last.Active()
	room := max(1, rows-3)
	for i, t := range active {
		if i == room-1 && len(active) > room {
			lines = append(lines, p.style.Dim(fmt.Sprintf("  … and %d more in work", len(active)-i)))
			break
		}
		right := fmt.Sprintf("  %s  %s", view.Pad(view.Clean(t.Owner), 12), view.Elapsed(t.Took(now)))
		left := fmt.Sprintf("  %s %s  %s", p.style.Cyan("▸"), t.ID, view.Clean(t.Subject))
		lines = append(lines, view.Pad(left, max(10, min(60, cols-1-view.Width(right))))+right)
	}
	return lines
}

const barCells = 24

func (p *Progress) bar() string {
	c := p.last.Count()
	cells := func(n int) int {
		if c.Total == 0 {
			return 0
		}
		return n * barCells / c.Total
	}
	done := cells(c.Done)
	failed := cells(c.Done+c.Failed) - done
	line := p.style.Green(strings.Repeat("█", done)) + p.style.Red(strings.Repeat("█", failed)) +
		p.style.Dim(strings.Repeat("░", barCells-done-failed)) +
		fmt.Sprintf(" %s  %s", p.style.Bold(fmt.Sprintf("%d/%d", c.Done, c.Total)), strings.Join(countWords(c, p.style), " · "))
	return strings.TrimRight(line, " ") + "  " + p.style.Dim(view.Elapsed(p.opt.Now().Sub(p.first)))
}

// countWords returns the counts that are not 0, most important first.
func countWords(c view.Counts, s Style) []string {
	var w []string
	add := func(n int, word string, paint func(string) string) {
		if n > 0 {
			w = append(w, paint(fmt.Sprintf("%d %s", n, word)))
		}
	}
	plain := func(t string) string { return t }
	add(c.Active, "in work", s.Cyan)
	add(c.Ready, "ready", plain)
	add(c.Waiting, "waiting", plain)
	add(c.Failed, "failed", s.Red)
	add(c.Stuck, "stuck", s.Yellow)
	if len(w) == 0 && c.Total > 0 {
		return []string{s.Green("all done")}
	}
	return w
}

func (p *Progress) write(s string) {
	// A failed write must not end the command.
	_, _ = io.WriteString(p.out, s)
}
