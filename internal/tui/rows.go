package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// build returns the rows of the place.
func (m *model) build() []group {
	switch m.at {
	case inTeam:
		return []group{m.needRows(), m.memberRows(), m.taskRows()}
	case inNeeds:
		return []group{m.needRows()}
	case inTasks:
		return m.boardRows()
	case inMail:
		return []group{m.mailRows()}
	case inChanges:
		return []group{m.fileRows(), m.mergeRows()}
	case inUsage:
		return []group{m.usageRows()}
	case inTeams:
		switch {
		case len(m.teams) > 0:
		case m.teamsLost != "":
			return nil
		default:
			return m.startRows()
		}
		return []group{m.teamRows()}
	case inLog:
		return m.logRows()
	case inTime:
		return m.timeRows()
	case inScreen:
		return m.screenRows()
	case inPager: // it has none
	}
	return nil
}

// age formats the time since t, "" if t is unknown.
func (m *model) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return view.Age(m.now.Sub(t))
}

// columns places texts beside each other: each is padded to its width, and the one of width 0 gets
// the rest.
func columns(width int, gap string, texts []string, widths []int) string {
	left := width - len(gap)*(len(texts)-1)
	for _, w := range widths {
		left -= w
	}
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteString(gap)
		}
		w := widths[i]
		if w == 0 {
			w = max(0, left)
		}
		b.WriteString(view.Pad(t, w))
	}
	return b.String()
}

// widest returns the width of the longest text, at most most.
func widest(most int, texts ...string) int {
	w := 0
	for _, t := range texts {
		w = max(w, view.Width(t))
	}
	return min(w, most)
}

func (m *model) memberOf(name string) *view.Member {
	for i := range m.snap.Members {
		if m.snap.Members[i].Name == name {
			return &m.snap.Members[i]
		}
	}
	return nil
}

func (m *model) taskOf(id string) *view.Task {
	for i := range m.snap.Tasks {
		if m.snap.Tasks[i].ID == id {
			return &m.snap.Tasks[i]
		}
	}
	for i := range m.further.tasks {
		if m.further.tasks[i].ID == id {
			return &m.further.tasks[i]
		}
	}
	return nil
}

func needID(n view.Need) string { return n.ID() }

// needRows returns what waits for a person. The word for each is what a person reads first, for
// example "failed" for a task.
func (m *model) needRows() group {
	list, now := m.needs()
	s := group{id: "needs", title: needTitle(now, len(list))}
	who, word := 6, 6
	for _, n := range list {
		who = max(who, widest(20, view.Clean(needWho(n))))
		word = max(word, widest(12, needWord(n)))
	}
	for _, n := range list {
		on := view.Target{Thing: view.OnTeam, Need: &n, Member: m.memberOf(n.Member)}
		switch {
		case n.Approval != 0:
			on.Thing = view.OnApproval
		case n.Kind == view.NeedTask && n.Task != "":
			on.Thing, on.Task = view.OnTask, m.taskOf(n.Task)
		case n.Kind == view.NeedMerge:
			on.Thing = view.OnMember
		case n.Member != "":
			on.Thing = view.OnMember
		}
		if n.Task != "" {
			on.Task = m.taskOf(n.Task)
		}
		text := plain.Visible(strings.TrimSpace(n.Text))
		if n.PutOff(m.now) {
			text = n.OffWords() + ": " + text
		}
		s.items = append(s.items, item{
			id: needID(n), on: on, text: strings.Join([]string{needWord(n), n.Member, n.Task, text}, " ") + m.needWords(n, on.Task),
			line: func(w int) string {
				name := view.Clean(needWho(n))
				if w < 26 {
					return columns(w, " ", []string{name, m.age(n.Since)}, []int{0, min(4, view.Width(m.age(n.Since)))})
				}
				if w < 60 {
					tag := min(word, 10)
					return columns(w, " ", []string{needWord(n), name, m.age(n.Since)}, []int{tag, 0, 4})
				}
				return columns(w, "  ", []string{m.style.Yellow(needWord(n)), name, text, m.age(n.Since)}, []int{word, who, 0, 4})
			},
			more: func(w int) []string {
				if w >= 26 && w < 60 {
					return []string{"  " + text}
				}
				return nil
			},
		})
	}
	return s
}

