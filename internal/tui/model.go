package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// place is the content of the screen.
type place string

// Places, in the order of their digit keys; the last ones have none.
const (
	inTeam    place = "team"
	inTasks   place = "tasks"
	inNeeds   place = "needs"
	inMail    place = "mail"
	inChanges place = "changes"
	inUsage   place = "usage"
	inTime    place = "time"
	inScreen  place = "screen"
	inLog     place = "log"
	inPager   place = "pager"
	inTeams   place = "teams"
)

var digits = []place{inTeam, inTasks, inNeeds, inMail, inChanges, inUsage, inTime}

// Views returns the names of the places that can be requested.
func Views() []string {
	out := []string{}
	for _, p := range digits {
		out = append(out, string(p))
	}
	return out
}

// settle is how long after the last key rows are sorted again, so that they do not move during
// input.
const settle = 2 * time.Second

// model has everything that the screen shows; a frame depends on nothing else.
type model struct {
	cols, rows int
	now        time.Time
	style      Style
	ascii      bool
	readOnly   bool
	keys       Keymap

	teams     []view.Glance
	teamsLost string // why the list of teams is not current, "" if it is
	teamsAt   time.Time
	lastRead  map[string]lastRead // of the teams in the list
	begins    beginning
	name      string // of the team
	snap      view.Snapshot
	have      bool   // a snapshot has arrived
	problem   string // why there is no current one
	problemIs string // the same in a few words, "" for another kind of error
	problemAt time.Time
	trouble   trouble

	at       place
	sections []group // as shown
	tab      int     // of the team in one column: the group below the needs
	cursor   string  // id of the selected row
	news     int     // changes since the rows were made, other than of the selection and of a screen
	top      map[string]int
	stays    stays
	lastKey  time.Time
	filter   string
	made     choosing // what chose the rows, when they were made

	request  map[int64]view.Request
	member   map[string]view.MemberDetail
	task     map[string]view.TaskDetail
	screen   view.Frame // of the member screenOf
	screenOf string
	back     *readBack // while a member's screen is read back, nil otherwise
	mail     []view.Message
	opens    bool   // the mail is being read for the first time since it was opened
	wanted   string // id of the message that it was opened for
	usage    view.Usage
	changes  view.Changes
	files    []view.FileDiff
	merges   []view.Merge
	since    string // what changes are compared with, one of view.Sinces
	diff     cursor // in the changes of the selected file
	across   across
	drawn    *shownDiff
	unified  bool   // changes in one column, even if there is room for two
	tasksAs  string // one of drawings
	graph    graph
	logged   logged
	paged    *paged // nil: no pager has been asked for
	past     past
	further  further
	opened   map[string]bool // rows that members share, by id
	dividers dividers

	// screenFrom is the place from which the whole screen was opened, and screenRow the row there.
	screenFrom place
	screenRow  string
	search     search // for a member with changes

	over overlay

	scroll  int    // of the visible detail
	toast   string // result of the last action
	bad     bool   // it is an error
	sent    string // id of the message whose receipts are shown
	sentTo  string
	receipt []view.Receipt
	// receiptOld: a key came since the receipt has changed
	receiptOld bool
	drafts     map[string]string // unsent text that the ledger does not have, by team and purpose
	kept       map[string]string // the same of text that it has, as far as it was typed here
	noted      map[string]string // comments that it has and that were not sent, as far as they were typed here, by team and name
	lost       map[string]bool   // teams whose ledger is gone
	offered    view.Need         // that the person is asked about how long to put it off
}

func newModel() *model {
	return &model{
		at: inTeam, top: map[string]int{}, request: map[int64]view.Request{}, member: map[string]view.MemberDetail{}, task: map[string]view.TaskDetail{},
		drafts: map[string]string{}, tasksAs: "list", tab: 1, news: 1, style: Style{On: false}, keys: DefaultKeys(),
	}
}

// group is a list with a heading.
type group struct {
	id, title string
	titles    []string   // shorter titles, the longest first
	parts     [][]string // what follows the title as far as it fits, the longest first of each
	items     []item
	note      string // what stands there while there are no items
	tasks     bool   // the list of the tasks
}

func (s group) noteLines(width int) []string {
	if s.note == "" || len(s.items) > 0 {
		return nil
	}
	return wrapped(s.note, width-4)
}

// head returns the title in a width, with the parts that fit: they are left out from the last one on.
func (s group) head(width int) string {
	title := s.title
	for _, t := range s.titles {
		if view.Width(title) <= width {
			break
		}
		title = t
	}
	for _, p := range s.parts {
		for _, text := range p {
			if longer := title + "  " + text; view.Width(longer) <= width {
				title = longer
				break
			}
		}
	}
	return title
}

// height returns how many lines show all of a group.
func (s group) height(width int) int { return 1 + len(s.items) + len(s.noteLines(width)) }

