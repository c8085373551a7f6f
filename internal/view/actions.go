package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/team"
)

// Action is something that a person can do on a screen. The palette, key help, footers, buttons of
// the page and docs/ui.md are made from one list of actions.
type Action struct {
	ID    string
	Title string // an imperative, "approve"
	Key   string // "" if it is only in the menu and the palette
	On    []Thing
	// Operation is the operation of tool/op that it calls; "" changes nothing in the team.
	Operation string
	// Command is the equivalent shell command, with the placeholders {member}, {task}, {approval},
	// {message}, {merge}, {file}, {place}, {lines}, {comment}, {group}, {again} and {text}.
	Command string
	Asks    string // input that it asks for, "" for none
	Long    bool   // the input may have several lines
	Preview bool   // what it would do is shown first, see Deed
	Confirm bool   // irreversible: the person types the name of the target
	// Terminal: it uses the screen's own terminal while it runs.
	Terminal bool
	Page     bool // the page offers it
	When     func(Target) bool
}

// Thing is a kind of target.
type Thing string

// Kinds of targets.
const (
	OnTeam     Thing = "team"
	OnApproval Thing = "approval"
	OnMember   Thing = "member"
	OnGroup    Thing = "group" // members with alike names
	OnTask     Thing = "task"
	OnMessage  Thing = "message"
	OnMerge    Thing = "merge"
	OnChange   Thing = "change" // a file that a member has changed, or lines of it
)

// Change is a place in what a member has changed, or in its plan.
type Change struct {
	Path  string
	Lines string // "41", "40-44"; "" for the whole file
	Old   bool   // those that the member has removed
	// Comment is one that stands there; Drafts are those of the member that were not sent.
	Comment  *Comment
	Drafts   int
	Reviewed bool
}

// Target is the target of an action. Those of Need, Member, Task, Message, Merge and Change are
// set that concern it.
type Target struct {
	Thing   Thing
	Need    *Need
	Member  *Member
	Task    *Task
	Message *Message
	Merge   *Merge
	Change  *Change
	Group   string // "worker-*", see GroupOf
}

// GroupOf returns what members with alike names have in common, "worker-*" for worker-12, and "" for
// a name without a number.
func GroupOf(name string) string {
	head := strings.TrimRight(name, "0123456789")
	if head == name || head == "" {
		return ""
	}
	return head + "*"
}

// Actions returns all actions, in the order in which they are offered. They are shared: do not change
// them.
func Actions() []Action { return allActions() }

