package tui

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// word is a word of the plain screen. The others are the actions, by their names.
type word struct{ name, takes, title string }

var plainWords = []word{
	{"needs", "", "what needs you"},
	{"members", "", "the members and what they do"},
	{"tasks", "WORDS", "the tasks that matter now, or all those with the words, such as state:failed"},
	{"mail", "", "the newest messages"},
	{"show", "THING", "a need by its number, a member by its name, a task by its id, request 3, message 3f2a"},
	{"screen", "MEMBER", "the last lines of the member's screen"},
	{"log", "TASK", "the output of the task's last attempt, and why it failed; log merge 3: that of the gate"},
	{"merges", "", "the merges, the newest first"},
	{"changes", "MEMBER", "what the member has changed, and the comments on it"},
	{"across", "MEMBER FILE", "a file that the member changes, as all members change it"},
	{"usage", "", "tokens and cost"},
	{"put-off", "NUMBER TIME", "put off a need by its number, for 15m (the default) or 1h, or until it changes: change"},
	{"take-up", "NUMBER", "take up again a need that is put off"},
	{"menu", "THING", "what can be done with it, as a numbered list; the number does it"},
	{"teams", "", "the teams"},
	{"team", "NAME", "open another team"},
	{"help", "", "these words"},
	{"quit", "", "leave"},
}

// aliases are words for actions beside their names.
var aliases = map[string]string{"say": "message", "tell": "message", "all": "broadcast", "add": "add-task", "delete": "delete-task", "send": "send-review", "depends": "depend", "always": "approve-always"}

// takes says what follows the word of an action.
func takes(a view.Action) string {
	var out []string
	switch a.On[0] {
	case view.OnApproval:
		out = append(out, "REQUEST")
		switch {
		case strings.Contains(a.Command, "{comment}"):
			out = append(out, "COMMENT")
		case strings.Contains(a.Command, "{lines}"):
			out = append(out, "LINES")
		}
	case view.OnMember:
		out = append(out, map[bool]string{false: "MEMBER", true: "GROUP"}[a.ID == "message-group"])
	case view.OnTask:
		out = append(out, "TASK")
	case view.OnMessage:
		out = append(out, "MESSAGE")
	case view.OnMerge:
		out = append(out, "MERGE")
	case view.OnChange:
		out = append(out, "MEMBER")
		switch {
		case strings.Contains(a.Command, "{comment}"):
			out = append(out, "COMMENT")
		case strings.Contains(a.Command, "{place}"):
			out = append(out, "FILE:LINES")
		case strings.Contains(a.Command, "{file}"):
			out = append(out, "FILE")
		}
	case view.OnTeam, view.OnGroup:
	}
	if a.Asks != "" {
		out = append(out, "TEXT")
	}
	return strings.Join(out, " ")
}

// line does what a person has typed; true leaves the screen.
func (t *talk) line(text string, now time.Time) (leave bool) {
	burst := now.Sub(t.last) < burst
	t.last = now
	if t.asks != nil {
		ask := t.asks
		t.asks = nil
		if text == "" {
			t.say("nothing was done.")
		} else {
			ask(text)
		}
		return false
	}
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if n, err := strconv.Atoi(name); err == nil && rest == "" && n >= 1 && n <= len(t.first) {
		t.askFirst(n)
		return false
	}
	if n, err := strconv.Atoi(name); err == nil && rest == "" && n >= 1 && n <= len(t.menu) {
		d := t.menu[n-1]
		if a, ok := view.ActionByID(d.Action); ok {
			t.do(a, d, now, burst)
		}
		return false
	}
	if name == "" {
		return false
	}
	if id := aliases[name]; id != "" {
		name = id
	}
	switch name {
	case "quit", "q", "exit":
		return true
	case "help", "?":
		t.help()
		return false
	case "teams":
		t.teams()
		return false
	case "team":
		if rest == "" {
			t.say("which team: team NAME.")
		} else {
			t.open(rest)
		}
		return false
	}
	if !t.have {
		t.say("the team is still being read, or none is open: team NAME.")
		return false
	}
	if t.look(name, rest) {
		return false
	}
	a, ok := view.ActionByID(name)
	if !ok {
		t.say("there is no word %q: help lists them.", name)
		return false
	}
	d, err := t.deed(a, rest)
	if err != nil {
		t.fail(err)
		return false
	}
	t.do(a, d, now, burst)
	return false
}

func (t *talk) help() {
	for _, w := range plainWords {
		t.say("%s: %s", strings.TrimSpace(w.name+" "+w.takes), w.title)
	}
	if t.p.ReadOnly {
		return
	}
	for _, a := range view.Actions() {
		t.say("%s: %s", strings.TrimSpace(a.ID+" "+takes(a)), a.Title)
	}
	var names []string
	for short := range aliases {
		names = append(names, short+" is "+aliases[short])
	}
	slices.Sort(names)
	t.say("shorter: %s", strings.Join(names, ", "))
}

