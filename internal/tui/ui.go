package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// UI is the full screen.
type UI struct {
	Home view.Home
	// Start, if set, is for a machine without a team.
	Start view.Beginner
	Team  string // initial team, "" for the list of teams
	View  string // one of Views, "" for the team
	// Select is the initial selection: the name of a member, "task:5", "approval:3".
	Select   string
	ReadOnly bool
	Color    bool
	ASCII    bool
	Mouse    bool
	Alerts   bool   // tell the terminal, while it has no focus, what begins to need the person
	Keys     Keymap // nil: the default keys
	Notice   string // said when it opens
	Terminal string // path of the terminal
	// Tmux, if the terminal is a pane of tmux, returns the expansion of a format.
	Tmux func(ctx context.Context, format string) (string, error)
	// Leave, if set, takes the person away from the screen, which keeps running. If it fails, or is
	// not set, the screen ends.
	Leave func(context.Context) error
	// Pager, if set, runs the person's pager with a patch, for a screen of so many columns, and returns
	// the lines of its output. It ends the program when ctx ends.
	Pager func(ctx context.Context, patch string, cols int) ([]string, error)
	// Report is the file in which a panic is recorded.
	Report string
}

// Run shows the screen until the person leaves it, the terminal is gone or ctx ends, which are no
// errors. It restores the terminal.
func (u *UI) Run(ctx context.Context) error {
	crash := make(chan any, 1)
	t, painted, restore, err := u.open(crash)
	if err != nil {
		return err
	}
	return u.on(ctx, t, t.Events, painted, restore, crash)
}

// open opens the terminal; restore ends that. A panic of the terminal is sent to crash.
func (u *UI) open(crash chan any) (t *term.Terminal, painted <-chan paint, restore func(), err error) {
	paints, quit := make(chan paint, 8), make(chan struct{})
	t, err = term.Open(term.Options{Path: u.Terminal, Color: u.Color, Mouse: u.Mouse, Tmux: u.Tmux, Failed: func(what any, stack []byte) {
		select {
		case crash <- panicked{what, stack}:
		default: // the first one is reported
		}
	}}, func(frame int, at time.Time) {
		select {
		case paints <- paint{frame, at}:
		case <-quit:
		}
	})
	return t, paints, func() {
		close(quit)
		t.Close()
	}, err
}