var allActions = sync.OnceValue(func() []Action {
	approval, member, task, change := []Thing{OnApproval}, []Thing{OnMember}, []Thing{OnTask}, []Thing{OnChange}
	return []Action{
		{ID: "approve", Title: "approve", Key: "a", On: approval, Operation: "ApprovalAnswer", Command: "teamctl approvals approve {approval}", Page: true, When: Target.answerable},
		{ID: "reject", Title: "reject", Key: "x", On: approval, Operation: "ApprovalAnswer", Command: "teamctl approvals reject {approval} --feedback {text}",
			Asks: "reason, or what to change", Long: true, Page: true},
		{ID: "approve-always", Title: "always allow", Key: "A", On: approval, Operation: "ApprovalAnswer",
			Command: "teamctl approvals approve {approval} --always", Page: true, When: Target.permission},
		{ID: "approve-edited", Title: "edit, then approve", Key: "e", On: approval, Operation: "ApprovalAnswer",
			Command: "teamctl approvals approve {approval} --input {text}", Asks: "the input that may be used instead, JSON", Long: true, When: Target.permission},
		{ID: "answer", Title: "answer", Key: "i", On: approval, Operation: "ApprovalAnswer", Command: "teamctl approvals approve {approval} --answer {text}",
			Asks: "the answer, one line for each question", Long: true, Page: true, When: Target.question},
		{ID: "comment-plan", Title: "comment", Key: "c", On: approval, Operation: "ReviewAdd", Command: "teamctl review add --plan {approval} --line {lines} {text}",
			Asks: "what is to be done differently", Long: true, Page: true, When: Target.onLines},
		{ID: "edit-plan-comment", Title: "edit the comment", Key: "e", On: approval, Operation: "ReviewAdd", Command: "teamctl review add --plan {approval} --comment {comment} {text}",
			Asks: "the comment; without a text it is deleted", Long: true, Page: true, When: Target.onDraft},

		{ID: "message", Title: "message", Key: "m", On: []Thing{OnMember, OnApproval, OnTask, OnChange, OnMessage}, Operation: "SendMessage", Command: "teamctl send {member} {text}",
			Asks: "what to tell it", Long: true, Page: true, When: Target.hasMember},
		{ID: "message-group", Title: "message to the group", On: []Thing{OnMember, OnGroup, OnMessage}, Operation: "SendMessage", Command: "teamctl send {group} {text}",
			Asks: "what to tell each of them", Long: true, Page: true, When: func(t Target) bool { return t.group() != "" }},
		{ID: "reply", Title: "reply", Key: "r", On: []Thing{OnMessage}, Operation: "SendMessage", Command: "teamctl send {member} {text} --parent {message}",
			Asks: "the answer", Long: true, Page: true, When: Target.fromOther},
		{ID: "send-again", Title: "send it again", On: []Thing{OnMessage, OnMember}, Operation: "SendMessage",
			Command: "teamctl send {member} --forward {message} --idempotency-key {again}", Page: true, When: func(t Target) bool { return t.lost() != "" }},
		{ID: "broadcast", Title: "message to all", On: []Thing{OnTeam}, Operation: "SendMessage", Command: "teamctl broadcast {text}", Asks: "what to tell all members", Long: true, Page: true},

		{ID: "comment", Title: "comment", Key: "c", On: change, Operation: "ReviewAdd", Command: "teamctl review add {member} {place} {text}",
			Asks: "what is to be done differently", Long: true, Page: true, When: Target.onLines},
		{ID: "comment-file", Title: "comment on the file", Key: "C", On: change, Operation: "ReviewAdd", Command: "teamctl review add {member} {file} {text}",
			Asks: "what is to be done differently", Long: true, Page: true},
		{ID: "edit-comment", Title: "edit the comment", Key: "e", On: change, Operation: "ReviewAdd", Command: "teamctl review add {member} --comment {comment} {text}",
			Asks: "the comment; without a text it is deleted", Long: true, Page: true, When: Target.onDraft},
		{ID: "send-review", Title: "send the comments", Key: "S", On: change, Operation: "ReviewSend", Command: "teamctl review send {member}", Page: true, When: Target.hasDrafts},
		{ID: "review-task", Title: "make the comments a task", Key: "t", On: change, Operation: "ReviewSend", Command: "teamctl review send {member} --task", Page: true, When: Target.hasDrafts},
		{ID: "handled", Title: "comment is handled", On: change, Operation: "ReviewAnswer", Command: "teamctl review answer {comment} --handled --member {member}", Page: true, When: Target.onSent},
		{ID: "reviewed", Title: "reviewed", Key: "space", On: change, Operation: "ReviewAdd", Command: "teamctl review add {member} {file} --reviewed", Page: true, When: func(t Target) bool { return t.Change != nil && !t.Change.Reviewed }},
		{ID: "not-reviewed", Title: "not reviewed", Key: "space", On: change, Operation: "ReviewAdd", Command: "teamctl review add {member} {file} --not-reviewed", Page: true, When: func(t Target) bool { return t.Change != nil && t.Change.Reviewed }},

		{ID: "attach", Title: "attach", On: []Thing{OnMember, OnApproval, OnChange}, Command: "teamctl attach {member}", Terminal: true, When: Target.running},
		{ID: "restart", Title: "restart", Key: "r", On: member, Operation: "TeammateRestart", Command: "teamctl restart {member}", Page: true, When: Target.hasMember},
		{ID: "start", Title: "start", On: member, Operation: "TeammateStart", Command: "teamctl start {member}", Page: true, When: Target.ended},
		{ID: "pause", Title: "pause", On: member, Operation: "TeammatePause", Command: "teamctl pause {member}", Page: true, When: func(t Target) bool { return t.running() && !t.paused() }},
		{ID: "resume", Title: "resume", On: member, Operation: "TeammateResume", Command: "teamctl resume {member}", Page: true, When: Target.paused},
		{ID: "interrupt", Title: "interrupt its turn", On: member, Operation: "TeammateInterrupt", Command: "teamctl interrupt {member}", Page: true, When: Target.running},
		{ID: "stop", Title: "stop", On: member, Operation: "TeammateStop", Command: "teamctl stop {member}", Page: true, When: Target.up},
		{ID: "shutdown", Title: "shut down", On: member, Operation: "TeammateStop", Command: "teamctl shutdown {member}", Page: true, When: Target.up},
		{ID: "kill", Title: "kill", On: member, Operation: "TeammateStop", Command: "teamctl kill {member}", Confirm: true, When: Target.up},
		{ID: "plan-mode", Title: "put into plan mode", On: member, Operation: "TeammateMode", Command: "teamctl mode {member} plan", When: func(t Target) bool { return t.inPlan(false) }},
		{ID: "default-mode", Title: "take out of plan mode", On: member, Operation: "TeammateMode", Command: "teamctl mode {member} default", When: func(t Target) bool { return t.inPlan(true) }},

		{ID: "merge-ready", Title: "merge the ready branches", Key: "M", On: []Thing{OnTeam}, Operation: "WorktreeMerge", Command: "teamctl merge --ready", Preview: true, Page: true},
		{ID: "shutdown-team", Title: "shut all members down", On: []Thing{OnTeam}, Operation: "TeamShutdown", Command: "teamctl shutdown", Confirm: true},
		{ID: "delete-team", Title: "delete the team", On: []Thing{OnTeam}, Operation: "TeamDelete", Command: "teamctl delete", Confirm: true},
		{ID: "add-task", Title: "add a task", Key: "t", On: []Thing{OnTeam}, Operation: "TaskCreate", Command: "teamctl task add {text}", Asks: "what is to be done, the details below it", Long: true, Page: true},
		{ID: "assign", Title: "assign", On: task, Operation: "TaskUpdate", Command: "teamctl task assign {task} {text}", Asks: "the member that shall do it", Page: true, When: Target.open},
		{ID: "release", Title: "take from its owner", On: task, Operation: "TaskUpdate", Command: "teamctl task assign {task} --nobody", When: func(t Target) bool { return t.Task != nil && t.Task.Active() }},
		{ID: "retry", Title: "retry", Key: "r", On: task, Operation: "TaskRetry", Command: "teamctl task retry {task}", Page: true, When: Target.failed},
		{ID: "rename-task", Title: "edit the subject", Key: "e", On: task, Operation: "TaskUpdate", Command: "teamctl task edit {task} --subject {text}",
			Asks: "the new subject", When: Target.open},
		{ID: "describe-task", Title: "edit the description", On: task, Operation: "TaskUpdate", Command: "teamctl task edit {task} --description {text}",
			Asks: "the new description", Long: true, When: Target.open},
		{ID: "command-task", Title: "edit the command", On: task, Operation: "TaskUpdate", Command: "teamctl task edit {task} --run {text}",
			Asks: "the command that a worker runs with bash", When: Target.open},
		{ID: "depend", Title: "depend on another", On: task, Operation: "TaskUpdate", Command: "teamctl task edit {task} --depends-on {text}",
			Asks: "the ids of the tasks that must be completed first", When: Target.open},
		{ID: "prioritize", Title: "set the priority", On: task, Operation: "TaskUpdate", Command: "teamctl task edit {task} --priority {text}",
			Asks: "a number; higher is taken first", When: Target.open},
		{ID: "delete-task", Title: "delete", On: task, Operation: "TaskUpdate", Command: "teamctl task rm {task}", Confirm: true, When: Target.hasTask},
	}
})

