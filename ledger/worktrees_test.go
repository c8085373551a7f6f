package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// pair returns a ledger with two members.
func pair(t *testing.T) (l *Ledger, a, b Member) {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	l = New(db, Direct(db)).As("team-lead")
	_, err := l.CreateTeam(ctxFor(t), TeamRow{Key: "demo", LeadSession: team.LeadSessionKey("", "demo")})
	ok(t, err)
	var out [2]Member
	for i, name := range []string{"ann", "bob"} {
		m, _, err := l.AddMember(ctxFor(t), Member{SessionKey: "agent:" + name, Name: name, Role: team.RoleExecutor,
			Desired: team.WantRunning, Observed: team.Pending, Activity: team.ActivityUnknown}, true)
		ok(t, err)
		out[i] = m
	}
	return l, out[0], out[1]
}

func TestFileLeases(t *testing.T) {
	t.Parallel()
	l, a, b := pair(t)
	ctx := ctxFor(t)
	now := time.Now()
	l.now = func() time.Time { return now }
	_, err := l.SetTouched(ctx, b.SessionKey, []Touch{{Path: "docs/x.md"}, {Path: "main.go", Dirty: true}})
	ok(t, err)
	got, err := l.TakeFileLease(ctx, NewFileLease{Session: a.SessionKey, Glob: "docs/**", Why: "rewriting", For: time.Hour})
	ok(t, err)
	if len(got.Conflicts) != 0 || !cmp.Equal(got.Touched, []TouchedFile{{Name: "bob", Path: "docs/x.md"}}) || got.Lease.ID == 0 {
		t.Errorf("%+v", got)
	}
	// A conflict is reported, not refused.
	theirs, err := l.TakeFileLease(ctx, NewFileLease{Session: b.SessionKey, Glob: "**/*.md", For: time.Minute})
	ok(t, err)
	if len(theirs.Conflicts) != 1 || theirs.Conflicts[0].Name != "ann" || theirs.Lease.ID == got.Lease.ID {
		t.Errorf("%+v", theirs)
	}
	// The same glob renews the lease.
	again, err := l.TakeFileLease(ctx, NewFileLease{Session: a.SessionKey, Glob: "docs/**", For: 2 * time.Hour})
	ok(t, err)
	if again.Lease.ID != got.Lease.ID || again.Lease.Until <= got.Lease.Until {
		t.Errorf("%+v", again.Lease)
	}
	now = now.Add(time.Minute + time.Millisecond) // bob's lease has expired
	list, err := l.FileLeases(ctx)
	ok(t, err)
	if len(list) != 1 || list[0].Name != "ann" {
		t.Errorf("%+v", list)
	}
	n, err := l.DropFileLeases(ctx, a.SessionKey, "docs/**")
	if err != nil || n != 1 {
		t.Errorf("%d %v", n, err)
	}
	for _, bad := range []NewFileLease{{Session: a.SessionKey, Glob: "/etc", For: 1}, {Session: a.SessionKey, Glob: "x"}, {Session: a.SessionKey, Glob: "x", For: 1000 * time.Hour}} {
		_, err := l.TakeFileLease(ctx, bad)
		if !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	_, err = l.TakeFileLease(ctx, NewFileLease{Session: "agent:nobody", Glob: "x", For: time.Hour})
	if !team.IsCode(err, team.CodeNotFound) {
		t.Error(err)
	}
}

func TestOverlapIsToldOnce(t *testing.T) {
	t.Parallel()
	l, a, b := pair(t)
	ctx := ctxFor(t)
	shared, err := l.SetTouched(ctx, a.SessionKey, []Touch{{Path: "one"}, {Path: "two", Dirty: true}})
	if err != nil || len(shared) != 0 {
		t.Fatal(shared, err)
	}
	shared, err = l.SetTouched(ctx, b.SessionKey, []Touch{{Path: "two"}, {Path: "three"}})
	ok(t, err)
	want := []SharedFile{{Session: a.SessionKey, Name: "ann", Path: "two", TheirDirty: true}}
	if d := cmp.Diff(want, shared); d != "" {
		t.Fatal(d)
	}
	for _, c := range []struct{ x, y, want string }{{b.SessionKey, a.SessionKey, "two"}, {a.SessionKey, b.SessionKey, ""}} {
		fresh, err := l.TellOverlap(ctx, c.x, c.y, []string{"two"})
		ok(t, err)
		if c.want == "" && len(fresh) != 0 || c.want != "" && !cmp.Equal(fresh, []string{c.want}) {
			t.Errorf("%v", fresh)
		}
	}
	for _, s := range []string{a.SessionKey, b.SessionKey} { // nothing new for either, whether written or not
		files := []Touch{{Path: "two"}, {Path: "three"}}
		if s == a.SessionKey {
			files = []Touch{{Path: "one"}, {Path: "two", Dirty: true}}
		}
		if shared, err := l.SetTouched(ctx, s, files); err != nil || len(shared) != 0 {
			t.Error(shared, err)
		}
	}
	events, err := l.Events(ctx, 0, 0, EventFilter{What: "worktree.overlap"})
	if err != nil || len(events) != 1 {
		t.Errorf("%+v %v", events, err)
	}
}

// filesOf are the rows of members' files, with the names of their sessions.
func filesOf(t *testing.T, db *DB) string {
	t.Helper()
	return sqlRow[string](t, db, `SELECT coalesce(group_concat(x, '; '), '') FROM (
		SELECT 'lease ' || holder AS x FROM file_leases UNION ALL SELECT 'touched ' || session || ' ' || path FROM touched_files
		UNION ALL SELECT 'told ' || a || ' ' || b FROM overlaps ORDER BY 1)`)
}

// TestFilesOfLeft checks that a member that leaves takes along what it has changed, asked for and was
// told of, that a look which ends after that brings nothing back, and that the rest stays.
func TestFilesOfLeft(t *testing.T) {
	t.Parallel()
	l, a, b := pair(t)
	ctx := ctxFor(t)
	c, _, err := l.AddMember(ctx, Member{SessionKey: "agent:cyd", Name: "cyd"}, true)
	ok(t, err)
	for _, m := range []Member{a, b, c} {
		_, err := l.SetTouched(ctx, m.SessionKey, []Touch{{Path: "one"}})
		ok(t, err)
		_, err = l.TakeFileLease(ctx, NewFileLease{Session: m.SessionKey, Glob: "docs/**", For: time.Hour})
		ok(t, err)
	}
	for _, pair := range [][2]Member{{a, b}, {b, c}, {a, c}} {
		_, err := l.TellOverlap(ctx, pair[0].SessionKey, pair[1].SessionKey, []string{"one"})
		ok(t, err)
	}
	ok(t, l.RemoveMember(ctx, b.SessionKey))
	want := "lease agent:ann; lease agent:cyd; told agent:ann agent:cyd; touched agent:ann one; touched agent:cyd one"
	if got := filesOf(t, l.db); got != want {
		t.Errorf("after the removal: %s", got)
	}
	events, err := l.Events(ctx, 0, 0, EventFilter{What: team.EventLeaseReleased})
	if err != nil || len(events) != 1 || events[0].Who != "bob" {
		t.Errorf("events of its lease: %+v, %v", events, err)
	}
	if shared, err := l.SetTouched(ctx, b.SessionKey, []Touch{{Path: "one"}}); err != nil || len(shared) != 0 {
		t.Errorf("a late look: %+v, %v", shared, err)
	}
	for _, other := range []Member{a, c} {
		if fresh, err := l.TellOverlap(ctx, other.SessionKey, b.SessionKey, []string{"one"}); err != nil || len(fresh) != 0 {
			t.Errorf("told late: %v, %v", fresh, err)
		}
	}
	if _, err := l.TakeFileLease(ctx, NewFileLease{Session: b.SessionKey, Glob: "docs/**", For: time.Hour}); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("a late lease: %v", err)
	}
	if got := filesOf(t, l.db); got != want {
		t.Errorf("later: %s", got)
	}
}

