package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/taskfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// claimLease is the lease of a task held by a native member: the program has no leases, and a
// member that leaves releases its tasks by leaving.
const claimLease = 7 * 24 * time.Hour

// taskData is the last state common to both sides. Gone means that the native file was deleted and
// that the task stays, since it is over.
type taskData struct {
	View taskfile.View `json:"view"`
	Gone bool          `json:"gone,omitempty"`
}

func (p *pass) taskRow(there, here string, ours bool, d taskData) (ledger.Mirrored, error) {
	r := p.row(ledger.MirrorTask, there, here)
	r.Ours = ours
	var err error
	r.Data, err = json.Marshal(d)
	return r, err
}

// syncTasks synchronises both boards.
func (p *pass) syncTasks(ctx context.Context) error {
	files, order, whole, err := p.native.readTasks()
	if err != nil {
		return err
	}
	p.soon = p.soon || !whole
	tasks, err := p.led().Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return err
	}
	here := make(map[string]ledger.Task, len(tasks))
	for _, t := range tasks {
		here[t.ID] = t
	}
	changed := false
	for _, id := range order {
		made, err := p.taskHere(ctx, files[id], here)
		if err != nil {
			return err
		}
		changed = changed || made
	}
	for _, t := range tasks {
		made, err := p.taskThere(ctx, t)
		if err != nil {
			return err
		}
		changed = changed || made
	}
	if changed { // new tasks of one side are then compared like all others
		if err := p.reread(ctx); err != nil {
			return err
		}
		return p.syncTasks(ctx)
	}
	for _, r := range p.of(ledger.MirrorTask) {
		file, there := files[r.There]
		if !there && !whole {
			continue // it may be the one being written
		}
		t, isHere := here[r.Here]
		if err := p.syncTask(ctx, r, file, there, t, isHere); err != nil {
			return err
		}
	}
	return nil
}

// taskHere creates a task for a native file that has none yet, in the order of ids, since
// dependencies are usually older.
func (p *pass) taskHere(ctx context.Context, f nativeTask, here map[string]ledger.Task) (bool, error) {
	if _, known := p.there(ledger.MirrorTask, f.ID); known || string(f.Meta[internalKey]) == "true" {
		return false, nil
	}
	if o, ok := f.origin(); ok && o.Team == p.in.Team.Layout.Key { // the bridge was killed before it recorded it
		if _, exists := here[o.Task]; exists {
			return p.noteOurs(ctx, f, o.Task)
		}
	}
	n := ledger.NewTask{Subject: f.View.Subject, Description: f.View.Description, ActiveForm: f.View.ActiveForm}
	v := taskfile.View{Subject: n.Subject, Description: n.Description, ActiveForm: n.ActiveForm, Status: taskfile.Pending, Owner: f.View.Owner}
	for _, dep := range f.View.BlockedBy {
		if r, ok := p.there(ledger.MirrorTask, dep); ok {
			if _, exists := here[r.Here]; exists || !r.Ours {
				n.DependsOn, v.BlockedBy = append(n.DependsOn, r.Here), append(v.BlockedBy, dep)
			}
		}
	}
	meta, err := json.Marshal(map[string]map[string]string{"bridge": {"team": p.native.name, "task": f.ID}})
	if err != nil {
		return false, err
	}
	n.Metadata = meta
	r, err := p.taskRow(f.ID, "", false, taskData{View: v})
	if err != nil {
		return false, err
	}
	owner, _ := p.doer(f.View)
	id, err := p.led().MirrorTask(ctx, r, n, owner, team.LeadName)
	if err != nil {
		if refusal(err) {
			p.sayOnce(NoteRefused, "task "+f.ID, err.Error())
			return false, nil
		}
		return false, err
	}
	r.Here = id
	p.rows.add(r)
	p.say(NoteTaskHere, id, f.View.Subject)
	return true, nil
}

