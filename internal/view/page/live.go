package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

//go:embed live.html app.js app.css
var files embed.FS

// Script is the script of the live page, Style its style.
func Script() []byte { return file("app.js") }

// Style is the style of the live page.
func Style() []byte { return file("app.css") }

func file(name string) []byte {
	data, _ := files.ReadFile(name) // it is embedded
	return data
}

// Doc is a document of the live page.
type Doc struct {
	// Kind is a view (needs, members, tasks, board, graph, time, mail, changes, usage), a thing
	// (approval, member, task, screen, across), teams, welcome after a login, onward, which leads
	// to the path in Body, or closed, which says in Body why there is nothing else.
	Kind     string
	ID       string // of a thing
	Team     string
	Teams    []view.Glance
	Snapshot view.Snapshot
	Body     any // what the view shows beside the snapshot
	CSRF     string
	ReadOnly bool
	Now      time.Time
	Part     bool // only what changes
}

// Buttons are the actions of the page on a target.
func (d Doc) Buttons(t view.Target, seen string, command bool) Buttons {
	b := Buttons{Seen: seen}
	if d.ReadOnly {
		return b
	}
	for _, a := range view.ActionsOn(t) {
		if a.Page {
			b.List = append(b.List, Button{Action: a, Deed: t.Deed(a), Twice: (a.ID == "approve" || a.ID == "approve-always") && command})
		}
	}
	return b
}

// Buttons are what can be done with one thing.
type Buttons struct {
	List []Button
	Seen string // hash of what is shown of a request
}

// Button is one action on one thing. Twice: it takes a second tap. Text is what the input is now.
type Button struct {
	view.Action
	Deed  view.Deed
	Twice bool
	Text  string
}

// OnTeam are the buttons of the whole team.
func (d Doc) OnTeam() Buttons { return d.Buttons(view.Target{Thing: view.OnTeam}, "", false) }

// OnMerges is the button that merges.
func (d Doc) OnMerges() Buttons {
	b := d.OnTeam()
	b.List = slices.DeleteFunc(b.List, func(x Button) bool { return x.Operation != "WorktreeMerge" })
	return b
}

// OnMember are the buttons of a member.
func (d Doc) OnMember(m view.Member) Buttons {
	return d.Buttons(view.Target{Thing: view.OnMember, Member: &m}, "", false)
}

// OnTask are the buttons of a task.
func (d Doc) OnTask(t view.Task) Buttons {
	return d.Buttons(view.Target{Thing: view.OnTask, Task: &t}, "", false)
}

// OnMessage are the buttons of a message.
func (d Doc) OnMessage(m view.Message) Buttons {
	return d.Buttons(view.Target{Thing: view.OnMessage, Message: &m}, "", false)
}

// onChange are the buttons with these ids, where they are possible now.
func (d Doc) onChange(member string, c view.Change, ids ...string) (b Buttons) {
	all := d.Buttons(view.Target{Thing: view.OnChange, Member: &view.Member{Name: member}, Change: &c}, "", false)
	for _, x := range all.List {
		if slices.Contains(ids, x.ID) {
			b.List = append(b.List, x)
		}
	}
	return b
}

// OnFile are the buttons of a changed file.
func (d Doc) OnFile(f DiffFile) Buttons {
	return d.onChange(f.Member, view.Change{Path: f.Path, Reviewed: f.Reviewed}, "comment-file", "reviewed", "not-reviewed")
}

// Said is a comment with its buttons.
type Said struct {
	Comment view.Comment
	Buttons Buttons
}

// Said is a comment on a file.
func (d Doc) Said(f DiffFile, c view.Comment) Said {
	b := d.onChange(f.Member, view.Change{Path: c.Path, Comment: &c}, "edit-comment", "handled")
	for i := range b.List {
		if b.List[i].Asks != "" {
			b.List[i].Text = c.Text
		}
	}
	return Said{c, b}
}

// OnRound are the buttons of the comments that were not sent.
func (d Doc) OnRound(c view.Changes) Buttons {
	for _, x := range c.Comments {
		if x.Draft() {
			return d.onChange(c.Member, view.Change{Path: x.Path, Drafts: c.Drafts()}, "send-review", "review-task")
		}
	}
	return Buttons{}
}

// OnRequest are the buttons of a request that waits.
func (d Doc) OnRequest(r view.Request) Buttons {
	for _, n := range d.Snapshot.Needs {
		if n.Approval == r.ID && r.State == "pending" {
			t := view.Target{Thing: view.OnApproval, Need: &n}
			if r.Plan != "" {
				t.Change = r.OnPlan("", 0)
			}
			b := d.Buttons(t, r.Seen(), r.Command != "")
			for i := range b.List {
				if n := b.List[i].Deed.Comments; n == 1 {
					b.List[i].Title += " with 1 comment"
				} else if n > 1 {
					b.List[i].Title += fmt.Sprintf(" with %d comments", n)
				}
			}
			if r.Rule == "" {
				b.List = slices.DeleteFunc(b.List, func(x Button) bool { return x.ID == "approve-always" })
			}
			return b
		}
	}
	return Buttons{}
}

// Plan is a plan with the comments on its lines. Open: it takes more.
type Plan struct {
	view.Request
	Open  bool
	Above []view.Comment // on lines that have changed since
	Rows  []PlanRow
}

// PlanRow is a line of a plan.
type PlanRow struct {
	Number   int
	Text     string
	Comments []view.Comment // that end here
}