// memberWords returns what a filter finds a member by beside its name, after a space; "" for no member.
func (m *model) memberWords(name string) string {
	x := m.memberOf(name)
	if m.filter == "" || x == nil {
		return ""
	}
	_, word := m.sign(*x)
	return " state:" + word + " agent:" + x.Agent
}

// needWords is memberWords for a need: that of its member, and of its task.
func (m *model) needWords(n view.Need, t *view.Task) string {
	words := m.memberWords(n.Member)
	if m.filter != "" && t != nil {
		words += " state:" + string(t.Status)
		if n.Member == "" {
			words += m.memberWords(t.Owner)
		}
	}
	return words
}

func needWord(n view.Need) string {
	if n.Kind == view.NeedTask {
		return "failed"
	}
	return string(n.Kind)
}

func needWho(n view.Need) string {
	switch {
	case n.Kind == view.NeedTask && n.Task != "":
		return "task " + n.Task
	case n.Member != "":
		return n.Member
	case n.Kind == view.NeedSupervisor:
		return ""
	}
	return "team"
}

// sign returns a member's state as one character and one word.
func (m *model) sign(x view.Member) (sign, word string) {
	if !m.asOf().IsZero() && !x.State.Terminal() {
		return m.style.Yellow("?"), x.Doing()
	}
	switch x.State {
	case team.Running:
		switch {
		case x.Paused:
			return "=", "paused"
		case !x.StalledSince.IsZero():
			return m.style.Yellow("!"), "stalled"
		case x.Activity == team.Working:
			return m.style.Cyan("▸"), "working"
		case x.Activity == team.Waiting:
			return m.style.Yellow("?"), "waiting"
		case x.Activity == team.Idle:
			return m.style.Dim("·"), "idle"
		case x.Activity == team.Limited:
			return m.style.Yellow("◌"), "limited"
		}
		return m.style.Dim("?"), string(x.Activity)
	case team.Failed:
		return m.style.Red("✗"), "failed"
	default:
	}
	return m.style.Dim("○"), string(x.State)
}

// memberRank orders members by their importance for a person.
func (m *model) memberRank(x view.Member) int {
	switch {
	case x.State == team.Failed || !x.StalledSince.IsZero():
		return 1
	case x.State == team.Running && x.Activity == team.Waiting:
		return 0
	case x.State == team.Running && x.Activity == team.Working:
		return 2
	case x.State == team.Running && x.Activity != team.Idle || x.State == team.Starting || x.State == team.Backoff:
		return 3
	case x.State == team.Running:
		return 4
	}
	return 5
}

// busy returns what a member is busy with, since when, and its cost.
func (m *model) busy(x view.Member) (what, since, cost string) {
	if x.CostKnown {
		cost = fmt.Sprintf("$%.2f", x.Cost)
	} else {
		cost = "     -"
	}
	what, at := m.doing(x)
	return what, m.age(at), cost
}

// doing returns what a member is busy with, and since when: the age in its row is from then.
func (m *model) doing(x view.Member) (what string, at time.Time) {
	at = x.ActiveSince
	switch old := m.asOf(); {
	case !old.IsZero() && !x.State.Terminal():
		return old.Local().Format("15:04"), old
	case x.WaitsFor != "" && x.Activity == team.Waiting:
		what = x.WaitsFor
	case x.State != team.Running:
		what, at = view.Clean(x.Note), x.Since
	case x.Activity == team.Limited:
		what = view.Clean(x.Agent)
		if !x.LimitedTo.IsZero() {
			what = strings.TrimPrefix(what+", until "+x.LimitedTo.Local().Format("15:04"), ", ")
		}
	case !x.StalledSince.IsZero():
		at = x.StalledSince
	}
	if t, ok := m.snap.TaskOf(x.Name); ok && what == "" {
		what = t.ID + " " + view.Clean(t.Subject)
		if x.Activity == team.Working {
			at = t.Began
		}
	}
	if x.State == team.Running && x.Plan && what == "" {
		what = "plan mode"
	}
	for _, n := range m.snap.Needs {
		if n.Member == x.Name && (n.Approval != 0 || n.Kind == view.NeedDialog) {
			at = n.Since
		}
	}
	return what, at
}