// noteOurs records the native file of one of our tasks.
func (p *pass) noteOurs(ctx context.Context, f nativeTask, task string) (bool, error) {
	if _, known := p.here(ledger.MirrorTask, task); known {
		return false, nil
	}
	r, err := p.taskRow(f.ID, task, true, taskData{View: f.View})
	if err != nil {
		return false, err
	}
	p.rows.add(r)
	return true, p.led().Mirror(ctx, []ledger.Mirrored{r}, nil)
}

// taskThere creates a native file for one of our open tasks that has none.
func (p *pass) taskThere(ctx context.Context, t ledger.Task) (bool, error) {
	if t.Status == team.TaskCompleted || t.Status == team.TaskFailed {
		return false, nil
	}
	if _, known := p.here(ledger.MirrorTask, t.ID); known {
		return false, nil
	}
	var v taskfile.View
	id, err := p.native.createTask(ctx, func(id string) (nativeTask, error) {
		v = p.view(t)
		o, err := json.Marshal(origin{p.in.Team.Layout.Key, t.ID})
		f := nativeTask{taskfile.File{ID: id, Meta: map[string]json.RawMessage{originKey: o}}}
		return f, errors.Join(err, f.Set(v))
	})
	if err != nil {
		return false, err
	}
	r, err := p.taskRow(id, t.ID, true, taskData{View: v})
	if err != nil {
		return false, err
	}
	p.rows.add(r)
	p.say(NoteTaskThere, id, t.Subject)
	return true, p.led().Mirror(ctx, []ledger.Mirrored{r}, nil)
}

// view returns one of our tasks in native terms.
func (p *pass) view(t ledger.Task) taskfile.View {
	v := taskfile.View{Subject: t.Subject, Description: t.Description, ActiveForm: t.ActiveForm, Status: taskfile.Pending}
	switch t.Status {
	case team.TaskClaimed, team.TaskInProgress, team.TaskFailed: // a failed task must not be claimed, and its dependents stay blocked
		v.Status = taskfile.InProgress
	case team.TaskCompleted:
		v.Status = taskfile.Completed
	case team.TaskPending:
	}
	if t.Owner != "" {
		if r, ok := p.here(ledger.MirrorMember, t.Owner); ok {
			v.Owner = r.There
		} else {
			v.Owner = t.OwnerName
		}
	}
	for _, dep := range t.DependsOn {
		if r, ok := p.here(ledger.MirrorTask, dep); ok {
			v.BlockedBy = append(v.BlockedBy, r.There)
		}
	}
	slices.Sort(v.BlockedBy)
	return v
}

// syncTask synchronises one task: native changes since the common state are applied here, and then
// the file gets our state.
func (p *pass) syncTask(ctx context.Context, r ledger.Mirrored, f nativeTask, there bool, t ledger.Task, isHere bool) error {
	var d taskData
	if err := json.Unmarshal(r.Data, &d); err != nil {
		return fmt.Errorf("read the note of task %s: %w", r.There, err)
	}
	switch {
	case d.Gone:
		return nil
	case !isHere && !there:
		return p.led().Mirror(ctx, nil, []ledger.Mirrored{r})
	case !isHere:
		if err := p.native.removeTask(ctx, r.There); err != nil {
			return err
		}
		return p.led().Mirror(ctx, nil, []ledger.Mirrored{r})
	case !there:
		return p.deletedThere(ctx, r, d, t)
	}
	if !f.View.Same(d.View) {
		if err := p.follow(ctx, t, d.View, f.View); err != nil {
			if !refusal(err) {
				return err
			}
			p.sayOnce(NoteRefused, "task "+r.There, err.Error())
		}
		var err error
		if t, err = p.led().Task(ctx, t.ID); err != nil {
			return err
		}
	}
	want := p.view(t)
	if known, _ := p.ownerHere(f.View.Owner); known == "" && want.Owner == "" {
		want.Owner = f.View.Owner // an owner that is not here, or not yet
	}
	if !want.Same(f.View) {
		if err := p.writeTask(ctx, r.There, f.View, want); err != nil {
			return err
		}
	}
	if want.Same(d.View) {
		return nil
	}
	d.View = want
	row, err := p.taskRow(r.There, r.Here, r.Ours, d)
	if err != nil {
		return err
	}
	return p.led().Mirror(ctx, []ledger.Mirrored{row}, nil)
}

