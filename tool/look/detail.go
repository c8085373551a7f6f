package look

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/memberlog"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Request returns an approval request in full.
func Request(ctx context.Context, t *tool.Team, id int64) (view.Request, error) {
	a, err := t.Ledger.Approval(ctx, ledgerID(id))
	if err != nil {
		return view.Request{}, err
	}
	r := requestOf(a)
	if m, err := t.Ledger.MemberBySession(ctx, a.Session); err == nil {
		r.Agent, r.Mode, r.Branch = m.Spec.Agent, string(m.Spec.Mode), m.Branch
	}
	if a.Kind == ledger.ApprovePlan {
		said, err := t.PlanComments(ctx, tool.Person(), ledgerID(id))
		if err != nil {
			return r, err
		}
		for _, x := range said.Comments {
			y := view.Comment{Name: x.Name, Author: x.Author, State: string(x.State), First: x.First, Last: x.Last, Changed: x.Changed, Text: x.Text}
			if x.State == ledger.CommentOpen {
				y.State = "sent"
			}
			r.Comments = append(r.Comments, y)
		}
	}
	if a.State == ledger.ApprovalPending {
		rule, ok, err := t.RuleFor(ctx, a)
		if err != nil {
			return r, err
		}
		if ok {
			r.Rule = inTeamFile(rule)
		}
		named, err := t.RuleNames(ctx, a)
		if err != nil {
			return r, err
		}
		r.NoRule = !named
	}
	return r, nil
}

// inTeamFile returns a rule that allows, as a team file has it. YAML takes the strings of JSON.
func inTeamFile(r team.PermissionRule) string {
	quoted := func(s string) string {
		if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
			return s
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s) // a string can always be encoded
		return strings.TrimSuffix(b.String(), "\n")
	}
	out := "permissions: {allow: [{tool: " + quoted(r.Tool)
	if r.Command != "" {
		out += ", command: " + quoted(r.Command)
	}
	if r.Path != "" {
		out += ", path: " + quoted(r.Path)
	}
	var members []string
	for _, m := range r.Members {
		members = append(members, quoted(m))
	}
	if len(members) > 0 {
		out += ", members: [" + strings.Join(members, ", ") + "]"
	}
	return out + "}]}"
}

// asked holds the parts of a payload that are shown separately; their names differ between
// requests by an operation and requests by an agent's program.
type asked struct {
	ToolName    string          `json:"tool_name"`
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Command     string          `json:"command"`
	PlanContent string          `json:"plan_content"`
	Plan        string          `json:"plan"`
	Questions   []team.Question `json:"questions"`
}

func requestOf(a ledger.Approval) view.Request {
	r := view.Request{
		ID: a.ID, Kind: view.NeedKind(a.Kind), State: string(a.State), Member: a.Name, Task: a.Task, Subject: a.Subject,
		Asked: stamp(a.CreatedAt), Deadline: stamp(a.Deadline), Feedback: a.Feedback, AnsweredBy: view.By(a.AnsweredBy, a.AnsweredVia),
	}
	var p asked
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(a.Payload, &fields) != nil || json.Unmarshal(a.Payload, &p) != nil {
		if len(a.Payload) > 0 {
			r.Fields = []view.Field{{Name: "request", Text: string(a.Payload)}}
		}
		return r
	}
	r.Tool, r.Description, r.Input, r.Command = p.ToolName+p.Tool, p.Description, p.Input, p.Command
	r.Plan = p.PlanContent + p.Plan
	for _, q := range p.Questions {
		r.Questions = append(r.Questions, view.Question{Text: q.Text, Options: q.Options})
	}
	for _, name := range []string{"tool_name", "tool", "description", "input", "command", "plan_content", "plan", "questions", "request_id", "id", "tool_use_id", "toolUseId", "fixed_input", "keys", "for"} {
		delete(fields, name)
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(p.Input, &input) == nil && r.Command == "" {
		r.Command = text(input["command"])
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		r.Fields = append(r.Fields, view.Field{Name: name, Text: text(fields[name])})
	}
	// Shows the whole input except the parts already shown above.
	if r.Command != "" {
		delete(input, "command")
	}
	// A program's hook names the command; what it is for is the agent's to say.
	if said := text(input["description"]); said != "" && (r.Description == r.Command || r.Description == said) {
		r.Description = said
		delete(input, "description")
	}
	for _, name := range slices.Sorted(maps.Keys(input)) {
		r.Fields = append(r.Fields, view.Field{Name: name, Text: text(input[name])})
	}
	if len(input) == 0 && len(p.Input) > 0 && r.Command == "" && string(bytes.TrimSpace(p.Input)) != "{}" {
		r.Fields = append(r.Fields, view.Field{Name: "input", Text: string(p.Input)})
	}
	return r
}

// text returns the value of a JSON string, and any other value as JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		return b.String()
	}
	return string(raw)
}

