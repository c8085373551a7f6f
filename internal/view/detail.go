package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Request is an approval request in full. Its texts come from agents.
type Request struct {
	ID       int64     `json:"id"`
	Kind     NeedKind  `json:"kind"`
	State    string    `json:"state"` // pending, approved, rejected, expired
	Member   string    `json:"member"`
	Agent    string    `json:"agent,omitempty"` // kind of the member's agent
	Mode     string    `json:"mode,omitempty"`  // its permission mode
	Branch   string    `json:"branch,omitempty"`
	Task     string    `json:"task,omitempty"`
	Subject  string    `json:"subject"`
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"`

	Tool        string          `json:"tool,omitempty"`
	Description string          `json:"description,omitempty"` // of the tool call, in the agent's words
	Command     string          `json:"command,omitempty"`     // shell command
	Input       json.RawMessage `json:"input,omitempty"`       // of the tool, unabridged
	Plan        string          `json:"plan,omitempty"`        // Markdown
	Questions   []Question      `json:"questions,omitempty"`
	Comments    []Comment       `json:"comments,omitempty"` // on the lines of the plan
	Fields      []Field         `json:"fields,omitempty"`   // further fields of the request
	Rule        string          `json:"rule,omitempty"`     // rule that would allow it in the future, in the syntax of the team file
	NoRule      bool            `json:"noRule,omitempty"`   // no rule of the team names its tool

	Feedback   string `json:"feedback,omitempty"`
	AnsweredBy string `json:"answeredBy,omitempty"`
}

// Question is a question of an agent, with the offered answers.
type Question struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
}