// on is Run on an open terminal. A panic that was caught elsewhere comes by crash.
func (u *UI) on(ctx context.Context, t terminal, events <-chan term.Event, painted <-chan paint, restore func(), crash chan any) (err error) {
	m := newModel()
	m.style, m.ascii, m.readOnly, m.name = Style{On: u.Color}, u.ASCII, u.ReadOnly, u.Team
	if u.Keys != nil {
		m.keys = u.Keys
	}
	if u.Notice != "" {
		m.say(u.Notice, true)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &run{
		ui: u, m: m, term: t, ctx: ctx, changes: make(chan func(*model), 16), running: map[string]bool{}, again: map[string]doing{}, gaze: newGaze(),
		crash: crash,
	}
	defer func() {
		crash := recover()
		r.finishWriting(writingEnds)
		cancel()
		restore()
		r.leaveTeam()
		r.all.Wait()
		if crash == nil {
			select {
			case crash = <-r.crash:
			default:
			}
		}
		if crash != nil {
			err = u.report(crash)
		}
	}()
	m.cols, m.rows = t.Size()
	m.now = time.Now()
	if u.Team == "" {
		r.goTo(inTeams)
	} else {
		if u.View != "" {
			m.at = place(u.View)
			m.opens = m.at == inMail
		}
		r.enterTeam(u.Team)
	}
	return r.loop(events, painted)
}

// report records a panic in a file, since the terminal is covered by the screen.
func (u *UI) report(crash any) error {
	text := fmt.Sprintf("%v\n\n%s", crash, debug.Stack())
	if p, ok := crash.(panicked); ok {
		text = fmt.Sprintf("%v\n\n%s", p.what, p.stack)
	}
	if err := os.WriteFile(u.Report, []byte(text), 0o600); err != nil {
		return errors.Join(fmt.Errorf("the screen failed: %v", crash), err)
	}
	return fmt.Errorf("the screen failed, and %s says where", u.Report)
}

type panicked struct {
	what  any
	stack []byte
}

// paint reports that the terminal has painted a frame.
type paint struct {
	frame int
	at    time.Time
}

// terminal is what the screen does with its terminal, see term.Terminal.
type terminal interface {
	Size() (cols, rows int)
	Draw(term.Frame)
	Redraw()
	Pause(func()) error
	Suspend() error
	Copy(text string)
	Title(text string)
	Alert(title, text string)
}

// run is a running screen.
type run struct {
	ui   *UI
	m    *model
	term terminal
	ctx  context.Context
	all  sync.WaitGroup

	team     view.Team
	stopTeam context.CancelFunc
	teamCtx  context.Context
	watch    struct { // of a member's screen
		name string
		stop context.CancelFunc
		life life
		new  bool // life has changed since the screen was requested
	}
	stopTeams context.CancelFunc

	changes chan func(*model)
	running map[string]bool  // running reads
	again   map[string]doing // reads requested meanwhile
	crash   chan any

	frame    frame
	frameID  int
	footAt   time.Time // since when the last line is as it is
	guard    guard
	alerts   alerts
	gaze     gaze
	selected bool // the selection named by Select was made
	writing  *writing
	unkept   map[string]*writing // texts that could not be kept, by draft or comment
	title    string
	left     bool // the screen ends: an action took the person elsewhere
}

// loop waits for the next input, and draws the result.
func (r *run) loop(events <-chan term.Event, painted <-chan paint) error {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	stale := true
	for !r.left {
		if stale {
			r.draw(time.Now())
		}
		stale = true
		var due <-chan time.Time
		if d := r.due(); d > 0 {
			timer.Reset(d)
			due = timer.C
		}
		select {
		case <-r.ctx.Done():
			return nil
		case crash := <-r.crash:
			select {
			case r.crash <- crash:
			default: // another one has come
			}
			return nil
		case p := <-painted:
			r.guard.painted(p)
			timer.Stop()
			stale = false // unchanged: drawing again would paint for ever
			continue
		case e, ok := <-events:
			if !ok || e.Kind == term.Gone || r.event(e) {
				return nil
			}
		case change := <-r.changes:
			r.apply(change)
		case <-due:
			r.m.news++
		}
		timer.Stop()
		for more := true; more; { // simultaneous inputs are drawn once
			select {
			case change := <-r.changes:
				r.apply(change)
			default:
				more = false
			}
		}
	}
	return nil
}

// apply applies a change of the model.
func (r *run) apply(change func(*model)) {
	r.m.news++
	change(r.m)
}

// draw updates the model and shows it.
func (r *run) draw(now time.Time) {
	m := r.m
	m.now = now
	r.guard.due(r, m.now)
	r.rested(m.now)
	r.tryAgain(m.now)
	if m.news > 0 {
		m.refresh()
		m.news = 0
	}
	r.selectFirst()
	r.want()
	f := m.draw()
	r.frameID++
	r.guard.shown(m.underHand(f), r.frameID)
	if len(r.frame.lines) == 0 || len(f.lines) == 0 || f.lines[len(f.lines)-1] != r.frame.lines[len(r.frame.lines)-1] {
		r.footAt = now
	}
	r.frame = f
	r.term.Draw(term.Frame{ID: r.frameID, Lines: f.lines, Cursor: f.cursor, X: f.x, Y: f.y})
	title := "teamctl " + view.Clean(m.name)
	if _, n := m.needs(); n > 0 {
		title += fmt.Sprintf(" !%d", n)
	}
	if title != r.title {
		r.title = title
		r.term.Title(title)
	}
	if r.ui.Alerts {
		if title, text := r.alerts.look(m, r.gaze.focused); text != "" {
			r.term.Alert(title, text)
		}
	}
}

// due returns the time until the screen changes without an event, 0 for never: ages grow, and
// removed rows may disappear.
func (r *run) due() time.Duration {
	d := r.guard.wait(r.m.now)
	soonest := func(x time.Duration) {
		if x > 0 && (d == 0 || x < d) {
			d = x
		}
	}
	soonest(r.m.unsettled())
	soonest(r.m.laterEnds())
	soonest(r.unwritten())
	soonest(r.untilTry())
	soonest(r.alerts.wait(r.m.now))
	if !r.gaze.focused {
		return d
	}
	ages := func(t time.Time) {
		if !t.IsZero() {
			soonest(onSecond(r.m.now, view.AgeChanges(r.m.now.Sub(t))))
		}
	}
	switch r.m.at {
	case inTeam, inNeeds, inTasks:
		for _, n := range r.m.snap.Needs {
			ages(n.Since)
		}
		for _, x := range r.m.snap.Members {
			if !x.Lead {
				_, at := r.m.doing(x)
				ages(at)
			}
		}
		for _, x := range r.m.snap.Tasks {
			if x.Active() {
				ages(x.Began)
			}
		}
	case inTime:
		soonest(r.m.timeDue())
	case inLog:
		if l := r.m.logged; l.merge == 0 && l.log.To.IsZero() {
			ages(l.log.From)
		}
	default:
	}
	return d
}

// onSecond returns the time from now until the first whole second after d: ages that change at
// different moments of a second are drawn together.
func onSecond(now time.Time, d time.Duration) time.Duration {
	at := now.Add(d)
	on := at.Truncate(time.Second)
	if on.Before(at) {
		on = on.Add(time.Second)
	}
	return on.Sub(now)
}

// async runs f beside the screen; the function that it returns changes the model.
func (r *run) async(ctx context.Context, f doing) {
	r.all.Go(func() {
		defer r.caught()
		change := f(ctx)
		if change == nil {
			return
		}
		select {
		case r.changes <- change:
		case <-ctx.Done():
		}
	})
}

func (r *run) caught() {
	if what := recover(); what != nil {
		select {
		case r.crash <- panicked{what, debug.Stack()}:
		default:
		}
	}
}

// read runs f unless the same read is running: then it is repeated afterwards.
func (r *run) read(name string, f doing) {
	if r.running[name] {
		r.again[name] = f
		return
	}
	r.running[name] = true
	ctx := r.teamCtx
	r.async(ctx, func(ctx context.Context) func(*model) {
		change := f(ctx)
		return func(m *model) {
			if ctx == r.teamCtx && change != nil {
				change(m)
			}
			delete(r.running, name)
			if next := r.again[name]; next != nil {
				delete(r.again, name)
				r.read(name, next)
			}
		}
	})
}

// enterTeam leaves the current team and opens another.
func (r *run) enterTeam(name string) {
	r.leaveTeam()
	m := r.m
	m.name, m.have, m.problem, m.sections, m.snap = name, false, "", nil, view.Snapshot{}
	m.trouble, r.unkept = trouble{}, nil
	m.request, m.member, m.task = map[int64]view.Request{}, map[string]view.MemberDetail{}, map[string]view.TaskDetail{}
	m.mail, m.files, m.merges, m.changes, m.usage = nil, nil, nil, view.Changes{}, view.Usage{}
	m.past, m.logged, m.opened, m.graph, m.search, m.further = past{}, logged{}, nil, graph{}, notSearched, further{}
	m.back = nil
	m.screenOf, m.sent, m.receipt, m.filter, m.since, m.diff = "", "", nil, "", "", cursor{}
	if m.at == inTeams || m.inText() {
		m.at = inTeam
	}
	r.running, r.again = map[string]bool{}, map[string]doing{}
	ctx, cancel := context.WithCancel(r.ctx)
	r.teamCtx, r.stopTeam = ctx, cancel
	r.all.Go(func() {
		defer r.caught()
		r.follow(ctx, name)
	})
}

// follow reads the team until ctx ends. A failed read is retried at growing intervals, and the
// last known data stays on the screen with its age.
func (r *run) follow(ctx context.Context, name string) {
	r.persist(ctx, func(works func()) error {
		t, err := r.ui.Home.Open(ctx, name)
		if err != nil {
			return err
		}
		r.tell(ctx, func(*model) { r.team = t })
		return t.Follow(ctx, r.interest, func(s view.Snapshot) {
			works()
			r.tell(ctx, func(*model) { r.snapshot(s) })
		})
	}, func(m *model, err error) { m.loseTeam(name, err, time.Now()) })
}

// loseTeam takes note of why a team cannot be read.
func (m *model) loseTeam(name string, err error, now time.Time) {
	if m.problem == "" {
		m.problemAt = now
	}
	m.problem, m.problemIs = err.Error(), view.TroubleWords(err)
	m.loseLedger(name, view.LedgerGone(err))
}

// followTeams reads the list of teams until ctx ends, as follow reads a team.
func (r *run) followTeams(ctx context.Context) {
	r.persist(ctx, func(works func()) error {
		return r.ui.Home.Teams(ctx, r.gaze.teams, func(list []view.Glance) {
			works()
			r.tell(ctx, func(*model) { r.glances(list) })
		})
	}, func(m *model, err error) { m.loseTeams(err, time.Now()) })
}

// tell has the loop change the model, unless ctx has ended.
func (r *run) tell(ctx context.Context, change func(*model)) {
	select {
	case r.changes <- change:
	case <-ctx.Done():
	}
}

// persist calls try until ctx ends, at growing intervals, which begin anew each time that try has
// called works. failed changes the model when it has ended.
func (r *run) persist(ctx context.Context, try func(works func()) error, failed func(*model, error)) {
	pause := time.Second
	for ctx.Err() == nil {
		err := try(func() { pause = time.Second })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it is no longer followed")
		}
		r.tell(ctx, func(m *model) { failed(m, err) })
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		pause = min(2*pause, time.Minute)
	}
}

