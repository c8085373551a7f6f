package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/internal/script"
)

// Names of the tools that a member uses.
const (
	toolClaim    = "TaskClaim"
	toolComplete = "TaskComplete"
	toolFail     = "TaskFail"
	toolRelease  = "TaskRelease"
	toolSend     = "SendMessage"
)

// killed is in the result of a call whose end was not recorded. A claim and a report are repeated,
// which is harmless; a command is not: its task is released.
const killed = "was killed before its end was recorded"

// maxSummary is the maximum length of a command's output in a report.
const maxSummary = 400

// member is the state derived from the conversation.
type member struct {
	tasks []string // to be claimed
	wrong []refused
	mails []mail // to be answered
	doing *task
	did   []string
	call  *model.Call // current call
	error string      // last error
}

// task is a claimed task.
type task struct {
	id, run string
	tell    string // message to the lead, before the command runs
	ran     bool
	failed  bool
	lost    bool // the result of the command is unknown
	output  string
}

type mail struct{ from, kind, id string }

// refused is a task whose verification has failed. A script cannot fix that: it fails the task,
// with the verification's output.
type refused struct{ task, why string }

// follow returns the next step of a member without a script.
func follow(msgs []model.Message, tools []model.Tool) script.Step {
	m := &member{}
	for _, msg := range msgs {
		for _, p := range msg.Parts {
			switch {
			case p.Call != nil:
				m.begin(p.Call)
			case p.Result != nil:
				m.end(p.Result)
			case msg.Role == model.RoleUser:
				m.read(p.Text)
			default:
				m.error = "" // reported
			}
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Name == name || strings.HasSuffix(t.Name, "_"+name) })
	}
	return m.next(has)
}

// named matches the tasks that the team's mail offers or assigns, unverified those whose work was
// refused, letter a message of a member.
var (
	named = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^Task #([A-Za-z0-9_.-]+)(?: is ready, and nobody works on it:|, which is assigned to you, is ready now:| is assigned to you:)`)
	})
	unverified = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^Task #([A-Za-z0-9_.-]+) is not completed: its verification failed `)
	})
	letter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`<teammate-message teammate_id="([^"]+)"([^>]*)>`)
	})
	attribute = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(type|message_id|verified)="([^"]*)"`) })
)

// read parses incoming text: tasks to do, and mail to answer. It answers only messages and
// requests, with answers of another kind, so that two such members do not answer each other for
// ever.
func (m *member) read(text string) {
	for _, found := range named().FindAllStringSubmatch(text, -1) {
		if !slices.Contains(m.tasks, found[1]) {
			m.tasks = append(m.tasks, found[1])
		}
	}
	for _, at := range unverified().FindAllStringSubmatchIndex(text, -1) {
		why, _, _ := strings.Cut(text[at[0]:], "\n</")
		said, output, _ := strings.Cut(why, "\nThe end of its output:\n")
		m.wrong = append(m.wrong, refused{text[at[2]:at[3]], cmp.Or(cut(output), first(said))})
	}
	for _, found := range letter().FindAllStringSubmatch(text, -1) {
		got := mail{from: found[1]}
		verified := true
		for _, a := range attribute().FindAllStringSubmatch(found[2], -1) {
			switch a[1] {
			case "type":
				got.kind = a[2]
			case "message_id":
				got.id = a[2]
			case "verified":
				verified = a[2] != "false"
			}
		}
		if verified && (got.kind == "message" || got.kind == "task_request") && got.from != "system" {
			m.mails = append(m.mails, got)
		}
	}
}

// begin records a call that the member has made, also one by a script, which changes nothing.
func (m *member) begin(c *model.Call) {
	m.call = c
	switch {
	case is(c, toolClaim):
		m.tasks = slices.DeleteFunc(m.tasks, func(task string) bool { return task == id(c) })
	case is(c, toolFail):
		m.wrong = slices.DeleteFunc(m.wrong, func(r refused) bool { return r.task == id(c) })
	case is(c, toolSend):
		var in struct {
			To string `json:"recipient"`
		}
		_ = json.Unmarshal(c.Input, &in) // the tool has refused it
		if m.doing != nil {
			m.doing.tell = ""
		}
		if i := slices.IndexFunc(m.mails, func(l mail) bool { return l.from == in.To }); i >= 0 {
			m.mails = slices.Delete(m.mails, i, i+1)
		}
	}
}

// id returns the task of a call.
func id(c *model.Call) string {
	var in struct {
		ID string `json:"task_id"`
	}
	_ = json.Unmarshal(c.Input, &in) // the tool has refused it
	return in.ID
}