// agentOf returns the kind of agent of a member, "" for none.
func (m *model) agentOf(name string) string {
	if x := m.memberOf(name); x != nil {
		return x.Agent
	}
	return ""
}

func taskID(t view.Task) string { return "task:" + t.ID }

func (m *model) taskItem(t view.Task, id, owner int) item {
	on := view.Target{Thing: view.OnTask, Task: &t, Member: m.memberOf(t.Owner)}
	text := ""
	if m.filter != "" {
		text = t.Words(m.agentOf(t.Owner))
	}
	return item{
		id: taskID(t), on: on, text: text,
		line: func(w int) string {
			sign, last := t.Sign(), ""
			switch {
			case t.Active():
				sign, last = m.style.Cyan(sign), view.Age(t.Took(m.now))
				if t.Note != "" {
					last = view.Clean(t.Note)
				}
			case t.Status == team.TaskCompleted:
				sign, last = m.style.Green(sign), view.Duration(t.Took(m.now))
			case t.Status == team.TaskFailed:
				sign, last = m.style.Red(sign), view.Clean(t.Note)
			case t.Stuck:
				sign, last = m.style.Yellow(sign), "stuck behind "+strings.Join(t.Waits, ", ")
			case len(t.Waits) > 0:
				last = "waits for " + strings.Join(t.Waits, ", ")
			default:
				last = "ready"
			}
			number := strings.Repeat(" ", max(0, id-len(t.ID))) + view.Clean(t.ID)
			if w < 44 {
				return columns(w, " ", []string{sign, number, view.Clean(t.Subject), last}, []int{1, id, 0, widest(max(4, w/3), last)})
			}
			texts, widths := []string{sign, number, view.Clean(t.Subject)}, []int{1, id, 0}
			if owner > 0 {
				texts, widths = append(texts, view.Clean(t.Owner)), append(widths, owner)
			}
			return columns(w, " ", append(texts, last), append(widths, clamp(view.Width(last), 6, w/3)))
		},
	}
}

// taskOrder sorts tasks by their importance for a person.
func taskOrder(list []view.Task) []view.Task {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b view.Task) int {
		if c := rank(a) - rank(b); c != 0 || rank(a) != 4 {
			return c
		}
		return b.Ended.Compare(a.Ended)
	})
	return sorted
}

func taskWidths(list []view.Task) (id, owner int) {
	id = 1
	for _, t := range list {
		id = max(id, widest(6, t.ID))
		owner = max(owner, widest(14, view.Clean(t.Owner)))
	}
	return id, owner
}

func (m *model) taskRows() group {
	tasks := m.tasks()
	s := group{id: "tasks", title: m.taskTitle(), tasks: true}
	id, owner := taskWidths(tasks)
	for _, t := range taskOrder(tasks) {
		s.items = append(s.items, m.taskItem(t, id, owner))
	}
	return s
}

// drawings are the ways to show tasks, in the order of the key that turns them.
var drawings = []string{"list", "tree", "board", "graph"}

func nextOf(as string) string {
	return drawings[(slices.Index(drawings, as)+1)%len(drawings)]
}

// boardRows returns the tasks as they are drawn.
func (m *model) boardRows() []group {
	switch m.tasksAs {
	case "list":
		return []group{m.taskRows()}
	case "tree":
		return []group{m.treeRows()}
	case "graph":
		return []group{m.graphRows()}
	}
	return m.stateRows()
}

