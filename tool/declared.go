package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Declared is the content of a team file. Each member has a unique name, Declared set, and Count
// 1.
type Declared struct {
	Members []SpawnIn
	Tasks   []ledger.NewTask // Ref is the id in the file
	Edges   []team.Edge
}

// All returns everything declared as changes, for a team that does not exist.
func (d Declared) All() (out []Change) {
	for _, task := range d.Tasks {
		out = append(out, Change{Op: ChangeAdd, What: "task", Name: cmp.Or(task.Ref, task.Subject)})
	}
	for _, m := range d.Members {
		out = append(out, Change{Op: ChangeAdd, What: "member", Name: m.Name})
	}
	for _, e := range d.Edges {
		out = append(out, Change{Op: ChangeAdd, What: "edge", Name: edgeText(e)})
	}
	return out
}

func edgeText(e team.Edge) string { return e.From + " " + string(e.Type) + " " + e.To }

// Change is one difference between a file and its team.
type Change struct {
	Op     string   `json:"op"`   // add, change, start or remove
	What   string   `json:"what"` // member, task, edge, setting or, in a dry run, team
	Name   string   `json:"name"` // of a task: its id if it has one, else its subject
	Fields []string `json:"fields,omitempty"`
	// Skipped is why the change is not made.
	Skipped string `json:"skipped,omitempty"`

	spawn SpawnIn
	task  ledger.NewTask
	edge  team.Edge
}

// Difference is the set of changes that make a team match its file.
type Difference struct {
	Changes []Change
	ids     map[string]string // ids of the file's tasks that exist: ref to id
}

// metaRef is the key in a task's metadata for its id in the team file.
const metaRef = "ref"

// Op values of a Change.
const (
	ChangeAdd    = "add"
	ChangeChange = "change"
	ChangeStart  = "start"
	ChangeRemove = "remove"
)

// upLock prevents concurrent ups of the same team.
func (t *Team) upLock(ctx context.Context) (*filelock.Held, error) {
	lock, err := filelock.Lock(ctx, filepath.Join(t.Layout.Locks(), ".up.guard"))
	if err != nil {
		return nil, team.Errorf(team.CodeTimeout, "another up of team %s is running: %w", t.Layout.Key, err)
	}
	return lock, nil
}

// Compare returns the differences between the file and the team, including what a killed up has
// left. With remove, entries that are no longer in the file are removed; otherwise they are only
// reported.
func (t *Team) Compare(ctx context.Context, d Declared, remove bool) (Difference, error) {
	out := Difference{ids: map[string]string{}}
	if err := t.compareTasks(ctx, d, remove, &out); err != nil {
		return out, err
	}
	if err := t.compareMembers(ctx, d, remove, &out); err != nil {
		return out, err
	}
	edges, err := t.Edges(ctx)
	if err != nil {
		return out, err
	}
	for _, e := range d.Edges {
		if !slices.Contains(edges, e) {
			out.add(Change{Op: ChangeAdd, What: "edge", Name: edgeText(e), edge: e})
		}
	}
	return out, nil
}

func (d *Difference) add(c Change) { d.Changes = append(d.Changes, c) }

const notAsked = "only with --remove"

func (t *Team) compareMembers(ctx context.Context, d Declared, remove bool, out *Difference) error {
	roster, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, in := range d.Members {
		name, err := team.AgentKey(in.Name)
		if err != nil {
			return err
		}
		named[name] = true
		i := slices.IndexFunc(roster, func(m ledger.Member) bool { return m.Name == name })
		c := Change{What: "member", Name: name, spawn: in}
		switch {
		case i < 0:
			c.Op = ChangeAdd
		case roster[i].Spec.Declared == nil:
			c.Op, c.Skipped = ChangeChange, "it was not spawned from a file"
		default:
			if c.Fields = differing(roster[i].Spec.Declared, in.Declared); len(c.Fields) > 0 {
				c.Op = ChangeChange
			} else if r := roster[i]; r.Observed == team.Pending || r.Desired != team.WantRunning {
				c.Op = ChangeStart
			} else {
				continue
			}
		}
		out.add(c)
	}
	for _, m := range roster {
		if m.Spec.Declared != nil && !named[m.Name] {
			c := Change{Op: ChangeRemove, What: "member", Name: m.Name}
			if !remove {
				c.Skipped = notAsked
			}
			out.add(c)
		}
	}
	return nil
}