// ActionsOn returns the actions on a target, in order.
func ActionsOn(t Target) (on []Action) {
	for _, a := range Actions() {
		if slices.Contains(a.On, t.Thing) && (a.When == nil || a.When(t)) {
			on = append(on, a)
		}
	}
	return on
}

// ActionByID returns an action by its ID.
func ActionByID(id string) (Action, bool) {
	for _, a := range Actions() {
		if a.ID == id {
			return a, true
		}
	}
	return Action{}, false
}

// Line returns the command of an action with the values of a deed, in shell syntax. Placeholders
// for input that is still to be typed stay.
func (a Action) Line(d Deed) string {
	words := []string{}
	for _, w := range strings.Fields(a.Command) {
		for name, value := range map[string]string{
			"{member}": d.Member, "{task}": d.Task, "{message}": d.Message, "{text}": d.Text,
			"{approval}": number(d.Approval), "{merge}": number(d.Merge), "{file}": d.Path, "{place}": d.Where(), "{lines}": d.Lines, "{comment}": d.Comment,
			"{group}": d.Group, "{again}": d.Again(),
		} {
			if w == name && value != "" {
				w = team.ShellQuote(plain.Visible(value))
				break
			}
		}
		words = append(words, w)
	}
	if d.Comments > 0 {
		words = append(words, "--comments")
	}
	return strings.Join(words, " ")
}