func is(c *model.Call, name string) bool {
	return c.Name == name || strings.HasSuffix(c.Name, "_"+name)
}

// end handles the result of the current call.
func (m *member) end(r *model.Result) {
	c := m.call
	m.call = nil
	lost := r.Failed && strings.Contains(r.Text, killed)
	switch {
	case c == nil || c.ID != r.CallID:
	case is(c, toolClaim):
		if lost {
			m.tasks = append([]string{id(c)}, m.tasks...)
			return
		}
		if r.Failed {
			m.error = "A claim was refused: " + first(r.Text)
			return
		}
		m.doing = claimed(r.Text)
	case is(c, toolComplete) || is(c, toolFail) || is(c, toolRelease):
		if m.doing == nil || lost {
			return
		}
		what := "completed"
		switch {
		case is(c, toolFail):
			what = "failed"
		case is(c, toolRelease):
			what = "given back"
		}
		if r.Failed {
			what = "not reported (" + first(r.Text) + ")"
		}
		m.did = append(m.did, fmt.Sprintf("Task %s %s: %s", m.doing.id, what, cmp.Or(first(m.doing.output), "no output")))
		m.doing = nil
	case m.doing != nil && !m.doing.ran && script.Shells[c.Name] != "":
		m.doing.ran, m.doing.failed, m.doing.output, m.doing.lost = true, r.Failed, r.Text, lost
	}
}

// claimed parses the task in the result of a claim; nil if there is none.
func claimed(text string) *task {
	i := strings.IndexByte(text, '{')
	if i < 0 {
		return nil
	}
	var out struct {
		Success bool `json:"success"`
		Task    struct {
			ID       string          `json:"id"`
			Metadata json.RawMessage `json:"metadata"`
		} `json:"task"`
	}
	if json.NewDecoder(strings.NewReader(text[i:])).Decode(&out) != nil || !out.Success || out.Task.ID == "" {
		return nil
	}
	var meta struct {
		Run  string `json:"run"`
		Tell string `json:"tell"`
	}
	_ = json.Unmarshal(out.Task.Metadata, &meta) // missing, or without a command
	return &task{id: out.Task.ID, run: meta.Run, tell: meta.Tell}
}

// next returns the next step: first work that was begun, then the next task, then the mail.
func (m *member) next(has func(string) bool) script.Step {
	if t := m.doing; t != nil {
		switch {
		case t.run == "" && has(toolFail):
			t.output = "the task has no command in metadata.run, and a script model can do nothing else"
			return call(toolFail, map[string]any{"task_id": t.id, "error": t.output})
		case t.tell != "" && !t.ran && has(toolSend):
			return call(toolSend, map[string]any{"type": "message", "recipient": "team-lead", "summary": t.tell, "content": t.tell})
		case t.run != "" && !t.ran:
			return script.Step{Shell: t.run}
		case t.lost && has(toolRelease):
			return call(toolRelease, map[string]any{"task_id": t.id})
		case t.failed && has(toolFail):
			return call(toolFail, map[string]any{"task_id": t.id, "error": cmp.Or(cut(t.output), "the command failed")})
		case t.ran && !t.failed && has(toolComplete):
			return call(toolComplete, map[string]any{"task_id": t.id, "summary": cmp.Or(cut(t.output), "done")})
		}
	}
	if len(m.wrong) > 0 && has(toolFail) {
		return call(toolFail, map[string]any{"task_id": m.wrong[0].task, "error": m.wrong[0].why})
	}
	if len(m.tasks) > 0 && has(toolClaim) {
		return call(toolClaim, map[string]any{"task_id": m.tasks[0]})
	}
	report := strings.Join(m.did, "\n")
	if len(m.mails) > 0 && has(toolSend) {
		to := m.mails[0]
		in := map[string]any{"type": "info", "recipient": to.from, "content": cmp.Or(report, "I have done nothing so far.")}
		if to.kind == "task_request" && to.id != "" {
			in["type"], in["parent_message_id"] = "task_response", to.id
		}
		return call(toolSend, in)
	}
	return script.Step{Say: cmp.Or(m.error, report)}
}

func call(tool string, input map[string]any) script.Step {
	b, err := json.Marshal(input)
	if err != nil {
		return script.Step{Say: err.Error()}
	}
	return script.Step{Tool: tool, Input: b}
}

// first returns the first line of a text.
func first(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cut(line)
}

func cut(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	if len(text) <= maxSummary {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-maxSummary:], "")
}
