package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// Plain is the screen for screen readers, braille and slow lines: labelled lines that are
// written once and stay, and words that are typed. It shows and does what UI does, by the
// same interfaces.
type Plain struct {
	Home     view.Home
	Start    view.Beginner // if set, for a machine without a team
	Team     string        // that it opens with, "" for the list of teams
	Why      string        // what has chosen it, in words
	ReadOnly bool
	In       io.Reader
	Out      io.Writer
}

// talk is a plain screen that is shown. One goroutine owns it; what is read and done beside
// it comes back as changes.
type talk struct {
	p       *Plain
	ctx     context.Context
	all     sync.WaitGroup
	changes chan func()

	name string
	team view.Team
	snap view.Snapshot
	have bool
	lost time.Time // since when the team cannot be read, zero while it can
	stop context.CancelFunc

	told    map[string]view.Need // needs that were announced
	numbers []string             // ids of needs by their number, which they keep until needs lists them anew
	own     []view.Deed          // done here, and not yet seen in an event
	events  map[string]bool      // events that were
	seen    map[int64]string     // requests that stand on the screen as a whole, by their hash
	shown   time.Time            // when the last of them was written
	last    time.Time            // of the last line that was typed
	menu    []view.Deed          // the numbered list that was written last
	first   []view.Command       // the numbered list of first commands, where there is no team
	asks    func(text string)    // takes the next line
	sent    string               // message whose receipt is told
	sentTo  string
	receipt string
}

// Run shows the screen until the person leaves it, the input ends or ctx does.
func (p *Plain) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t := &talk{p: p, ctx: ctx, changes: make(chan func(), 16)}
	defer t.all.Wait()
	defer cancel()
	next, lines := make(chan struct{}), make(chan string)
	go func() { // it may wait for a line for ever: the process ends with it
		defer close(lines)
		in := bufio.NewScanner(p.In)
		in.Buffer(nil, team.MaxMessageBytes)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
			select {
			case <-next: // what runs meanwhile may need the terminal
			case <-ctx.Done():
				return
			}
		}
	}()
	t.begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-t.changes:
			change()
		case line, ok := <-lines:
			if !ok || t.line(strings.TrimSpace(line), time.Now()) {
				return nil
			}
			select {
			case next <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}
}

// say writes one line. Whatever is in it cannot write another one.
func (t *talk) say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	_, _ = fmt.Fprintln(t.p.Out, plain.Visible(strings.ReplaceAll(text, "\t", "    "))) // a terminal that has gone ends the input
}

// sayLines writes lines with a label before each but the first, which begins with words of the screen: a line that
// a member has written is not taken for one of those.
func (t *talk) sayLines(label string, lines []string) {
	for i, l := range slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.TrimSpace(s) == "" }) {
		l = strings.TrimRight(strip(l), " ")
		if i > 0 {
			l = label + ": " + l
		}
		t.say("%s", l)
	}
}

func (t *talk) begin() {
	t.told, t.events, t.seen = map[string]view.Need{}, map[string]bool{}, map[int64]string{}
	if t.p.Team != "" {
		t.open(t.p.Team)
		return
	}
	t.say("teamctl, plain screen: on by %s. help lists the words.", t.p.Why)
	t.teams()
}

// silenceFor is how long the supervisors of a list of teams may take to turn out silent.
const silenceFor = time.Minute

// teams lists the teams of the machine, once, and then the supervisors that do not answer.
func (t *talk) teams() {
	ctx, cancel := context.WithTimeout(t.ctx, silenceFor)
	t.all.Go(func() {
		defer cancel()
		listed, silent := false, map[string]bool{}
		err := t.p.Home.Teams(ctx, nil, func(list []view.Glance) {
			if !listed {
				listed = true
				t.later(func() { t.list(list) })
			}
			for _, g := range list {
				if g.Silent && !silent[g.Team] {
					silent[g.Team] = true
					t.later(func() { t.say("team %s: %s, facts are of then.", view.Clean(g.Team), view.DownWords(g.Down, true)) })
				}
			}
		})
		if err != nil && ctx.Err() == nil {
			t.later(func() { t.fail(err) })
		}
	})
}

// list lists teams.
func (t *talk) list(teams []view.Glance) {
	if len(teams) == 0 && t.p.Start != nil {
		t.start()
		return
	}
	for i, g := range teams {
		what := strings.TrimSpace(strings.TrimPrefix(g.String(), view.Clean(g.Team)))
		switch {
		case g.Unread != "":
			what = "cannot be read: " + view.Clean(g.Unread)
		case !g.Down.IsZero():
			what += ", " + view.DownWords(g.Down, g.Silent)
		}
		t.say("team %d of %d: %s, %d need you, %s", i+1, len(teams), view.Clean(g.Team), g.Needs, what)
	}
	t.say("team NAME opens one.")
}

// later has a change made by the goroutine that owns the screen.
func (t *talk) later(change func()) {
	select {
	case t.changes <- change:
	case <-t.ctx.Done():
	}
}

