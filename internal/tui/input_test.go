package tui

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// paper is a terminal that discards what is drawn.
type paper struct{ cols, rows int }

func (p *paper) Size() (int, int)   { return p.cols, p.rows }
func (*paper) Draw(term.Frame)      {}
func (*paper) Redraw()              {}
func (*paper) Pause(f func()) error { f(); return nil }
func (*paper) Suspend() error       { return nil }
func (*paper) Copy(string)          {}
func (*paper) Title(string)         {}
func (*paper) Alert(string, string) {}

// fuzzed is a machine with one team, whose request changes from time to time. Other reads return
// nothing.
type fuzzed struct {
	view.Team
	mu       sync.Mutex
	request  view.Request
	answered []view.Deed
	done     []string // ids of all actions
}

func (f *fuzzed) Teams(context.Context, <-chan bool, func([]view.Glance)) error { return nil }
func (f *fuzzed) Open(context.Context, string) (view.Team, error)               { return f, nil }
func (f *fuzzed) Mail(context.Context) ([]view.Message, error)                  { return nil, nil }
func (f *fuzzed) Usage(context.Context) (view.Usage, error)                     { return view.Usage{}, nil }
func (f *fuzzed) Merges(context.Context) ([]view.Merge, error)                  { return nil, nil }
func (f *fuzzed) TaskPage(context.Context, view.TaskQuery) (view.TaskPage, error) {
	return view.TaskPage{}, nil
}
func (f *fuzzed) TaskNews(context.Context, []string, int64) (view.TaskNews, error) {
	return view.TaskNews{}, nil
}
func (f *fuzzed) Task(context.Context, string) (view.TaskDetail, error) {
	return view.TaskDetail{}, nil
}
func (f *fuzzed) Timeline(context.Context) (view.Timeline, error)        { return view.Timeline{}, nil }
func (f *fuzzed) Screen(context.Context, string, func(view.Frame)) error { return nil }
func (f *fuzzed) History(context.Context, string) ([]string, error)      { return nil, nil }
func (f *fuzzed) Follow(ctx context.Context, _ func() view.Interest, _ func(view.Snapshot)) error {
	<-ctx.Done()
	return nil
}

func (f *fuzzed) Receipts(context.Context, string) ([]view.Receipt, error) { return nil, nil }
func (f *fuzzed) Member(context.Context, string) (view.MemberDetail, error) {
	return view.MemberDetail{}, nil
}

func (f *fuzzed) Writable(context.Context) error                            { return nil }
func (f *fuzzed) PutOff(context.Context, view.Need, time.Duration) error    { return nil }
func (f *fuzzed) TakeUp(context.Context, view.Need) error                   { return nil }
func (f *fuzzed) Drafts(context.Context) (map[string]string, error)         { return nil, nil }
func (f *fuzzed) Keep(context.Context, view.Deed) error                     { return nil }
func (f *fuzzed) Dependencies(context.Context) (map[string][]string, error) { return nil, nil }
func (f *fuzzed) Near(context.Context, string) (view.Near, error)           { return view.Near{}, nil }
func (f *fuzzed) Changes(context.Context, string, string) (view.Changes, error) {
	return view.Changes{}, nil
}

func (f *fuzzed) TaskLog(context.Context, string, int) (view.TaskLog, error) {
	return view.TaskLog{}, nil
}

func (f *fuzzed) Log(context.Context, string, bool) ([]view.Event, error) { return nil, nil }

func (f *fuzzed) Request(_ context.Context, id int64) (view.Request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.request
	r.ID = id
	return r, nil
}

func (f *fuzzed) Do(_ context.Context, d view.Deed) (view.Done, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.Approval != 0 {
		f.answered = append(f.answered, d)
	}
	f.done = append(f.done, d.Action)
	return view.Done{Said: "done"}, nil
}

// keyboard maps the bytes of the fuzzer to keys.
var keyboard = append([]string{"ctrl-d", "ctrl-u", "ctrl-j", "ctrl-a", "ctrl-e", "ctrl-w", "ctrl-l", "ctrl-z", "ctrl-n", "ctrl-p", "数", "\u0301", "é"}, named...)