// asksQuestion reports whether an approval of this permission must contain answers.
func asksQuestion(a ledger.Approval) bool {
	var p asked
	return a.Kind == ledger.ApprovePermission && json.Unmarshal(a.Payload, &p) == nil && len(p.Questions) > 0
}

// Member returns details of a member beyond its snapshot; it runs git.
func Member(ctx context.Context, t *tool.Team, name string) (view.MemberDetail, error) {
	m, err := t.Member(ctx, name)
	if err != nil {
		return view.MemberDetail{}, err
	}
	s := filled(t.Layout.Key, nil, nil, []ledger.Member{m})
	d := view.MemberDetail{Member: s.Members[0], Agent: m.Spec.Agent, Backend: m.Spec.Backend, Branch: m.Branch, Worktree: m.Worktree}
	if r, err := t.Runtimes(ctx, []ledger.Member{m}); err == nil && len(r) == 1 {
		d.Mail = r[0].PendingMessages
	}
	if m.Observed == team.Failed || m.Observed == team.Backoff {
		d.Output = lastOutput(t.Layout.Bundle(m.Name).Log())
	}
	if m.Worktree == "" {
		return d, nil
	}
	w, err := t.Worktrees(ctx, tool.WorktreesIn{Members: []string{m.Name}})
	switch {
	case err != nil:
		d.Unknown = err.Error()
	case len(w.Worktrees) == 1:
		d.Ahead, d.Dirty, d.Unknown = w.Worktrees[0].ToTarget, len(w.Worktrees[0].Changes), w.Worktrees[0].Problem
	}
	return d, nil
}

const (
	outputShown = 20       // lines of a failed member's output
	outputRead  = 64 << 10 // bytes of them
)