// errMoved means that a file has changed: it is compared again.
var errMoved = unsettled(errors.New("a task was changed meanwhile"))

func (p *pass) writeTask(ctx context.Context, id string, was, want taskfile.View) error {
	err := p.native.editTask(ctx, id, func(f *nativeTask) (bool, error) {
		if !f.View.Same(was) {
			return false, errMoved
		}
		return true, f.Set(want)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	return err
}

// deletedThere handles a deleted file. A pending task is deleted here too; a finished one stays,
// and a task in progress gets its file back.
func (p *pass) deletedThere(ctx context.Context, r ledger.Mirrored, d taskData, t ledger.Task) error {
	switch t.Status {
	case team.TaskPending:
		if _, err := p.led().DeleteTask(ctx, t.ID); err == nil || team.IsCode(err, team.CodeNotFound) {
			return p.led().Mirror(ctx, nil, []ledger.Mirrored{r})
		} else if !refusal(err) {
			return err
		}
	case team.TaskClaimed, team.TaskInProgress:
	case team.TaskCompleted, team.TaskFailed:
		d.Gone = true
		row, err := p.taskRow(r.There, r.Here, r.Ours, d)
		if err != nil {
			return err
		}
		return p.led().Mirror(ctx, []ledger.Mirrored{row}, nil)
	}
	p.sayOnce(NoteRefused, "task "+r.There, "it was deleted there while it is worked on here: it comes back under another id")
	p.soon = true
	return p.led().Mirror(ctx, nil, []ledger.Mirrored{r})
}

// follow applies the native changes since was.
func (p *pass) follow(ctx context.Context, t ledger.Task, was, is taskfile.View) error {
	ours := p.view(t)
	patch := ledger.TaskPatch{ID: t.ID, By: team.LeadName}
	text := func(was, is, ours string, at **string) {
		if is != was && is != ours && ours == was {
			*at = &is
		}
	}
	text(was.Subject, is.Subject, ours.Subject, &patch.Subject)
	text(was.Description, is.Description, ours.Description, &patch.Description)
	text(was.ActiveForm, is.ActiveForm, ours.ActiveForm, &patch.ActiveForm)
	if patch.Subject != nil || patch.Description != nil || patch.ActiveForm != nil {
		if _, err := p.led().UpdateTask(ctx, patch); err != nil {
			return err
		}
	}
	if err := p.followDeps(ctx, t, was, is); err != nil {
		return err
	}
	if was.Status == is.Status && was.Owner == is.Owner {
		return nil
	}
	return p.followStatus(ctx, t, was, is)
}

func (p *pass) followDeps(ctx context.Context, t ledger.Task, was, is taskfile.View) error {
	if t.Status != team.TaskPending || slices.Equal(was.BlockedBy, is.BlockedBy) {
		return nil
	}
	ids := func(from, without []string) (out []string) {
		for _, id := range from {
			if r, ok := p.there(ledger.MirrorTask, id); ok && !slices.Contains(without, id) {
				out = append(out, r.Here)
			}
		}
		return out
	}
	if add := ids(is.BlockedBy, was.BlockedBy); len(add) > 0 {
		if _, err := p.led().AddDeps(ctx, t.ID, add, team.LeadName); err != nil {
			return err
		}
	}
	if drop := ids(was.BlockedBy, is.BlockedBy); len(drop) > 0 {
		if _, err := p.led().RemoveDeps(ctx, t.ID, drop, team.LeadName); err != nil {
			return err
		}
	}
	return nil
}

// ownerHere returns the session of a native task's owner, and whether it is a native member.
func (p *pass) ownerHere(name string) (session string, theirs bool) {
	if name == team.LeadName {
		return p.lead().SessionKey, true
	}
	if r, ok := p.there(ledger.MirrorMember, name); ok {
		return r.Here, !r.Ours
	}
	return "", false
}

// doer is ownerHere of a task; a begun task without a known owner belongs to the lead.
func (p *pass) doer(v taskfile.View) (session string, theirs bool) {
	session, theirs = p.ownerHere(v.Owner)
	if session == "" && v.Status != taskfile.Pending {
		session, theirs = p.lead().SessionKey, true
	}
	return session, theirs
}

// followStatus applies a native status. Native members claim, work and complete through the
// program's file. A task held by one of our members is changed only by that member: a claim that
// differs from the file is refused.
func (p *pass) followStatus(ctx context.Context, t ledger.Task, was, is taskfile.View) error {
	owner, theirs := p.doer(is)
	ref := ledger.TaskRef{ID: t.ID, Owner: t.Owner, Attempt: t.Attempt}
	held := t.Status == team.TaskClaimed || t.Status == team.TaskInProgress
	switch {
	case t.Status == team.TaskCompleted || t.Status == team.TaskFailed:
		return nil // it has ended here
	case !slices.Contains([]string{taskfile.Pending, taskfile.InProgress, taskfile.Completed}, is.Status):
		return team.Errorf(team.CodeInvalid, "unknown status %q", is.Status)
	case held && !p.isTheirs(t.Owner):
		return team.Errorf(team.CodeConflict, "task %s is held by %s in this team", t.ID, t.OwnerName).WithReason(team.ReasonNotOwner)
	case is.Status == taskfile.Pending:
		if held {
			if err := p.led().Release(ctx, ref); err != nil {
				return err
			}
		}
		if is.Owner != "" && owner == "" || owner == t.Owner && !held {
			return nil
		}
		_, err := p.led().UpdateTask(ctx, ledger.TaskPatch{ID: t.ID, By: team.LeadName, Owner: &owner})
		return err
	case !theirs: // one of ours claims by itself
		if held {
			return nil
		}
		_, err := p.led().UpdateTask(ctx, ledger.TaskPatch{ID: t.ID, By: team.LeadName, Owner: &owner})
		return err
	}
	if held && t.Owner != owner {
		if err := p.led().Release(ctx, ref); err != nil {
			return err
		}
		held = false
	}
	if !held {
		if t.Owner != "" && t.Owner != owner { // assigned to another member before
			if _, err := p.led().UpdateTask(ctx, ledger.TaskPatch{ID: t.ID, By: team.LeadName, Owner: &owner}); err != nil {
				return err
			}
		}
		claimed, err := p.led().Claim(ctx, ledger.ClaimIn{Owner: owner, ID: t.ID, Lease: claimLease})
		if err != nil {
			return err
		}
		ref = ledger.TaskRef{ID: t.ID, Owner: owner, Attempt: claimed.Attempt}
	}
	if err := p.led().Start(ctx, ref); err != nil || is.Status != taskfile.Completed {
		return err
	}
	if _, err := p.led().Complete(ctx, ref, ledger.Result{Summary: "completed in " + p.native.name}); err != nil {
		return err
	}
	done, err := p.led().Task(ctx, ref.ID)
	if err == nil {
		p.in.Team.MailCompleted(ctx, p.in.Caller, done)
	}
	return err
}

// isTheirs reports whether a session belongs to a native member, or to the lead of both teams.
func (p *pass) isTheirs(session string) bool {
	if session == p.lead().SessionKey {
		return true
	}
	r, ok := p.here(ledger.MirrorMember, session)
	return ok && !r.Ours
}