// differing returns the sorted keys whose values differ between two JSON objects.
func differing(a, b json.RawMessage) []string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return []string{"all"}
	}
	var out []string
	for k := range x {
		if !bytes.Equal(x[k], y[k]) {
			out = append(out, k)
		}
	}
	for k := range y {
		if _, both := x[k]; !both {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func (t *Team) compareTasks(ctx context.Context, d Declared, remove bool, out *Difference) error {
	all, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return err
	}
	byRef, bySubject := map[string]int{}, map[string][]int{}
	for i, task := range all {
		if ref := refOf(task.Metadata); ref != "" {
			byRef[ref] = i
		} else {
			bySubject[task.Subject] = append(bySubject[task.Subject], i)
		}
	}
	found := make([]int, len(d.Tasks))
	here := map[int]bool{}
	for n, task := range d.Tasks {
		i, ok := byRef[task.Ref]
		if same := bySubject[task.Subject]; (task.Ref == "" || !ok) && len(same) > 0 {
			i, ok, bySubject[task.Subject] = same[0], true, same[1:]
		}
		if found[n] = -1; ok {
			found[n], here[i] = i, true
			if task.Ref != "" {
				out.ids[task.Ref] = all[i].ID
			}
		}
	}
	for n, task := range d.Tasks {
		task.DependsOn = slices.Clone(task.DependsOn)
		for k, dep := range task.DependsOn {
			if id := out.ids[dep]; id != "" {
				task.DependsOn[k] = id
			}
		}
		if found[n] < 0 {
			out.add(Change{Op: ChangeAdd, What: "task", Name: cmp.Or(task.Ref, task.Subject), task: task})
			continue
		}
		was := all[found[n]]
		c := Change{Op: ChangeChange, What: "task", Name: was.ID, Fields: taskFields(was, task), task: task}
		if len(c.Fields) == 0 {
			continue
		}
		if was.Status != team.TaskPending {
			c.Skipped = "it is " + string(was.Status)
		}
		out.add(c)
	}
	for i, task := range all {
		if refOf(task.Metadata) == "" || here[i] || task.Status != team.TaskPending {
			continue
		}
		c := Change{Op: ChangeRemove, What: "task", Name: task.ID}
		if !remove {
			c.Skipped = notAsked
		}
		out.add(c)
	}
	return nil
}

// refOf returns a task's id in its team file.
func refOf(metadata json.RawMessage) string {
	var m map[string]json.RawMessage
	var ref string
	if json.Unmarshal(metadata, &m) != nil || json.Unmarshal(m[metaRef], &ref) != nil {
		return ""
	}
	return ref
}

// taskFields returns the fields in which a task differs from its file. Metadata and dependencies
// added by others are left alone.
func taskFields(was ledger.Task, now ledger.NewTask) (out []string) {
	differ := func(field string, yes bool) {
		if yes {
			out = append(out, field)
		}
	}
	differ("subject", was.Subject != now.Subject)
	differ("description", was.Description != now.Description)
	differ("priority", was.Priority != now.Priority)
	differ("verify", was.Verify != now.Verify)
	for _, dep := range now.DependsOn {
		if !slices.Contains(was.DependsOn, dep) {
			differ("dependsOn", true)
			break
		}
	}
	var x, y map[string]any
	_ = json.Unmarshal(was.Metadata, &x) // an object, or empty
	_ = json.Unmarshal(now.Metadata, &y)
	for k, v := range y {
		if k != metaRef && mustEqual(x[k]) != mustEqual(v) {
			differ(k, true)
		}
	}
	slices.Sort(out)
	return out
}

func mustEqual(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(b)
}

// withRef stores a task's id in the file in its metadata.
func withRef(n ledger.NewTask) (ledger.NewTask, error) {
	if n.Ref == "" {
		return n, nil
	}
	meta := map[string]json.RawMessage{}
	if len(n.Metadata) > 0 {
		if err := json.Unmarshal(n.Metadata, &meta); err != nil {
			return n, team.Errorf(team.CodeInvalid, "metadata of task %q: %w", n.Subject, err)
		}
	}
	if _, taken := meta[metaRef]; taken {
		return n, nil
	}
	ref, err := json.Marshal(n.Ref)
	if err != nil {
		return n, err
	}
	meta[metaRef] = ref
	n.Metadata, err = json.Marshal(meta)
	return n, err
}

// Applied is the result of Apply.
type Applied struct {
	Tasks   []string // ids of new tasks
	Members []Spawned
}

// Apply makes the changes that are not skipped, tasks first, so that a new worker finds them. If
// it is killed, the next Compare finds the rest.
func (t *Team) Apply(ctx context.Context, c Caller, d Difference) (out Applied, err error) {
	if err := t.applyTasks(ctx, c, d, &out); err != nil {
		return out, err
	}
	var gone []string
	var list []SpawnIn
	var started []string
	for _, ch := range d.Changes {
		switch {
		case ch.What != "member" || ch.Skipped != "":
		case ch.Op == ChangeRemove:
			gone = append(gone, ch.Name)
		case ch.Op == ChangeChange: // it returns to its worktree
			gone, list = append(gone, ch.Name), append(list, ch.spawn)
		case ch.Op == ChangeAdd:
			list = append(list, ch.spawn)
		default:
			started = append(started, ch.Name)
		}
	}
	if len(gone) > 0 {
		if _, err := t.Stop(ctx, c, team.StopRequest{Names: gone, Remove: true, Reason: "the team file has changed"}); err != nil {
			return out, err
		}
	}
	if len(list) > 0 {
		out.Members, err = t.SpawnAll(ctx, c, list)
		if err != nil {
			return out, err
		}
	}
	if len(started) > 0 { // held by a killed up, or stopped
		if _, err := t.Start(ctx, c, started); err != nil {
			return out, err
		}
	}
	for _, ch := range d.Changes {
		if ch.What == "edge" {
			if _, _, err := t.EdgeAdd(ctx, c, ch.edge); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (t *Team) applyTasks(ctx context.Context, c Caller, d Difference, out *Applied) error {
	var batch []ledger.NewTask
	for _, ch := range d.Changes {
		if ch.What == "task" && ch.Op == ChangeAdd {
			task, err := withRef(ch.task)
			if err != nil {
				return err
			}
			batch = append(batch, task)
		}
	}
	ids := map[string]string{}
	if len(batch) > 0 {
		added, err := t.TaskAdd(ctx, c, TaskAddIn{Tasks: batch})
		if err != nil {
			return err
		}
		for i, task := range added {
			out.Tasks = append(out.Tasks, task.ID)
			ids[batch[i].Ref] = task.ID
		}
	}
	for _, ch := range d.Changes {
		switch {
		case ch.What != "task" || ch.Skipped != "" || ch.Op == ChangeAdd:
		case ch.Op == ChangeRemove:
			if _, err := t.TaskDelete(ctx, c, ch.Name); err != nil {
				return err
			}
		default:
			in := TaskUpdateIn{TaskID: ch.Name, Subject: &ch.task.Subject, Description: &ch.task.Description, Priority: &ch.task.Priority, Verify: &ch.task.Verify}
			task, err := withRef(ch.task)
			if err != nil {
				return err
			}
			in.Metadata = task.Metadata
			for _, dep := range ch.task.DependsOn {
				in.AddDependsOn = append(in.AddDependsOn, cmp.Or(ids[dep], dep))
			}
			if _, err := t.TaskUpdate(ctx, c, in); err != nil {
				return err
			}
		}
	}
	return nil
}