// deed is an action with what the person has typed behind its word.
func (t *talk) deed(a view.Action, rest string) (view.Deed, error) {
	d := view.Deed{Action: a.ID}
	next := func() string {
		w, more, _ := strings.Cut(rest, " ")
		rest = strings.TrimSpace(more)
		return w
	}
	missing := func(what string) error {
		return team.Errorf(team.CodeInvalid, "%s needs %s", a.ID, what).WithHint(strings.TrimSpace(a.ID + " " + takes(a)))
	}
	switch a.On[0] {
	case view.OnApproval:
		n, err := strconv.ParseInt(strings.TrimPrefix(next(), "#"), 10, 64)
		if err != nil {
			return d, missing("the number of a request")
		}
		d.Approval = n
		for _, x := range t.snap.Needs {
			if x.Approval == n {
				d.Member = x.Member
			}
		}
		switch {
		case strings.Contains(a.Command, "{comment}"):
			if d.Comment = next(); d.Comment == "" {
				return d, missing("the number of a comment")
			}
		case strings.Contains(a.Command, "{lines}"):
			if d.Lines = next(); d.Lines == "" {
				return d, missing("a line, or lines as 3-4")
			}
		}
	case view.OnMember, view.OnChange:
		if a.ID == "message-group" {
			if d.Group = next(); d.Group == "" {
				return d, missing("the names of members, as worker-*")
			}
			break
		}
		if d.Member = next(); d.Member == "" {
			return d, missing("the name of a member")
		}
		switch {
		case strings.Contains(a.Command, "{comment}"):
			if d.Comment = next(); d.Comment == "" {
				return d, missing("the number of a comment")
			}
		case strings.Contains(a.Command, "{place}"), strings.Contains(a.Command, "{file}"):
			if d.Path = next(); d.Path == "" {
				return d, missing("a file")
			}
			if i := strings.LastIndexByte(d.Path, ':'); i > 0 && strings.Contains(a.Command, "{place}") {
				d.Path, d.Lines = d.Path[:i], d.Path[i+1:]
			}
		}
	case view.OnTask:
		if d.Task = strings.TrimPrefix(next(), "#"); d.Task == "" {
			return d, missing("the id of a task")
		}
	case view.OnMessage:
		id := next()
		list, err := t.team.Mail(t.ctx)
		if err != nil {
			return d, err
		}
		for _, m := range list {
			if id != "" && strings.HasPrefix(m.ID, id) {
				d.Message, d.Member = m.ID, m.From
			}
		}
		if d.Message == "" {
			return d, missing("the beginning of the id of a message, as mail lists it")
		}
	case view.OnMerge:
		n, err := strconv.ParseInt(next(), 10, 64)
		if err != nil {
			return d, missing("the number of a merge")
		}
		d.Merge = n
	case view.OnTeam, view.OnGroup:
	}
	d.Text = rest
	if rest != "" && a.Asks == "" {
		return d, team.Errorf(team.CodeInvalid, "%s takes nothing more: %q", a.ID, rest).WithHint(strings.TrimSpace(a.ID + " " + takes(a)))
	}
	return d, nil
}

// do carries a deed out, or asks for what it needs first.
func (t *talk) do(a view.Action, d view.Deed, now time.Time, burst bool) {
	name := cmp.Or(d.Group, d.Member)
	if a.On[0] == view.OnTask {
		name = d.Task
	}
	switch {
	case t.p.ReadOnly && a.Operation != "":
		t.say("nothing was done: the screen is read only.")
		return
	case a.Confirm:
		what := a.Title + " " + name
		if a.On[0] == view.OnTeam {
			name, what = t.name, a.Title
		}
		t.say("%s: this cannot be taken back. Type %s to do it.", what, name)
		t.asks = func(text string) {
			if text != name {
				t.say("nothing was done: that is not its name.")
				return
			}
			t.carry(a, d)
		}
		return
	}
	if a.Operation == "ApprovalAnswer" {
		r, err := t.team.Request(t.ctx, d.Approval)
		switch {
		case err != nil:
			t.fail(err)
			return
		case r.State != "pending":
			t.say("nothing was answered: %s %d of %s is already %s by %s.", r.Kind, r.ID, r.Member, r.State, r.AnsweredBy)
			return
		case t.seen[d.Approval] != r.Seen():
			t.request(r)
			t.say("nothing was answered yet: this is the whole request. Say it again.")
			return
		case burst || now.Sub(t.shown) < unread:
			t.say("nothing was answered: these words came faster than a hand types. Say it again.")
			return
		}
		d.Seen, d.Member = r.Seen(), r.Member
		if a.ID == "reject" {
			d.Comments = r.Drafts()
		}
	}
	if a.Preview {
		t.preview(a, d)
		return
	}
	if a.Asks != "" && d.Text == "" {
		t.say("%s: %s?", strings.TrimSpace(a.Title+" "+name), a.Asks)
		t.asks = func(text string) {
			d.Text = text
			t.carry(a, d)
		}
		return
	}
	t.carry(a, d)
}

// ownKept is how many deeds are compared with the events that come after them.
const ownKept = 8

func (t *talk) carry(a view.Action, d view.Deed) {
	// What was begun is brought to an end, though the screen is left meanwhile.
	done, err := t.team.Do(context.WithoutCancel(t.ctx), d)
	switch {
	case err != nil:
		t.fail(err)
	case a.Terminal:
		t.say("back from %s.", d.Member)
	default:
		t.own = append(t.own[max(0, len(t.own)-ownKept):], d)
		t.say("%s.", strings.TrimSuffix(done.Said, "."))
		if done.Message != "" {
			t.sent, t.sentTo, t.receipt = done.Message, cmp.Or(d.Group, d.Member), ""
			t.tellReceipt()
		}
	}
}

// request writes a request as a whole.
func (t *talk) request(r view.Request) {
	m := newModel()
	m.now = time.Now()
	m.request[r.ID] = r
	lines, _, _, _ := m.requestDrawn(r.ID, 1<<20, true)
	t.sayLines("request", lines)
	if r.State == "pending" {
		t.seen[r.ID], t.shown = r.Seen(), time.Now()
	}
}