// tasksShown is how many tasks that are not in progress are read: more than a screen has lines.
const tasksShown = 320

func (r *run) interest() view.Interest { return view.Interest{Tasks: tasksShown, Looks: r.gaze.looks} }

func (r *run) snapshot(s view.Snapshot) {
	m := r.m
	m.snap, m.have, m.problem, m.problemIs = s, true, "", ""
	m.loseLedger(m.name, false)
	it, ok := m.row()
	if m.over.approval != 0 {
		r.readRequest(m.over.approval)
	} else if ok && it.on.Thing == view.OnApproval {
		r.readRequest(it.on.Need.Approval)
	}
	if ok && it.on.Thing == view.OnTask && it.on.Task != nil {
		r.readTask(it.on.Task.ID)
	}
	if m.sent != "" {
		r.readReceipt()
	}
	r.readPlace()
}

func (r *run) leaveTeam() {
	if r.stopTeam != nil {
		r.stopTeam()
		r.stopTeam = nil
	}
	r.unwatch()
	r.stopPager()
	r.stopGateLog()
	r.team = nil
	r.stopTeamsFollow()
}

func (r *run) stopTeamsFollow() {
	if r.stopTeams != nil {
		r.stopTeams()
		r.stopTeams = nil
	}
}

// goTo shows a place.
func (r *run) goTo(p place) {
	r.m.news++ // other rows
	m := r.m
	if m.at != p {
		r.stopPager()
		r.stopGateLog()
		if m.search == searched {
			m.search = notSearched
		}
		m.at, m.scroll, m.filter, m.sections, m.diff, m.across, m.back = p, 0, "", nil, cursor{}, across{}, nil
		if m.opens = p == inMail; m.opens {
			m.openMail()
		}
	}
	m.over = overlay{}
	if p != inTeams {
		r.stopTeamsFollow()
		r.readPlace()
		return
	}
	if r.stopTeams != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.stopTeams = cancel
	r.all.Go(func() {
		defer r.caught()
		r.followTeams(ctx)
	})
}