// lastOutput returns the last lines of a member's output with a text, cleaned. None are returned if
// they cannot be read: the member's state says more than that.
func lastOutput(path string) (out []string) {
	log := memberlog.New(path)
	defer func() { _ = log.Close() }() // read only
	if log.StartTail(2*outputShown) != nil {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(log, outputRead))
	for line := range strings.SplitSeq(plain.Text(string(data)), "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-outputShown):]
}

// taskEvents is the number of a task's events that are read.
const taskEvents = 40

// TaskDetail returns a task in full.
func TaskDetail(ctx context.Context, t *tool.Team, id string) (view.TaskDetail, error) {
	x, err := t.Ledger.Task(ctx, id)
	if err != nil {
		return view.TaskDetail{}, err
	}
	d := view.TaskDetail{
		Task: Task(x, false), Description: x.Description, Verify: x.Verify, DependsOn: x.DependsOn, Created: stamp(x.CreatedAt), Events: []view.Event{},
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal(x.Metadata, &meta) == nil {
		d.Run = text(meta["run"])
	}
	if x.Result != nil {
		d.Error = x.Result.Error
		d.Output = x.Result.Summary
	}
	list, err := t.History(ctx, id)
	if err != nil {
		return d, err
	}
	d.Events = told(subjectsOf(view.Snapshot{Tasks: []view.Task{d.Task}}), list[max(0, len(list)-taskEvents):], false)
	return d, nil
}

// Dependencies returns the ids that each task depends on.
func Dependencies(ctx context.Context, t *tool.Team) (map[string][]string, error) {
	list, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return nil, err
	}
	deps := map[string][]string{}
	for _, x := range list {
		if len(x.DependsOn) > 0 {
			deps[x.ID] = x.DependsOn
		}
	}
	return deps, nil
}

const (
	nearDepth = 2  // dependencies, in either direction
	nearTasks = 40 // at most
)

// Near returns a task with those near it in the graph of dependencies.
func Near(ctx context.Context, t *tool.Team, id string) (view.Near, error) {
	a, err := t.Ledger.Around(ctx, id, nearDepth, nearTasks)
	if err != nil {
		return view.Near{}, err
	}
	n := view.Near{ID: id, Before: a.Before, After: a.After}
	for _, x := range a.Tasks {
		n.Tasks = append(n.Tasks, Task(x, a.Stuck[x.ID]))
	}
	return n, nil
}

// mailRead is the number of newest messages that are read.
const mailRead = 200

// Mail returns the newest messages in their conversations, in order.
func Mail(ctx context.Context, t *tool.Team) ([]view.Message, error) {
	list, err := t.Ledger.Messages(ctx, ledger.MessageFilter{Newest: true, Limit: mailRead})
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	at := map[string]int{} // place in out
	var out []view.Message
	for _, m := range list {
		said := tool.Speak(m)
		v := view.Message{ID: m.ID, Root: m.ID, At: stamp(m.At), Kind: m.Kind, From: m.From, To: m.To, Text: said.Text}
		if said.Protocol {
			v.Said = said.Line
		}
		if parent, ok := at[m.Parent]; ok {
			v.Root, v.Depth = out[parent].Root, out[parent].Depth+1
		}
		if v.Receipts, err = Receipts(ctx, t, m.ID); err != nil {
			return nil, err
		}
		at[m.ID] = len(out)
		out = append(out, v)
	}
	// A message with answers stays with them, at the position where its thread began.
	began := map[string]int{}
	for i, m := range out {
		if _, ok := began[m.Root]; !ok {
			began[m.Root] = i
		}
	}
	slices.SortStableFunc(out, func(a, b view.Message) int { return began[a.Root] - began[b.Root] })
	return out, nil
}

// Receipts returns the delivery state of messages, whose ids have a comma between them, for each
// recipient.
func Receipts(ctx context.Context, t *tool.Team, messages string) ([]view.Receipt, error) {
	out := []view.Receipt{}
	for id := range strings.SplitSeq(messages, ",") {
		ds, err := t.Ledger.Deliveries(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			out = append(out, view.Receipt{To: d.Recipient, State: d.State, At: stamp(d.At), Reason: d.Reason})
		}
	}
	return out, nil
}

// Usage returns the usage by member, agent, task and day. Points are those that were read before, and
// may be nil.
func Usage(ctx context.Context, t *tool.Team, points *Points) (view.Usage, error) {
	u, err := t.Usage(ctx)
	if err != nil {
		return view.Usage{}, err
	}
	out := view.Usage{Team: spent(u.Team), Members: []view.Spent{}, Agents: []view.Spent{}, Limits: []view.Limit{}}
	for _, m := range u.Members {
		out.Members = append(out.Members, spent(m))
		i := slices.IndexFunc(out.Agents, func(s view.Spent) bool { return s.Agent == m.Agent })
		if i < 0 {
			out.Agents = append(out.Agents, view.Spent{Agent: m.Agent, CostKnown: true})
			i = len(out.Agents) - 1
		}
		a, s := &out.Agents[i], spent(m)
		a.Tokens, a.Cost = a.Tokens+s.Tokens, a.Cost+s.Cost
		a.Known, a.CostKnown = a.Known || s.Known, a.CostKnown && s.CostKnown
	}
	for _, l := range u.Limited {
		if l.Ended == 0 {
			out.Limits = append(out.Limits, view.Limit{Agent: l.Agent, Until: stamp(l.Until)})
		}
	}
	return out, usageBy(ctx, t, points, &out)
}

func spent(m tool.MemberUsage) view.Spent {
	s := view.Spent{
		Name: m.Name, Agent: m.Agent, Known: m.Counted, Tokens: m.InputTokens + m.OutputTokens - min(m.CachedTokens, m.InputTokens),
		CostKnown: m.CostKnown, Cost: m.CostUSD, Share: m.Share, Held: m.Held,
	}
	var bounds []string
	if m.Budget.CostUSD > 0 {
		bounds = append(bounds, fmt.Sprintf("$%.2f", m.Budget.CostUSD))
	}
	if m.Budget.Tokens > 0 {
		bounds = append(bounds, view.Amount(m.Budget.Tokens)+" tok")
	}
	if m.Budget.Turns > 0 {
		bounds = append(bounds, fmt.Sprintf("%d turns", m.Budget.Turns))
	}
	s.Budget = strings.Join(bounds, ", ")
	return s
}

// Changes returns what a member has changed, since one of view.Sinces, and what was said
// about it.
func Changes(ctx context.Context, t *tool.Team, member, since string) (view.Changes, error) {
	c := view.Changes{Member: member, Since: since}
	m, err := t.Member(ctx, member)
	if err != nil {
		return c, err
	}
	if m.Worktree == "" {
		c.Why = m.Name + " has no worktree of its own"
		return c, nil
	}
	diffs, err := t.WorktreeDiffsSince(ctx, tool.Person(), []string{m.Name}, false, tool.Since(since))
	if err != nil {
		return c, err
	}
	if len(diffs) == 1 {
		c.Base, c.Patch, c.Task, c.Round = diffs[0].Base, diffs[0].Diff, diffs[0].Task, diffs[0].Round
		if c.Base == m.Base {
			if c.Against, err = t.BaseBranch(ctx, m); err != nil {
				return c, err
			}
		}
		for _, name := range diffs[0].Untracked {
			if patch, ok := newFile(m.Worktree, name); ok {
				c.Patch += patch
			} else {
				c.Untracked = append(c.Untracked, name)
			}
		}
	}
	if shared, err := t.Shared(ctx, m); err == nil {
		c.Also = map[string][]string{}
		for _, f := range shared {
			c.Also[f.Path] = append(c.Also[f.Path], f.Name)
		}
	}
	reviews, err := t.ReviewShow(ctx, tool.Person(), m.Name)
	if err != nil {
		return c, err
	}
	for _, r := range reviews {
		for _, x := range r.Comments {
			y := view.Comment{Name: x.Name, Author: x.Author, State: string(x.State), Path: x.Path, First: x.First, Last: x.Last, Old: x.Old,
				Changed: x.Changed, Text: x.Text, Answer: x.Answer}
			if x.Line > 0 {
				y.First, y.Last = x.Line, x.Line+x.Last-x.First
			}
			c.Comments = append(c.Comments, y)
		}
		c.Reviewed = map[string]bool{}
		for _, path := range r.Reviewed {
			c.Reviewed[path] = true
		}
	}
	return c, nil
}

// newFileMost is how large a file that git does not track may be to be shown as a diff.
const newFileMost = 256 << 10

// newFile is a file that git does not track, as the patch that would add it. A large one has none. The
// content of a symbolic link is its target's name.
func newFile(dir, name string) (patch string, ok bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer func() { _ = root.Close() }() // read only
	info, err := root.Lstat(name)
	if err != nil {
		return "", false
	}
	var data []byte
	mode := "100644"
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		var target string
		target, err = root.Readlink(name)
		data, mode = []byte(target), "120000"
	case info.Mode().IsRegular() && info.Size() <= newFileMost:
		data, err = root.ReadFile(name)
	default:
		return "", false
	}
	if err != nil {
		return "", false
	}
	from, to := "a/"+name, "b/"+name
	if strings.ContainsAny(name, "\n\r\t\"\\") {
		from, to = strconv.Quote(from), strconv.Quote(to)
	}
	head := fmt.Sprintf("diff --git %s %s\nnew file mode %s\n", from, to, mode)
	switch {
	case len(data) == 0:
		return head, true
	case bytes.IndexByte(data, 0) >= 0:
		return head + "Binary files /dev/null and " + to + " differ\n", true
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "%s--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n", head, to, len(lines))
	for _, l := range lines {
		b.WriteString("+" + l + "\n")
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\\ No newline at end of file\n")
	}
	return b.String(), true
}

// mergesShown is the number of ended merges that the lane shows, the newest.
const mergesShown = 50

// Merges returns the merge lane, the oldest first.
func Merges(ctx context.Context, t *tool.Team) ([]view.Merge, error) {
	list, err := t.MergeQueue(ctx, true, mergesShown)
	out := []view.Merge{}
	for _, m := range list {
		out = append(out, mergeOf(m))
	}
	return out, err
}

func mergeOf(m ledger.Merge) view.Merge {
	return view.Merge{
		ID: m.ID, Member: m.Member, Branch: m.Branch, Target: m.Target, State: string(m.State), Files: m.Files, Why: m.Why, Log: m.Log,
		Task: m.Task, Asked: time.UnixMilli(m.AskedAt), Ended: stamp(m.EndedAt),
	}
}