func (t *talk) fail(err error) {
	for line := range strings.SplitSeq(strings.TrimRight(err.Error(), "\n"), "\n") {
		t.say("error: %s", line)
	}
	if hint := team.HintOf(err); hint != "" {
		t.say("hint: %s", hint)
	}
}

// open leaves the team that is shown and opens another.
func (t *talk) open(name string) {
	if t.stop != nil {
		t.stop()
	}
	first := t.name == ""
	t.name, t.team, t.have, t.snap, t.sent = name, nil, false, view.Snapshot{}, ""
	t.told, t.events, t.seen = map[string]view.Need{}, map[string]bool{}, map[int64]string{}
	t.numbers, t.own, t.lost = nil, nil, time.Time{}
	ctx, cancel := context.WithCancel(t.ctx)
	t.stop = cancel
	t.all.Go(func() {
		pause, lost := time.Second, ""
		for ctx.Err() == nil {
			x, err := t.p.Home.Open(ctx, name)
			if err == nil {
				err = x.Follow(ctx, func() view.Interest { return view.Interest{Tasks: tasksShown} }, func(s view.Snapshot) {
					pause, lost = time.Second, ""
					asked := requestsOf(ctx, x, s)
					t.later(func() {
						if ctx.Err() == nil {
							t.team = x
							t.snapshot(s, asked, first)
							first = false
						}
					})
				})
			}
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				err = errors.New("it is no longer followed")
			}
			if err.Error() != lost {
				lost = err.Error()
				t.later(func() {
					if ctx.Err() == nil {
						t.unread(err, time.Now())
					}
				})
			}
			again := time.NewTimer(pause)
			select {
			case <-again.C:
			case <-ctx.Done():
			}
			again.Stop()
			pause = min(2*pause, time.Minute)
		}
	})
}

// requestsOf are the requests that wait, in full.
func requestsOf(ctx context.Context, x view.Team, s view.Snapshot) map[int64]view.Request {
	out := map[int64]view.Request{}
	for _, n := range s.Needs {
		if n.Approval != 0 {
			if r, err := x.Request(ctx, n.Approval); err == nil {
				out[n.Approval] = r
			}
		}
	}
	return out
}

func clock(t time.Time) string { return t.Local().Format("15:04") }

// unread tells why the team cannot be read.
func (t *talk) unread(err error, now time.Time) {
	if t.lost.IsZero() {
		t.lost = now
	}
	t.say("changed %s: the team cannot be read: %s. It is tried again.", clock(now), err)
}

// old says of when the last facts are while the team cannot be read.
func (t *talk) old() {
	if !t.lost.IsZero() {
		t.say("the team cannot be read, facts are of %s.", clock(t.lost))
	}
}

// snapshot tells what has changed since the one before, once.
func (t *talk) snapshot(s view.Snapshot, asked map[int64]view.Request, first bool) {
	before, had := t.snap, t.have
	t.snap, t.have = s, true
	if had && !t.lost.IsZero() {
		t.say("changed %s: the team can be read again.", clock(time.Now()))
	}
	t.lost = time.Time{}
	if !had {
		c := s.Count()
		head := ""
		if first {
			head = "teamctl, plain screen: on by " + t.p.Why + ". "
		}
		t.say("%sTeam %s. %s, %d of %d tasks done. help lists the words.", head, view.Clean(t.name), needsWords(s.Needs), c.Done, c.Total)
	}
	if !s.Down.IsZero() && (!had || before.Down.IsZero() || before.Silent != s.Silent) {
		t.say("%s, facts are of then.", view.DownWords(s.Down, s.Silent))
	}
	if had && s.Down.IsZero() && !before.Down.IsZero() {
		again := "a supervisor is up again"
		if before.Silent {
			again = "the supervisor answers again"
		}
		t.say("changed %s: %s.", clock(time.Now()), again)
	}
	present := map[string]bool{}
	for _, n := range s.Needs {
		t.number(n)
	}
	for _, n := range s.Needs {
		id := needID(n)
		present[id] = true
		switch told, ok := t.told[id]; {
		case ok && n.Later && !told.Later:
			t.say("changed %s: %d, %s, is %s.", clock(time.Now()), t.number(n), needName(n), n.OffWords())
		case !ok && !n.Later, ok && told.Later && !n.Later:
			t.need(n, asked[n.Approval])
		case ok:
			continue
		}
		t.told[id] = n
	}
	var fresh []view.Event // those behind all that were known: the clock may have been set back
	unknown := map[string]bool{}
	for _, e := range s.Events {
		key := fmt.Sprint(e.At.UnixMilli(), e.What, e.ID, e.Text)
		switch {
		case t.events[key]:
			fresh = nil
		case !unknown[key] && had && e.Text != "":
			fresh = append(fresh, e)
		}
		unknown[key] = true
	}
	maps.Copy(t.events, unknown)
	for i, id := range t.numbers {
		n, ok := t.told[id]
		if !ok || present[id] {
			continue
		}
		delete(t.told, id)
		if !slices.ContainsFunc(fresh, func(e view.Event) bool { return tells(e, n) }) {
			t.say("gone: %d, %s.", i+1, needName(n))
		}
	}
	own := map[int]bool{}
	for _, e := range fresh {
		if i := slices.IndexFunc(t.own, func(d view.Deed) bool { return did(d, e) }); i >= 0 {
			own[i] = true
			continue
		}
		t.say("changed %s: %s.", clock(e.At), view.Clean(e.Text))
	}
	left := t.own[:0:0]
	for i, d := range t.own {
		if !own[i] {
			left = append(left, d)
		}
	}
	t.own = left
	if t.sent != "" {
		t.tellReceipt()
	}
}