func (m *model) mailRows() group {
	s := group{id: "mail", title: fmt.Sprintf("MAIL %d", len(m.mail))}
	from := 6
	for _, x := range m.mail {
		from = max(from, widest(24, view.Clean(x.From)+" to "+view.Clean(x.To)))
	}
	for _, x := range m.mail {
		to := view.Clean(x.To)
		if to == "" {
			to = "all"
		}
		state, text := view.Reached(x.Receipts), x.Line()
		if x.Said != "" {
			text = m.style.Dim(text)
		}
		s.items = append(s.items, item{
			id: messageID(x), on: view.Target{Thing: view.OnMessage, Message: &x, Member: m.memberOf(x.With())},
			text: strings.Join([]string{x.From, x.To, x.Line(), x.Text, string(x.Kind), state}, " "),
			line: func(w int) string {
				in := strings.Repeat("  ", min(x.Depth, 6))
				if x.Depth > 0 {
					in = strings.Repeat("  ", min(x.Depth, 6)-1) + "└ "
				}
				who := view.Clean(x.From) + " to " + to
				if w < 60 {
					return columns(w, " ", []string{x.At.Local().Format("15:04"), in + who + ": " + text}, []int{5, 0})
				}
				return columns(w, "  ", []string{m.style.Dim(x.At.Local().Format("15:04:05")), in + m.style.Bold(who), text, m.style.Dim(state)}, []int{8, min(from+6, w/3), 0, clamp(view.Width(state), 8, max(14, w/3))})
			},
		})
	}
	return s
}

func messageID(x view.Message) string { return "message:" + x.ID }

// openMail selects the message that the mail is opened for, or else the newest.
func (m *model) openMail() {
	if i := slices.IndexFunc(m.mail, func(x view.Message) bool { return x.ID == m.wanted }); i >= 0 {
		m.choose(messageID(m.mail[i]))
	} else if len(m.mail) > 0 {
		m.choose(messageID(slices.MaxFunc(m.mail, func(a, b view.Message) int { return a.At.Compare(b.At) })))
	}
}

func (m *model) mergeRows() group {
	s := group{id: "merges", title: fmt.Sprintf("MERGES %d", len(m.merges))}
	for _, x := range slices.Backward(m.merges) {
		s.items = append(s.items, item{
			id: "merge:" + strconv.FormatInt(x.ID, 10), text: x.Member + " " + x.State, on: view.Target{Thing: view.OnMerge, Merge: &x, Member: m.memberOf(x.Member)},
			line: func(w int) string {
				what := view.Clean(x.Why)
				if len(x.Files) > 0 {
					what = view.Clean(strings.Join(x.Files, ", "))
				}
				return columns(w, "  ", []string{x.State, view.Clean(x.Member), what, m.age(x.Asked)}, []int{10, widest(16, view.Clean(x.Member)), 0, 4})
			},
		})
	}
	return s
}