// TestFilesOfLeftBefore checks that an upgrade deletes the files of members that left before it.
func TestFilesOfLeftBefore(t *testing.T) {
	t.Parallel()
	old, err := open(ctxFor(t), filepath.Join(t.TempDir(), "ledger.db"), Options{Create: true}, migrations()[:24])
	ok(t, err)
	for _, q := range []string{
		`INSERT INTO members(sessionKey, agentId, name, role, teamRole, joinedAt, spec, removedAt)
			VALUES ('s-a', 'a@t', 'a', 'member', 'executor', 1, '{}', NULL), ('s-b', 'b@t', 'b', 'member', 'executor', 1, '{}', 5), ('s-c', 'c@t', 'c', 'member', 'executor', 1, '{}', NULL)`,
		`INSERT INTO touched_files VALUES ('s-a', 'one', 0), ('s-b', 'one', 1), ('s-c', 'one', 1)`,
		`INSERT INTO file_leases(holder, name, glob, at, until) VALUES ('s-a', 'a', 'x', 1, 2), ('s-b', 'b', 'x', 1, 2)`,
		`INSERT INTO overlaps VALUES ('s-a', 's-b', 'one', 1), ('s-b', 's-c', 'one', 1), ('s-a', 's-c', 'one', 1)`,
	} {
		_, err := old.conn.ExecContext(ctxFor(t), q)
		ok(t, err)
	}
	ok(t, old.Close())
	if got, want := filesOf(t, openAt(t, old.path)), "lease s-a; told s-a s-c; touched s-a one; touched s-c one"; got != want {
		t.Errorf("after the upgrade: %s", got)
	}
}