// tells reports whether an event says what became of a need.
func tells(e view.Event, n view.Need) bool {
	return n.Approval != 0 && strings.HasPrefix(e.What, team.ApprovalEvents) && e.ID == strconv.FormatInt(n.Approval, 10) ||
		n.Kind == view.NeedTask && strings.HasPrefix(e.What, team.TaskEvents) && e.ID == n.Task
}

// did reports whether an event is what a deed of this screen has done, which was told then.
func did(d view.Deed, e view.Event) bool {
	a, _ := view.ActionByID(d.Action)
	switch {
	case e.Who != view.By("", "screen"):
		return false
	case a.Operation == "ApprovalAnswer":
		return strings.HasPrefix(e.What, team.ApprovalEvents) && e.ID == strconv.FormatInt(d.Approval, 10)
	case a.ID == "add-task":
		subject, _, _ := strings.Cut(strings.TrimSpace(d.Text), "\n")
		return e.What == team.EventTaskCreated && strings.HasSuffix(e.Text, e.ID+" "+strings.TrimSpace(subject))
	case slices.Contains(a.On, view.OnTask) && d.Task != "":
		return strings.HasPrefix(e.What, team.TaskEvents) && e.ID == d.Task
	case a.ID == "review-task" && (e.What == team.EventTaskCreated || e.What == team.EventTaskAssigned):
		return true
	}
	return d.Member != "" && e.ID == d.Member
}

// needName names a need in a sentence: "permission 3 of builder".
func needName(n view.Need) string {
	if n.Member != "" {
		return n.Name() + " of " + view.Clean(n.Member)
	}
	return n.Name()
}

// number returns the number of a need, and gives it the next one if it has none.
func (t *talk) number(n view.Need) int {
	id := needID(n)
	if i := slices.Index(t.numbers, id); i >= 0 {
		return i + 1
	}
	t.numbers = append(t.numbers, id)
	return len(t.numbers)
}

func needsWords(list []view.Need) string {
	words := "Nothing needs you"
	switch n := len(view.Waiting(list)); n {
	case 0:
	case 1:
		words = "1 needs you"
	default:
		words = fmt.Sprintf("%d need you", n)
	}
	if n := len(view.Off(list)); n > 0 {
		words += fmt.Sprintf(", %d put off", n)
	}
	return words
}

// need writes a need in one line. If the line contains the whole request, the person has seen it
// and may answer it.
func (t *talk) need(n view.Need, r view.Request) {
	what := []string{n.Name()}
	if n.Member != "" {
		what = append(what, n.Member)
	}
	whole := false
	switch {
	case r.Command != "" && r.Plan == "" && len(r.Fields) == 0 && len(r.Questions) == 0:
		what = append(what, r.Tool, strconv.Quote(r.Command))
		if r.Description != "" {
			what = append(what, "described as "+strconv.Quote(r.Description))
		}
		whole = r.State == "pending"
	default:
		what = append(what, n.Text)
	}
	if !n.Since.IsZero() {
		what = append(what, "waits "+inWords(time.Since(n.Since)))
	}
	number, state := fmt.Sprint(t.number(n)), "needs you"
	if n.Later {
		state = n.OffWords()
	} else if len(t.numbers) == len(t.snap.Needs) { // none has gone
		number += fmt.Sprintf(" of %d", len(view.Waiting(t.snap.Needs)))
	}
	t.say(state+" %s: %s", number, strings.Join(slices.DeleteFunc(what, func(s string) bool { return s == "" }), ", "))
	if whole {
		t.seen[r.ID], t.shown = r.Seen(), time.Now()
	}
}

// inWords is an age in words.
func inWords(d time.Duration) string {
	n, unit := int(d.Hours()/24), "day"
	switch {
	case d < time.Minute:
		n, unit = max(0, int(d.Seconds())), "second"
	case d < time.Hour:
		n, unit = int(d.Minutes()), "minute"
	case d < 24*time.Hour:
		n, unit = int(d.Hours()), "hour"
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// tellReceipt tells how far the message that was sent last has come, when that changes.
func (t *talk) tellReceipt() {
	x, id, to := t.team, t.sent, t.sentTo
	t.all.Go(func() {
		list, err := x.Receipts(t.ctx, id)
		if err != nil || len(list) == 0 {
			return
		}
		m := model{sent: id, sentTo: to, receipt: list}
		line := m.receiptLine()
		t.later(func() {
			if t.sent == id && t.receipt != line {
				t.receipt = line
				t.say("message %s", line)
			}
		})
	})
}