// FuzzInput checks that on any input (keys, pastes, clicks, sizes, at any pace, while requests change) the
// screen does not fail and draws within its terminal, and that an approval answers only a request whose
// whole current text was under the cursor for long enough.
func FuzzInput(f *testing.F) {
	for _, s := range []string{"", "a", "\x04x\x00a\x80", "\x80\xe1\x80", "\x80\x80a\x80", ".\x80\x80\x80a\x80j\x80", "a\x04\x80a\x80", "\x80.\x80enter", ":appr\x8d", "mhello\n\x8d", "2v3456789", "\x02\x05\x03a", "\x01\x05\x05\x01\x05\x05", "\x80.\x80\x04\xe1\x80", "MM\x80M", "ZZ.Z", "/x\x1b?q"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			data = data[:400]
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		team := &fuzzed{request: view.Request{Kind: view.NeedPermission, State: "pending", Member: "worker-1", Tool: "Bash", Command: "npm publish"}}
		m := shownOf(crowd(8), 100, 30)
		m.request = map[int64]view.Request{}
		r := &run{
			ui: &UI{Home: team}, m: m, term: &paper{100, 30}, ctx: ctx, teamCtx: ctx, team: team, stopTeam: func() {}, changes: make(chan func(*model), 4096),
			running: map[string]bool{}, again: map[string]doing{}, gaze: newGaze(), crash: make(chan any, 1),
		}
		r.ui.Leave = func(context.Context) error { return nil }
		now := epoch
		type sight struct {
			id   int64
			seen string
		}
		var under sight
		var since time.Time
		look := func() {
			for more := true; more; {
				select {
				case change := <-r.changes:
					r.apply(change)
				default:
					more = false
				}
			}
			r.draw(now)
			if len(r.frame.lines) != m.rows {
				t.Fatalf("%d lines at %dx%d", len(r.frame.lines), m.cols, m.rows)
			}
			for _, l := range r.frame.lines {
				if view.Width(l) > m.cols {
					t.Fatalf("%d cells at %dx%d: %q", view.Width(l), m.cols, m.rows, l)
				}
			}
			r.guard.painted(paint{r.frameID, now})
			id := m.approval()
			if s := (sight{id, r.frame.seen[id]}); s != under {
				under, since = s, now
			}
		}
		look()
		next := func() (b byte) {
			if len(data) > 0 {
				b, data = data[0], data[1:]
			}
			return b
		}
		for len(data) > 0 {
			b := next()
			now = now.Add(map[bool]time.Duration{true: 450 * time.Millisecond, false: 15 * time.Millisecond}[b >= 0x80])
			look() // a pause may confirm an answer
			before := r.guard.waiting
			e := term.Event{At: now}
			switch b &= 0x7f; {
			case b == 0:
				now = now.Add(100 * time.Millisecond) // slower than a burst, too fast to have read
				look()
				continue
			case b == 1:
				e.Kind, e.X, e.Y, e.Key = term.Mouse, int(next()), int(next()), []string{"left", "right", "wheel-up", "wheel-down", "drag", "release"}[int(b)%6]
			case b == 2:
				p := &paper{1 + int(next()), 1 + int(next())%80}
				r.term, e.Kind = p, term.Resize
			case b == 3:
				e.Kind, e.Text = term.Paste, "a\x1b[2Ja\r\n"+string(rune(next()))
			case b == 4:
				team.mu.Lock()
				team.request.Command = fmt.Sprintf("rm -rf /%d", next())
				x := team.request
				team.mu.Unlock()
				for id := range m.request {
					x.ID = id
					m.request[id] = x
				}
				look()
				continue
			case b == 5:
				e.Kind, e.Focused = term.Focus, !r.gaze.focused
			case b < 0x20:
				e.Key = keyboard[int(b)%len(keyboard)]
			case b == ' ':
				e.Key = "space"
			case b == 0x7f:
				e.Key = keyboard[int(next())%len(keyboard)]
			default:
				e.Key = string(rune(b))
			}
			if r.event(e) {
				break
			}
			if w := r.guard.waiting; w != nil && w != before {
				if w.deed.Seen == "" || under != (sight{w.deed.Approval, w.deed.Seen}) || now.Sub(since) < unread {
					t.Fatalf("%+v answers what stood there as %+v for %s", w.deed, under, now.Sub(since))
				}
			}
			look()
			select {
			case crash := <-r.crash:
				t.Fatalf("%s\n%s", crash.(panicked).what, crash.(panicked).stack)
			default:
			}
		}
		cancel()
		r.leaveTeam()
		r.all.Wait()
		team.mu.Lock()
		defer team.mu.Unlock()
		for _, d := range team.answered {
			if d.Seen == "" && (d.Action == "approve" || d.Action == "reject" || d.Action == "approve-edited" || d.Action == "approve-always" || d.Action == "answer") {
				t.Errorf("%+v answers what nobody has seen", d)
			}
		}
	})
}