func (m *model) usageRows() group {
	s := group{id: "usage", title: fmt.Sprintf("USAGE %s  %s tokens", m.usage.Team.Money(), m.usage.Team.Words())}
	if m.usage.Team.Budget != "" {
		s.title += fmt.Sprintf("  %.0f %% of %s", 100*m.usage.Team.Share, m.usage.Team.Budget)
	}
	add := func(id, name, kind string, x view.Spent, on view.Target) {
		s.items = append(s.items, item{id: id, text: name + " " + kind + " agent:" + kind, on: on, line: func(w int) string {
			budget := x.BudgetWords()
			if x.Subject != "" {
				budget = view.Clean(x.Subject)
			}
			if w < 50 {
				return columns(w, " ", []string{name, x.Money()}, []int{0, 8})
			}
			if w < 76 {
				return columns(w, "  ", []string{name, kind, x.Words(), x.Money(), budget}, []int{max(12, w/5), 10, 8, 9, 0})
			}
			return columns(w, "  ", []string{name, kind, x.Words(), x.Of(m.usage.Team), x.Money(), budget}, []int{max(12, w/5), 10, 8, 12, 9, 0})
		}})
	}
	for _, x := range m.usage.Members {
		add("usage:"+x.Name, view.Clean(x.Name), view.Clean(x.Agent), x, view.Target{Thing: view.OnMember, Member: m.memberOf(x.Name)})
	}
	for _, x := range m.usage.Agents {
		add("agent:"+x.Agent, "all "+view.Clean(x.Agent), "", x, view.Target{Thing: view.OnTeam})
	}
	for _, l := range m.usage.Limits {
		s.items = append(s.items, item{id: "limit:" + l.Agent, text: l.Agent, on: view.Target{Thing: view.OnTeam}, line: func(w int) string {
			return view.Cut("◌ "+l.String(), w)
		}})
	}
	for _, x := range m.usage.Tasks {
		on := view.Target{Thing: view.OnTask, Task: m.taskOf(x.Name)}
		if on.Task == nil {
			on = view.Target{Thing: view.OnTeam}
		}
		add("task:"+x.Name, "task "+view.Clean(x.Name), "", x, on)
	}
	if n := m.usage.More; n > 0 {
		s.items = append(s.items, item{id: "usage-more", text: "tasks", on: view.Target{Thing: view.OnTeam}, line: func(w int) string {
			return view.Cut(fmt.Sprintf("and %d more tasks, which used less: teamctl usage --by task", n), w)
		}})
	}
	if len(m.usage.Tasks) > 0 {
		add("usage-rest", "without a task", "", m.usage.Rest, view.Target{Thing: view.OnTeam})
	}
	for _, x := range m.usage.Days {
		add("day:"+x.Name, x.Name, "", x, view.Target{Thing: view.OnTeam})
	}
	return s
}

func (m *model) teamRows() group {
	s := group{id: "teams", title: fmt.Sprintf("TEAMS %d", len(m.teams))}
	name, cost := 4, 1
	for _, g := range m.teams {
		name, cost = max(name, widest(30, view.Clean(g.Team))), max(cost, view.Width(g.Cost))
	}
	for _, g := range m.teams {
		s.items = append(s.items, item{id: "team:" + g.Team, text: g.Team, on: view.Target{Thing: view.OnTeam}, line: func(w int) string {
			rest := strings.TrimPrefix(g.String(), view.Clean(g.Team))
			if g.Unread != "" {
				rest = m.unreadWords(g)
			} else if m.teamsLost != "" && g.Down.IsZero() {
				rest = "? " + strings.TrimSpace(rest)
			} else if !g.Down.IsZero() {
				rest += "  " + view.DownWords(g.Down, g.Silent)
			}
			if g.Unread != "" || w < 40 {
				return columns(w, "  ", []string{m.style.Bold(view.Clean(g.Team)), strings.TrimSpace(rest)}, []int{min(name, w/2), 0})
			}
			money := strings.Repeat(" ", max(0, cost-view.Width(g.Cost))) + g.Cost
			return columns(w, "  ", []string{m.style.Bold(view.Clean(g.Team)), money, strings.TrimSpace(rest)}, []int{min(name, w/2), cost, 0})
		}})
	}
	return s
}

// unreadWords says why a team cannot be read, and what was known before.
func (m *model) unreadWords(g view.Glance) string {
	words := "? " + view.Clean(g.Unread)
	if last, ok := m.lastRead[g.Team]; ok {
		facts := strings.TrimSpace(strings.TrimPrefix(last.String(), view.Clean(g.Team)))
		words = strings.TrimSpace("? as of "+last.at.Local().Format("15:04:05")+"  "+strings.TrimPrefix(facts, "? ")) + "  " + view.Clean(g.Unread)
	}
	return words
}