func TestMergeQueue(t *testing.T) {
	t.Parallel()
	l, a, b := pair(t)
	ctx := ctxFor(t)
	one := Merge{Member: a.Name, Session: a.SessionKey, Branch: "t/a", Tip: "1", Target: "main", Strategy: "merge", Gates: []string{"true"}}
	two := Merge{Member: b.Name, Session: b.SessionKey, Branch: "t/b", Tip: "1", Target: "main", Strategy: "squash"}
	list, err := l.EnqueueMerges(ctx, []Merge{one, two})
	ok(t, err)
	one.Tip = "2" // queued again: updated
	more, err := l.EnqueueMerges(ctx, []Merge{one})
	ok(t, err)
	if len(more) != 1 || more[0].ID != list[0].ID || more[0].Tip != "2" || more[0].AskedBy != "team-lead" {
		t.Errorf("%+v", more)
	}
	_, err = l.MoveMerges(ctx, MergePatch{IDs: []int64{list[0].ID}, State: MergeGating})
	ok(t, err)
	one.Tip = "3" // running: unchanged
	more, err = l.EnqueueMerges(ctx, []Merge{one})
	ok(t, err)
	if more[0].Tip != "2" || more[0].State != MergeGating {
		t.Errorf("%+v", more)
	}
	// It cannot be canceled either, and results for its older commit are
	// ignored.
	for _, p := range []MergePatch{{State: MergeCanceled}, {State: MergeLanding, Tips: []string{"1"}}, {State: MergeConflict, Tips: []string{"1"}, Task: &NewTask{Subject: "x"}}} {
		p.IDs = []int64{list[0].ID}
		moved, err := l.MoveMerges(ctx, p)
		ok(t, err)
		if moved[0].State != MergeGating || moved[0].Task != "" {
			t.Errorf("%+v: %+v", p, moved[0])
		}
	}
	task := &NewTask{Subject: "resolve it"}
	moved, err := l.MoveMerges(ctx, MergePatch{IDs: []int64{list[1].ID}, State: MergeConflict, Files: []string{"x"}, Why: "both changed it", Task: task})
	ok(t, err)
	if moved[0].Task == "" || moved[0].EndedAt == 0 {
		t.Fatalf("%+v", moved[0])
	}
	got := must[Task](t)(l.Task(ctx, moved[0].Task))
	if got.Owner != b.SessionKey || got.Status != team.TaskPending {
		t.Errorf("%+v", got)
	}
	// Once ended, it neither moves nor creates another task.
	moved, err = l.MoveMerges(ctx, MergePatch{IDs: []int64{list[1].ID}, State: MergeQueued, Task: task})
	ok(t, err)
	if moved[0].State != MergeConflict || must[Counts](t)(l.Counts(ctx)).Total() != 1 {
		t.Errorf("%+v", moved[0])
	}
	open, err := l.Merges(ctx, false, 0)
	ok(t, err)
	all, err := l.Merges(ctx, true, 0)
	ok(t, err)
	if len(open) != 1 || len(all) != 2 || all[0].ID != list[0].ID || !cmp.Equal(all[1].Files, []string{"x"}) {
		t.Errorf("%+v %+v", open, all)
	}
	// The task of a member that left is available to all.
	ok(t, l.RemoveMember(ctx, a.SessionKey))
	moved, err = l.MoveMerges(ctx, MergePatch{IDs: []int64{list[0].ID}, State: MergeRed, Task: task})
	ok(t, err)
	if got := must[Task](t)(l.Task(ctx, moved[0].Task)); got.Owner != "" {
		t.Errorf("%+v", got)
	}
	if _, err := l.EnqueueMerges(ctx, []Merge{{Branch: "x", Target: "x", Tip: "1"}}); !team.IsCode(err, team.CodeInvalid) {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	l, _, _ := pair(t)
	ctx := ctxFor(t)
	var v map[string]int
	if set, err := l.Setting(ctx, "x", &v); set || err != nil {
		t.Error(set, err)
	}
	ok(t, l.Set(ctx, "x", map[string]int{"a": 1}))
	ok(t, l.Set(ctx, "x", map[string]int{"a": 2}))
	if set, err := l.Setting(ctx, "x", &v); !set || err != nil || v["a"] != 2 {
		t.Error(set, err, v)
	}
	ok(t, l.Set(ctx, "x", nil))
	if set, err := l.Setting(ctx, "x", &v); set || err != nil {
		t.Error(set, err)
	}
}