// item is one row of a group.
type item struct {
	id   string
	on   view.Target
	gone bool   // it has disappeared since the rows were sorted
	text string // without its mark, for the filter
	// line draws it in a width; more, which may be nil, draws what follows it while it is selected.
	line  func(width int) string
	more  func(width int) []string
	file  int // of the changes, from 1
	cross int // member of a file of all members, from 1
}

// row returns the selected row.
func (m *model) row() (item, bool) {
	for _, s := range m.sections {
		for _, it := range s.items {
			if it.id == m.cursor {
				return it, true
			}
		}
	}
	return item{}, false
}

// flat returns all rows in order, and the position of the selected one, -1 for none.
func (m *model) flat() (all []item, at int) {
	at = -1
	for _, s := range m.visible() {
		for _, it := range s.items {
			if it.id == m.cursor {
				at = len(all)
			}
			all = append(all, it)
		}
	}
	return all, at
}

// visible returns the sections whose rows can be selected.
func (m *model) visible() []group {
	if m.at != inTeam || m.wide() || len(m.sections) < 2 {
		return m.sections
	}
	at := m.groupAt()
	if m.small() {
		return m.sections[at : at+1]
	}
	if at == 0 {
		at = clamp(m.tab, 1, len(m.sections)-1)
	}
	return []group{m.sections[0], m.sections[at]}
}

// groupAt returns the group of the selected row, or the first one with rows.
func (m *model) groupAt() int {
	first := -1
	for i, s := range m.sections {
		if first < 0 && len(s.items) > 0 {
			first = i
		}
		if slices.ContainsFunc(s.items, func(it item) bool { return it.id == m.cursor }) {
			return i
		}
	}
	return max(0, first)
}

// asOf returns the time of the facts about members, zero while they are current.
func (m *model) asOf() time.Time {
	if m.snap.Down.IsZero() && m.problem != "" {
		return m.problemAt
	}
	return m.snap.Down
}

func (m *model) wide() bool  { return m.cols >= 100 && m.rows >= 16 }
func (m *model) small() bool { return m.cols < 60 || m.rows < 12 }

func clamp(n, low, high int) int { return max(low, min(n, high)) }

// choosing is what a person has chosen the rows by. Rows that another choice leaves out have not gone.
type choosing struct {
	filter, logKind string
	logAll          bool
}

func (m *model) choosing() choosing { return choosing{m.filter, m.past.logKind, m.past.logAll} }

// stays is the line of the selected row in the last frame: rows that come or go above it leave the row
// there, and its list scrolls instead.
type stays struct {
	on selection
	y  int
}

// selection is a selected row and everything that a person arranges the rows with.
type selection struct {
	team, row  string
	at         place
	tasksAs    string
	by         choosing
	cols, rows int
}

func (m *model) selection() selection {
	return selection{m.name, m.cursor, m.at, m.tasksAs, m.choosing(), m.cols, m.rows}
}

// refresh rebuilds the rows. During input they keep their places: removed rows stay, marked, and
// new ones come last.
func (m *model) refresh() {
	fresh := m.build()
	if m.filter != "" && !m.inText() { // texts are searched
		for i, s := range fresh {
			all := len(s.items)
			fresh[i].items = slices.DeleteFunc(s.items, func(it item) bool { return !view.Matches(it.text, m.filter) })
			switch {
			case s.tasks:
				fresh[i].title += m.found(len(fresh[i].items))
				if n := m.searched(); n != "" && len(fresh[i].items) == 0 {
					fresh[i].note = "none" + n + " so far"
				}
			case all > 0 && s.parts != nil:
				fresh[i].parts = append([][]string{{fmt.Sprintf("%d of %d shown", len(fresh[i].items), all)}}, s.parts...)
			case all > 0:
				fresh[i].title += fmt.Sprintf(", %d of %d shown", len(fresh[i].items), all)
			}
		}
	}
	by := m.choosing()
	moving := m.now.Sub(m.lastKey) < settle && by == m.made
	m.made = by
	if moving && len(fresh) == len(m.sections) {
		for i := range fresh {
			if fresh[i].id == m.sections[i].id && fresh[i].id != graphGroup && fresh[i].id != treeGroup {
				fresh[i].items = held(m.sections[i].items, fresh[i].items)
			}
		}
	}
	old, at := m.flat()
	m.sections = fresh
	if _, ok := m.row(); !ok || !m.reachable() {
		all, _ := m.flat()
		switch {
		case len(all) == 0:
			m.cursor = ""
		case at >= 0 && len(old) > 0:
			m.cursor = all[clamp(at, 0, len(all)-1)].id
		default:
			m.cursor = all[0].id
		}
	}
}

func (m *model) reachable() bool {
	_, at := m.flat()
	return at >= 0
}