// Purpose is what the text of a deed is for: "message builder", "reject 3". It is the same each time
// that the action is begun on the same target.
func (d Deed) Purpose() string {
	a, _ := ActionByID(d.Action)
	target := ""
	switch {
	case slices.Contains(a.On, OnApproval) && a.Operation == "ApprovalAnswer":
		target = number(d.Approval)
	case slices.Contains(a.On, OnMember):
		target = d.Member
	case slices.Contains(a.On, OnTask):
		target = d.Task
	case slices.Contains(a.On, OnMessage):
		target = d.Message
	}
	return strings.TrimSpace(d.Action + " " + target)
}

// Again is the key by which a message is sent again only once.
func (d Deed) Again() string {
	if d.Message == "" {
		return ""
	}
	return "again:" + d.Message + ":" + d.Member
}

// Where is the place of a comment: "cart.go:41".
func (d Deed) Where() string {
	if d.Lines == "" {
		return d.Path
	}
	return d.Path + ":" + d.Lines
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Deed returns an action on the target, without typed input.
func (t Target) Deed(a Action) Deed {
	d := Deed{Action: a.ID, Member: t.memberName()}
	if a.ID == "message-group" {
		d.Group = t.group()
	}
	if t.Need != nil {
		d.Approval, d.Task, d.Message = t.Need.Approval, t.Need.Task, t.Need.Message
	}
	if t.Task != nil {
		d.Task = t.Task.ID
	}
	if t.Message != nil {
		d.Message = t.Message.ID
	}
	if a.ID == "send-again" {
		d.Member = t.lost()
	}
	if t.Merge != nil {
		d.Merge = t.Merge.ID
	}
	if c := t.Change; c != nil {
		d.Path, d.Old = c.Path, c.Old
		if a.ID != "comment-file" {
			d.Lines = c.Lines
		}
		if c.Comment != nil && a.ID != "comment" && a.ID != "comment-file" && a.ID != "comment-plan" {
			d.Comment = c.Comment.Name
		}
		if a.ID == "reject" {
			d.Comments = c.Drafts
		}
	}
	return d
}

func (t Target) memberName() string {
	switch {
	case t.Member != nil:
		return t.Member.Name
	case t.Need != nil && t.Need.Member != "":
		return t.Need.Member
	case t.Task != nil:
		return t.Task.Owner
	case t.Message != nil:
		return t.Message.With()
	case t.Merge != nil:
		return t.Merge.Member
	}
	return ""
}

// answerable reports whether a yes or no answers the need: a question needs more.
func (t Target) answerable() bool { return t.Need != nil && !t.Need.Question }

func (t Target) permission() bool {
	return t.Need != nil && t.Need.Kind == NeedPermission && !t.Need.Question
}

func (t Target) question() bool { return t.Need != nil && t.Need.Question }

func (t Target) hasMember() bool { return cmp.Or(t.memberName(), team.LeadName) != team.LeadName }

// lost returns the recipient that the message may not reach, "" for none.
func (t Target) lost() string {
	if t.Message != nil {
		for _, r := range t.Message.Receipts {
			if r.State == team.Unknown || r.State == team.Held || r.State == team.Dropped {
				return r.To
			}
		}
	}
	if t.Need != nil && t.Need.Kind == NeedMail {
		return t.Need.Member
	}
	return ""
}

func (t Target) group() string { return cmp.Or(t.Group, GroupOf(t.memberName())) }

func (t Target) fromOther() bool { return t.Message != nil && t.Message.From != team.LeadName }

func (t Target) onLines() bool { return t.Change != nil && t.Change.Lines != "" }

func (t Target) onDraft() bool {
	return t.Change != nil && t.Change.Comment != nil && t.Change.Comment.Draft()
}

func (t Target) onSent() bool {
	return t.Change != nil && t.Change.Comment != nil && !t.Change.Comment.Draft() && t.Change.Comment.State != "handled"
}

func (t Target) hasDrafts() bool { return t.Change != nil && t.Change.Drafts > 0 }

func (t Target) hasTask() bool { return t.Task != nil }

func (t Target) open() bool { return t.Task != nil && !t.Task.Finished() }

func (t Target) running() bool {
	return t.hasMember() && (t.Member == nil || t.Member.State == team.Running)
}

func (t Target) ended() bool {
	return t.hasMember() && t.Member != nil && t.Member.State.Terminal()
}

func (t Target) paused() bool { return t.hasMember() && t.Member != nil && t.Member.Paused }

func (t Target) failed() bool { return t.Task != nil && t.Task.Status == team.TaskFailed }

func (t Target) up() bool { return t.hasMember() && t.Member != nil && !t.Member.State.Terminal() }

func (t Target) inPlan(in bool) bool { return t.hasMember() && t.Member != nil && t.Member.Plan == in }