// Field is a named text.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Seen returns a hash of everything that matters for the decision. An answer names it, and is
// refused if the request has changed since.
func (r Request) Seen() string {
	r.Agent, r.Mode, r.Branch, r.Rule, r.NoRule = "", "", "", "", false // they may change with the member and the rules
	b, err := json.Marshal(r)
	if err != nil { // the input is not valid JSON
		b = []byte(r.Subject + "\x00" + string(r.Input))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// PlanLines returns the lines of the plan, as comments count them.
func (r Request) PlanLines() []string {
	text := strings.TrimRight(strings.ReplaceAll(r.Plan, "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Drafts is how many comments on the plan were not sent.
func (r Request) Drafts() int { return drafts(r.Comments) }

// OnPlan is a place in the plan: lines as "3" or "3-4", and the newest comment there. A place
// without lines is the plan as a whole.
func (r Request) OnPlan(lines string, at int) *Change {
	c := &Change{Path: fmt.Sprintf("plan %d", r.ID), Lines: lines, Drafts: r.Drafts()}
	for _, x := range r.Comments {
		if at > 0 && x.Last == at && !x.Changed {
			c.Comment = &x
		}
	}
	return c
}

// MemberDetail has details of a member beyond its row.
type MemberDetail struct {
	Member
	Agent    string   `json:"agent"`
	Backend  string   `json:"backend,omitempty"`
	Branch   string   `json:"branch,omitempty"`
	Worktree string   `json:"worktree,omitempty"`
	Ahead    int      `json:"ahead"`             // commits of its branch that its base lacks
	Dirty    int      `json:"dirty"`             // files with uncommitted changes
	Unknown  string   `json:"unknown,omitempty"` // why git failed
	Mail     int      `json:"mail"`              // undelivered messages
	Output   []string `json:"output,omitempty"`  // its last lines, if it has failed or is to be started again
}

// TaskDetail is a task in full.
type TaskDetail struct {
	Task
	Description string    `json:"description,omitempty"`
	Run         string    `json:"run,omitempty"` // command that a worker runs
	Verify      string    `json:"verify,omitempty"`
	DependsOn   []string  `json:"dependsOn"`
	Created     time.Time `json:"created"`
	Error       string    `json:"error,omitempty"`  // of the last attempt
	Output      string    `json:"output,omitempty"` // of the last attempt
	Events      []Event   `json:"events"`           // its history
}

// Message is a message with its delivery state. Messages of a thread are consecutive, the first
// one at Depth 0.
type Message struct {
	ID       string    `json:"id"`
	Root     string    `json:"root"`
	Depth    int       `json:"depth"`
	At       time.Time `json:"at"`
	Kind     team.Kind `json:"kind"`
	From     string    `json:"from"`
	To       string    `json:"to,omitempty"` // "" for a broadcast
	Text     string    `json:"text"`
	Said     string    `json:"said,omitempty"` // of a protocol message: what it says in one line; Text has its words
	Receipts []Receipt `json:"receipts"`
}

// Line returns the message in one line.
func (m Message) Line() string { return Clean(cmp.Or(m.Said, m.Text)) }

// With returns the member of the conversation who is not the lead: the sender, or else the
// recipient; "" for a broadcast of the lead.
func (m Message) With() string {
	if m.From != team.LeadName {
		return m.From
	}
	return m.To
}

// Reached says how far a message has come: "accepted 12:18", "held: paused", or for several
// recipients "2 accepted, 1 held: paused".
func Reached(list []Receipt) string {
	counts, reasons := map[team.DeliveryState]int{}, map[team.DeliveryState]string{}
	var order []team.DeliveryState
	for _, r := range list {
		if counts[r.State]++; counts[r.State] == 1 {
			order = append(order, r.State)
		}
		reasons[r.State] = cmp.Or(reasons[r.State], Clean(r.Reason))
	}
	var parts []string
	for _, s := range order {
		part := string(s)
		switch {
		case len(list) > 1:
			part = fmt.Sprintf("%d %s", counts[s], s)
		case reasons[s] == "":
			part += " " + list[0].At.Local().Format("15:04")
		}
		if reasons[s] != "" {
			part += ": " + reasons[s]
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Receipt is the delivery state of a message for one recipient.
type Receipt struct {
	To     string             `json:"to"`
	State  team.DeliveryState `json:"state"`
	At     time.Time          `json:"at"`
	Reason string             `json:"reason,omitempty"`
}

// Usage is the usage of a team. A Spent that is not Known is not zero but unknown.
type Usage struct {
	Members []Spent `json:"members"`
	Agents  []Spent `json:"agents"`         // by kind
	Tasks   []Spent `json:"tasks"`          // those that used most
	More    int     `json:"more,omitempty"` // tasks that Tasks leaves out
	// Rest is what no task is known for.
	Rest   Spent   `json:"rest"`
	Days   []Spent `json:"days"` // newest first, by the ends of turns and tasks
	Team   Spent   `json:"team"`
	Limits []Limit `json:"limits"`
}

// Spent is the usage of a member, kind or team in tokens and dollars.
type Spent struct {
	Name      string  `json:"name,omitempty"`
	Agent     string  `json:"agent,omitempty"`
	Known     bool    `json:"known"` // of Tokens
	Tokens    int64   `json:"tokens"`
	CostKnown bool    `json:"costKnown"`
	Cost      float64 `json:"cost"`
	Budget    string  `json:"budget,omitempty"`  // in words
	Share     float64 `json:"share,omitempty"`   // of the budget, 1 for all
	Held      string  `json:"held,omitempty"`    // why it gets no prompts now
	Subject   string  `json:"subject,omitempty"` // of a task
}

// Limit is a provider at a usage limit.
type Limit struct {
	Agent string    `json:"agent"`
	Until time.Time `json:"until,omitzero"` // zero: unknown
}

// String says that a provider is at its limit, and until when.
func (l Limit) String() string {
	until := "until nobody knows when"
	if !l.Until.IsZero() {
		until = "until " + l.Until.Local().Format("15:04")
	}
	return fmt.Sprintf("%s takes no more, %s", Clean(l.Agent), until)
}

// BudgetWords says how much of a budget is used, or why a member is held; "" without one.
func (s Spent) BudgetWords() string {
	switch {
	case s.Held != "":
		return Clean(s.Held)
	case s.Budget != "":
		return fmt.Sprintf("%.0f %% of %s", 100*s.Share, s.Budget)
	}
	return ""
}

// Of says which part of the tokens of the whole it has used; "" if that is not known.
func (s Spent) Of(whole Spent) string {
	if !s.Known || !whole.Known || whole.Tokens <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of all", 100*float64(s.Tokens)/float64(whole.Tokens))
}

// Changes has the files that a member has changed.
type Changes struct {
	Member    string   `json:"member"`
	Base      string   `json:"base"`                // commit of the comparison
	Against   string   `json:"against,omitempty"`   // branch that has Base, if the changes are those since the member's branch began
	Since     string   `json:"since,omitempty"`     // one of Sinces
	Task      string   `json:"task,omitempty"`      // the changes are those since its claim
	Round     int      `json:"round,omitempty"`     // the changes are those since this round of comments
	Patch     string   `json:"patch"`               // unified diff
	Untracked []string `json:"untracked,omitempty"` // files unknown to git
	// Also has other members that have changed a file.
	Also map[string][]string `json:"also,omitempty"`
	Why  string              `json:"why,omitempty"` // why nothing could be compared

	Comments []Comment       `json:"comments,omitempty"`
	Reviewed map[string]bool `json:"reviewed,omitempty"` // by path; a file that has changed since is not
}

// Comment is a remark on the changes of a member, or on its plan. Its lines are where they are
// now, or where they were, if Changed.
type Comment struct {
	Name    string `json:"name"` // "3.2": the second of round 3; "2": the second on a plan
	Author  string `json:"author"`
	State   string `json:"state"` // draft, open, asked, handled; on a plan draft, sent
	Path    string `json:"path"`
	First   int    `json:"first,omitempty"` // from 1; 0 for the whole file
	Last    int    `json:"last,omitempty"`
	Old     bool   `json:"old,omitempty"` // lines that the member has removed
	Changed bool   `json:"changed,omitempty"`
	Text    string `json:"text"`
	Answer  string `json:"answer,omitempty"`
}

// Draft reports a comment that was not sent.
func (c Comment) Draft() bool { return c.State == "draft" }

// Drafts is how many comments were not sent.
func (c Changes) Drafts() int { return drafts(c.Comments) }

func drafts(list []Comment) (n int) {
	for _, x := range list {
		if x.Draft() {
			n++
		}
	}
	return n
}

// shortCommit is how much of a commit is shown.
const shortCommit = 7

// Compared says what the changes are compared with: "against main", "since task 7"; "" while it is not
// known.
func (c Changes) Compared() string {
	base := Clean(c.Base)
	switch {
	case c.Since == "commit":
		return "against its last commit"
	case c.Task != "":
		return "since task " + Clean(c.Task)
	case c.Round > 0:
		return fmt.Sprintf("since round %d", c.Round)
	case c.Against != "":
		return "against " + Clean(c.Against)
	case base == "":
		return ""
	}
	return "against " + base[:min(len(base), shortCommit)]
}

// LastRound is the round of comments that was sent last, 0 for none, and how many of them
// are open and handled. One that was asked back is open.
func (c Changes) LastRound() (round, open, handled int) {
	for _, x := range c.Comments {
		var r, n int
		if _, err := fmt.Sscanf(x.Name, "%d.%d", &r, &n); err != nil || x.Draft() {
			continue
		}
		if r > round {
			round, open, handled = r, 0, 0
		}
		if r < round {
			continue
		}
		if x.State == "handled" {
			handled++
		} else {
			open++
		}
	}
	return round, open, handled
}

// Merge is a requested merge.
type Merge struct {
	ID     int64     `json:"id"`
	Member string    `json:"member"`
	Branch string    `json:"branch"`
	Target string    `json:"target"`
	State  string    `json:"state"`
	Files  []string  `json:"files,omitempty"` // in conflict
	Why    string    `json:"why,omitempty"`
	Log    string    `json:"log,omitempty"` // path of the gate's output
	Task   string    `json:"task,omitempty"`
	Asked  time.Time `json:"asked"`
	Ended  time.Time `json:"ended,omitzero"`
}

// Title names a merge in one line.
func (m Merge) Title() string {
	return fmt.Sprintf("merge %d of %s into %s: %s", m.ID, Clean(m.Branch), Clean(m.Target), m.State)
}