// held returns the new list in the order of the old one.
func held(old, fresh []item) []item {
	byID := map[string]item{}
	for _, it := range fresh {
		byID[it.id] = it
	}
	out := make([]item, 0, len(fresh))
	seen := map[string]bool{}
	for _, it := range old {
		now, ok := byID[it.id]
		if !ok {
			it.gone = true
			now = it
		}
		seen[it.id] = true
		out = append(out, now)
	}
	for _, it := range fresh {
		if !seen[it.id] {
			out = append(out, it)
		}
	}
	return out
}

// unsettled returns the time until removed rows may disappear.
func (m *model) unsettled() time.Duration {
	rest := settle - m.now.Sub(m.lastKey)
	if rest <= 0 || m.lastKey.IsZero() {
		return 0
	}
	return rest
}

// say shows a result in the last line, until the next key.
func (m *model) say(text string, bad bool) { m.toast, m.bad = text, bad }

// fail shows an error with its hint.
func (m *model) fail(what string, err error, hint string) {
	text := strings.TrimSpace(what + " " + err.Error())
	if hint != "" {
		text += ": " + hint
	}
	m.say(text, true)
}

// move moves the selection by n rows.
func (m *model) move(n int) {
	all, at := m.flat()
	if column, row := m.inColumn(); m.inColumns() && column >= 0 {
		all, at = m.sections[column].items, row
	}
	if len(all) == 0 {
		return
	}
	m.choose(all[clamp(at+n, 0, len(all)-1)].id)
	m.nearEnd()
}

func (m *model) choose(id string) {
	if m.cursor != id {
		m.cursor, m.scroll = id, 0
	}
}

// nextNeed selects the need after or before the selected one.
func (m *model) nextNeed(step int) bool {
	var ids []string
	for _, s := range m.sections {
		if s.id == "needs" {
			for _, it := range s.items {
				if !it.gone && (it.on.Need == nil || !it.on.Need.PutOff(m.now)) {
					ids = append(ids, it.id)
				}
			}
		}
	}
	if len(ids) == 0 {
		return false
	}
	at := slices.Index(ids, m.cursor)
	switch {
	case at >= 0:
		at = (at + step + len(ids)) % len(ids)
	case step < 0:
		at = len(ids) - 1
	default:
		at = 0
	}
	m.choose(ids[at])
	return true
}

// target returns the current target of actions.
func (m *model) target() view.Target {
	if id := m.over.approval; id != 0 { // an open request is the target, whatever row is selected meanwhile
		for _, n := range m.snap.Needs {
			if n.Approval == id {
				return m.planTarget(view.Target{Thing: view.OnApproval, Need: &n, Member: m.memberOf(n.Member)})
			}
		}
	}
	if it, ok := m.row(); ok && !it.gone {
		if it.on.Thing == view.OnChange {
			return m.changeTarget(it)
		}
		if it.on.Thing == view.OnApproval {
			return m.planTarget(it.on)
		}
		return it.on
	}
	return view.Target{Thing: view.OnTeam}
}

// actions returns the actions on the selected row, followed by those on the team. The list of teams
// has none: the open team is not the selected one.
func (m *model) actions() []view.Action {
	if m.at == inTeams {
		return nil
	}
	t := m.target()
	var list []view.Action
	if t.Thing != view.OnTeam {
		list = view.ActionsOn(t)
	}
	list = append(list, view.ActionsOn(view.Target{Thing: view.OnTeam})...)
	if m.readOnly {
		list = slices.DeleteFunc(list, func(a view.Action) bool { return a.Operation != "" })
	}
	for i := range list {
		list[i].Key = m.keys.first(list[i].ID)
	}
	return list
}

// receiptLine returns the delivery state of the last sent message.
func (m *model) receiptLine() string {
	if m.sent == "" || len(m.receipt) == 0 {
		return ""
	}
	r := m.receipt[0]
	line := fmt.Sprintf("to %s: %s %s", view.Clean(m.sentTo), r.State, r.At.Local().Format("15:04:05"))
	if n := len(m.receipt); n > 1 {
		counts := map[string]int{}
		for _, x := range m.receipt {
			counts[string(x.State)]++
		}
		var parts []string
		for _, x := range m.receipt {
			if c := counts[string(x.State)]; c > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", c, x.State))
				counts[string(x.State)] = 0
			}
		}
		line = "to " + view.Clean(cmp.Or(m.sentTo, "all")) + ": " + strings.Join(parts, ", ")
	}
	if r.Reason != "" {
		line += ": " + view.Clean(r.Reason)
	}
	return line
}

// heard takes note of a key: results were read, and a receipt that is complete.
func (m *model) heard() {
	m.toast, m.receiptOld = "", true
	for _, r := range m.receipt {
		if r.State != team.Read && r.State != team.Answered && r.State != team.Dropped {
			return
		}
	}
	if len(m.receipt) > 0 {
		m.sent, m.receipt = "", nil
	}
}

// doing is a read or deed beside the loop; its result is a change of the model.
type doing func(ctx context.Context) func(*model)