// Plan puts the comments on a plan where they belong.
func (d Doc) Plan(r view.Request) Plan {
	p := Plan{Request: r, Open: r.State == "pending" && !d.ReadOnly}
	for i, l := range r.PlanLines() {
		p.Rows = append(p.Rows, PlanRow{Number: i + 1, Text: l})
	}
	for _, c := range r.Comments {
		if c.Changed || c.Last < 1 || c.Last > len(p.Rows) {
			p.Above = append(p.Above, c)
		} else {
			row := &p.Rows[c.Last-1]
			row.Comments = append(row.Comments, c)
		}
	}
	return p
}

// SaidOnPlan is a comment on a plan.
func (d Doc) SaidOnPlan(p Plan, c view.Comment) Said {
	s := Said{Comment: c}
	if !p.Open {
		return s
	}
	on := p.OnPlan("", 0)
	on.Comment = &c
	all := d.Buttons(view.Target{Thing: view.OnApproval, Need: &view.Need{Kind: view.NeedPlan, Member: p.Member, Approval: p.ID}, Change: on}, "", false)
	for _, b := range all.List {
		if b.ID == "edit-plan-comment" {
			b.Text = c.Text
			s.Buttons.List = append(s.Buttons.List, b)
		}
	}
	return s
}

// Old reports whether what is said of a member is of the time when its supervisor was last known to
// maintain it.
func (d Doc) Old(m view.Member) bool { return !d.Snapshot.Down.IsZero() && !m.State.Terminal() }

// TaskList is a page of the list of tasks.
type TaskList struct {
	Filter, After string // as in view.TaskQuery
	Tasks         []view.Task
	Next          string // the place where the next page begins, "" after the last task
}

// More is how many tasks the board and the graph leave out.
func (d Doc) More() int { return max(0, d.Snapshot.Count().Total-len(d.Snapshot.Tasks)) }

// Base is the address of the team.
func (d Doc) Base() string { return "/t/" + url.PathEscape(d.Team) }

// Waiting is how many needs are not put off.
func (d Doc) Waiting() int { return len(view.Waiting(d.Snapshot.Needs)) }

// Tab is a view in a list of them.
type Tab struct {
	Kind, Name string
	Current    bool
}

// Tabs are the views.
func (d Doc) Tabs() []Tab {
	tasks := slices.ContainsFunc(d.Boards(), func(t Tab) bool { return t.Current })
	var out []Tab
	for _, kind := range []string{"needs", "members", "tasks", "mail", "changes", "usage"} {
		out = append(out, Tab{kind, kind, kind == d.Kind || kind == "tasks" && tasks || kind == "changes" && d.Kind == "across"})
	}
	if n := len(view.Waiting(d.Snapshot.Needs)); n > 0 {
		out[0].Name += fmt.Sprintf(" (%d)", n)
	}
	return out
}

// Boards are the views of the tasks.
func (d Doc) Boards() []Tab {
	return []Tab{{"tasks", "list", d.Kind == "tasks"}, {"board", "board", d.Kind == "board"}, {"graph", "graph", d.Kind == "graph"}, {"time", "time", d.Kind == "time"}}
}

// Columns are the columns of the board.
func (d Doc) Columns() []view.Column { return view.Columns(d.Snapshot.Tasks) }

// Title is the line of the team.
func (d Doc) Title() string {
	if d.Team == "" || d.Kind == "closed" {
		return "teamctl"
	}
	return "teamctl " + view.GlanceOf(d.Snapshot).String()
}

// Drawing is the SVG of the document, "" without one.
func (d Doc) Drawing() string {
	switch b := d.Body.(type) {
	case map[string]any:
		s, _ := b["SVG"].(string)
		return s
	case view.Timeline:
		return b.SVG()
	}
	return ""
}

// Styles are the sources of a Content-Security-Policy, each after a space, for the style in the
// drawing.
func (d Doc) Styles() string {
	_, rest, ok := strings.Cut(d.Drawing(), "<style>")
	text, _, end := strings.Cut(rest, "</style>")
	if !ok || !end {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var livePage = sync.OnceValue(func() *template.Template {
	f := template.FuncMap{
		"age": func(d Doc, t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return view.Age(d.Now.Sub(t))
		},
		"sign": func(k view.DiffKind) string {
			if k == view.Hunk { // its text begins with it
				return ""
			}
			return string(rune(k))
		},
		"state": func(k view.DiffKind) string {
			switch k {
			case view.Added:
				return "add"
			case view.Removed:
				return "del"
			case view.Hunk:
				return "hunk"
			case view.Context, view.NoEnd:
			}
			return "same"
		},
		"join": strings.Join, "visible": visible, "path": url.PathEscape, "where": where,
		"spentOf": func(s, all view.Spent) map[string]string {
			return map[string]string{"Tokens": s.Words(), "Share": s.Of(all), "Money": s.Money()}
		},
	}
	t := template.New("live").Funcs(funcs).Funcs(f)
	return template.Must(t.Parse(string(file("live.html"))))
})

// Live writes a document of the live page.
func Live(w io.Writer, d Doc) error {
	name := "doc"
	if d.Part {
		name = "main"
	}
	return livePage().ExecuteTemplate(w, name, d)
}

// visible shows what a command has that is not seen, line by line.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = plain.Visible(l)
	}
	return strings.Join(lines, "\n")
}
