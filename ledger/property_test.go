package ledger

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/team"
)

// model is a simple model of the expected tasks of a ledger.
type model struct {
	tasks map[string]*modelTask
	last  int
	now   int64
	runs  []int64 // the open ones, the deepest last
}

type modelTask struct {
	id       int
	status   team.TaskStatus
	owner    string
	deps     []string
	priority int
	attempt  int
	lease    int64

	most, made     int // retries
	backoff, later int64
}

func (m *model) blockedBy(t *modelTask) []string {
	out := []string{}
	for _, d := range t.deps {
		if m.tasks[d].status != team.TaskCompleted {
			out = append(out, d)
		}
	}
	return out
}

func (m *model) sorted() []*modelTask {
	var all []*modelTask
	for _, t := range m.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *modelTask) int { return a.id - b.id })
	return all
}

// ready reports whether owner may claim the task.
func (m *model) ready(t *modelTask, owner string) bool {
	return t.status == team.TaskPending && len(m.blockedBy(t)) == 0 && t.later <= m.now && (t.owner == "" || t.owner == owner)
}

// next returns the task that a claim of owner without an id gets; assigned
// tasks come first.
func (m *model) next(owner string) *modelTask {
	var best *modelTask
	rank := func(t *modelTask) int {
		if t.owner == owner {
			return 1000 + t.priority
		}
		return t.priority
	}
	for _, t := range m.sorted() {
		if m.ready(t, owner) && (best == nil || rank(t) > rank(best)) {
			best = t
		}
	}
	return best
}

// due clears expired waits; every claim does so.
func (m *model) due() {
	for _, t := range m.tasks {
		if t.later <= m.now {
			t.later = 0
		}
	}
}

func (m *model) reaches(from, to string) bool {
	if from == to {
		return true
	}
	return slices.ContainsFunc(m.tasks[from].deps, func(d string) bool { return m.reaches(d, to) })
}

func (m *model) free(t *modelTask) { t.status, t.owner, t.lease, t.later = team.TaskPending, "", 0, 0 }

func (m *model) lapsed() []*modelTask {
	var out []*modelTask
	for _, t := range m.sorted() {
		if (t.status == team.TaskClaimed || t.status == team.TaskInProgress) && t.lease < m.now {
			out = append(out, t)
		}
	}
	return out
}

// drawnLedger opens a ledger for one check of a property. Its caller closes it.
func drawnLedger(t *testing.T, rt *rapid.T, dir string) (context.Context, *DB) {
	sub, err := os.MkdirTemp(dir, "")
	if err != nil {
		rt.Fatal(err)
	}
	ctx := ctxFor(t)
	db, err := Open(ctx, filepath.Join(sub, "ledger.db"), Options{Create: true})
	if err != nil {
		rt.Fatal(err)
	}
	if err := sqlExec(t, db, "PRAGMA synchronous = OFF"); err != nil { // the test does not cover the disk
		rt.Fatal(err)
	}
	return ctx, db
}

// After any sequence of operations the tasks in the ledger match the model, and
// blockedBy matches its definition.
func TestTasksMatchTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		ctx, db := drawnLedger(t, rt, dir)
		defer func() { _ = db.Close() }()
		l := New(db, Direct(db))
		ok(t, fill(ctx, l))
		c := &clock{time.UnixMilli(1_000_000)}
		l.now = c.now
		s := &sim{rt: rt, l: l, m: &model{tasks: map[string]*modelTask{}, now: c.at.UnixMilli(), runs: []int64{1}}, c: c}
		rt.Repeat(map[string]func(*rapid.T){
			"create": s.create, "claim next": s.claimNext, "claim one": s.claimOne, "start": s.start,
			"complete": s.complete, "fail": s.fail, "release": s.release, "owner dies": s.ownerDies,
			"time passes": s.timePasses, "expire": s.expire, "retry": s.retry, "delete": s.delete,
			"assign": s.assign, "reassign": s.reassign, "renew": s.renew, "priority": s.priority,
			"start run": s.startRun, "start a sub-run": s.startSubRun, "close run": s.closeRun,
			"add dep": s.addDep, "remove dep": s.removeDep, "": s.compare,
		})
	})
}

type sim struct {
	rt *rapid.T
	l  *Ledger
	m  *model
	c  *clock
}

// owners are two members and one that is not on the roster.
var owners = []string{"s-a", "s-b", "s3"}

func fill(ctx context.Context, l *Ledger) error {
	_, err := l.CreateTeam(ctx, TeamRow{Key: "demo", Name: "Demo", LeadSession: "s-lead"})
	for _, name := range []string{"a", "b"} {
		if err == nil {
			_, _, err = l.AddMember(ctx, Member{Name: name, SessionKey: "s-" + name}, true)
		}
	}
	return err
}

func (s *sim) some(rt *rapid.T) *modelTask {
	all := s.m.sorted()
	if len(all) == 0 {
		rt.Skip("no task")
	}
	return rapid.SampledFrom(all).Draw(rt, "task")
}

func (s *sim) ref(t *modelTask) TaskRef { return TaskRef{strconv.Itoa(t.id), t.owner, t.attempt} }

// agree checks that the ledger refused an operation exactly if the model does.
func (s *sim) agree(rt *rapid.T, allowed bool, err error) bool {
	if allowed != (err == nil) {
		rt.Fatalf("model allows: %v, ledger: %v", allowed, err)
	}
	if err != nil && team.IsCode(err, team.CodeInternal) {
		rt.Fatalf("uncoded: %v", err)
	}
	return err == nil
}

func (s *sim) create(rt *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(rt, "n")
	var batch []NewTask
	for i := range n {
		nt := NewTask{Ref: string(rune('a' + i)), Subject: "s", Priority: rapid.IntRange(0, 2).Draw(rt, "priority")}
		if rapid.Bool().Draw(rt, "retries") {
			nt.RetryPolicy = RetryPolicy{MaxRetries: rapid.IntRange(1, 2).Draw(rt, "most"), RetryBackoff: rapid.SampledFrom([]int64{0, 40_000}).Draw(rt, "backoff")}
		}
		for _, t := range s.m.sorted() {
			if rapid.IntRange(0, 3).Draw(rt, "dep") == 0 {
				nt.DependsOn = append(nt.DependsOn, strconv.Itoa(t.id))
			}
		}
		if i > 0 && rapid.Bool().Draw(rt, "chain") {
			nt.DependsOn = append(nt.DependsOn, batch[i-1].Ref)
		}
		batch = append(batch, nt)
	}
	if _, err := s.l.CreateTasks(background, batch, "lead"); err != nil {
		rt.Fatal(err)
	}
	first := s.m.last + 1
	for i, nt := range batch {
		s.m.last++
		mt := &modelTask{id: s.m.last, status: team.TaskPending, priority: nt.Priority, most: nt.MaxRetries, backoff: nt.RetryBackoff}
		for _, d := range nt.DependsOn {
			if i > 0 && d == batch[i-1].Ref {
				d = strconv.Itoa(first + i - 1)
			}
			mt.deps = append(mt.deps, d)
		}
		s.m.tasks[strconv.Itoa(mt.id)] = mt
	}
}

func (s *sim) take(t *modelTask, owner string) {
	t.status, t.owner, t.lease = team.TaskClaimed, owner, s.m.now+time.Minute.Milliseconds()
	t.attempt++
}

func (s *sim) claimNext(rt *rapid.T) {
	owner := rapid.SampledFrom(owners).Draw(rt, "owner")
	got, err := s.l.Claim(background, ClaimIn{Owner: owner, Lease: time.Minute})
	if err != nil {
		rt.Fatal(err)
	}
	s.m.due()
	want := s.m.next(owner)
	if want == nil {
		for _, t := range s.m.lapsed() {
			s.m.free(t)
		}
		want = s.m.next(owner)
	}
	if (got == nil) != (want == nil) || got != nil && got.ID != strconv.Itoa(want.id) {
		rt.Fatalf("claimed %+v, want %+v", got, want)
	}
	if want != nil {
		s.take(want, owner)
	}
}

func (s *sim) claimOne(rt *rapid.T) {
	t, owner := s.some(rt), rapid.SampledFrom(owners).Draw(rt, "owner")
	_, err := s.l.Claim(background, ClaimIn{Owner: owner, ID: strconv.Itoa(t.id), Lease: time.Minute})
	if s.agree(rt, s.m.ready(t, owner), err) {
		s.m.due()
		s.take(t, owner)
	}
}

func held(t *modelTask) bool {
	return t.status == team.TaskClaimed || t.status == team.TaskInProgress
}

func (s *sim) start(rt *rapid.T) {
	t := s.some(rt)
	if s.agree(rt, held(t), s.l.Start(background, s.ref(t))) {
		t.status, t.lease = team.TaskInProgress, max(t.lease, s.m.now+Lease.Milliseconds())
	}
}

func (s *sim) complete(rt *rapid.T) {
	t := s.some(rt)
	before := s.ready()
	ready, err := s.l.Complete(background, s.ref(t), Result{})
	if !s.agree(rt, held(t), err) {
		return
	}
	t.status, t.lease = team.TaskCompleted, 0
	fresh := slices.DeleteFunc(s.ready(), func(id string) bool { return slices.Contains(before, id) })
	if !slices.Equal(fresh, ready) {
		rt.Fatalf("became ready: %v, want %v", ready, fresh)
	}
}

func (s *sim) ready() (out []string) {
	for _, t := range s.m.sorted() {
		if t.status == team.TaskPending && len(s.m.blockedBy(t)) == 0 {
			out = append(out, strconv.Itoa(t.id))
		}
	}
	return out
}

func (s *sim) fail(rt *rapid.T) {
	t := s.some(rt)
	r := s.ref(t)
	if t.status == team.TaskPending {
		r.Owner = ""
	}
	was := held(t)
	if !s.agree(rt, was || t.status == team.TaskPending, s.l.Fail(background, r, Result{})) {
		return
	}
	if was && t.made < t.most { // automatically, later
		wait := t.backoff
		if wait == 0 {
			wait = DefaultBackoff.Milliseconds()
		}
		for range t.made {
			wait *= 2
		}
		s.m.free(t)
		t.later, t.made = s.m.now+wait, t.made+1
		return
	}
	t.status, t.lease = team.TaskFailed, 0
}

func (s *sim) release(rt *rapid.T) {
	t := s.some(rt)
	owner := s.l.As(strings.TrimPrefix(t.owner, "s-")) // a release by another member holds the task back
	if s.agree(rt, held(t), owner.Release(background, s.ref(t))) {
		s.m.free(t)
	}
}

func (s *sim) ownerDies(rt *rapid.T) {
	owner := rapid.SampledFrom(owners).Draw(rt, "owner")
	if _, err := s.l.ReleaseOwner(background, owner, "died"); err != nil {
		rt.Fatal(err)
	}
	for _, t := range s.m.tasks {
		switch {
		case t.owner != owner:
		case held(t):
			s.m.free(t)
		case t.status == team.TaskPending:
			t.owner = "" // it was only assigned
		}
	}
}

func (s *sim) timePasses(*rapid.T) {
	s.c.advance(45 * time.Second)
	s.m.now = s.c.at.UnixMilli()
}

func (s *sim) expire(rt *rapid.T) {
	if _, err := s.l.ExpireLeases(background); err != nil {
		rt.Fatal(err)
	}
	for _, t := range s.m.lapsed() {
		s.m.free(t)
	}
}

func (s *sim) retry(rt *rapid.T) {
	t := s.some(rt)
	waits := t.status == team.TaskPending && t.later > 0
	if s.agree(rt, t.status == team.TaskFailed || waits, s.l.RetryTask(background, strconv.Itoa(t.id))) {
		s.m.free(t)
		t.made = 0
	}
}

func (s *sim) assign(rt *rapid.T) {
	t, to := s.some(rt), rapid.SampledFrom([]string{"", "s-a", "s-b", "s3"}).Draw(rt, "to")
	_, err := s.l.UpdateTask(background, TaskPatch{ID: strconv.Itoa(t.id), Owner: &to})
	if s.agree(rt, to == t.owner || t.status == team.TaskPending && to != "s3", err) {
		t.owner = to
	}
}

func (s *sim) reassign(rt *rapid.T) {
	t, to := s.some(rt), rapid.SampledFrom([]string{"", "s-a", "s-b", "s3"}).Draw(rt, "to")
	_, err := s.l.Reassign(background, strconv.Itoa(t.id), to, "lead")
	done := t.status == team.TaskCompleted || t.status == team.TaskFailed
	known := to != "s3" || t.status == team.TaskPending && t.owner == to
	if !s.agree(rt, !done && known, err) {
		return
	}
	if held(t) {
		s.m.free(t)
	} else {
		t.later = 0
	}
	t.owner = to
}

func (s *sim) renew(rt *rapid.T) {
	owner := rapid.SampledFrom(owners).Draw(rt, "owner")
	n, err := s.l.RenewLeases(background, []string{owner}, 0)
	if err != nil {
		rt.Fatal(err)
	}
	until, want := s.m.now+Lease.Milliseconds(), int64(0)
	for _, t := range s.m.tasks {
		if held(t) && t.owner == owner && t.lease < until {
			t.lease = until
			want++
		}
	}
	if n != want {
		rt.Fatalf("%d leases renewed, want %d", n, want)
	}
}

func (s *sim) priority(rt *rapid.T) {
	t, p := s.some(rt), rapid.IntRange(0, 2).Draw(rt, "priority")
	if _, err := s.l.UpdateTask(background, TaskPatch{ID: strconv.Itoa(t.id), Priority: &p}); err != nil {
		rt.Fatal(err)
	}
	t.priority = p
}

func (s *sim) startRun(rt *rapid.T) {
	run, err := s.l.StartRun(background)
	if err != nil {
		rt.Fatal(err)
	}
	s.m.runs = []int64{run.ID}
}

func (s *sim) startSubRun(rt *rapid.T) {
	run, err := s.l.BeginRun(background, RunStart{Sub: true})
	if s.agree(rt, len(s.m.runs) <= MaxRunDepth, err) {
		s.m.runs = append(s.m.runs, run.ID)
	}
}

func (s *sim) closeRun(rt *rapid.T) {
	at := rapid.IntRange(0, len(s.m.runs)-1).Draw(rt, "depth")
	out, err := s.l.CloseRun(background, s.m.runs[at])
	if err != nil {
		rt.Fatal(err)
	}
	if len(out.Closed) != len(s.m.runs)-at { // including its sub-runs
		rt.Fatalf("closed %v of %v from %d on", out.Closed, s.m.runs, at)
	}
	if s.m.runs = s.m.runs[:at]; at == 0 {
		s.m.runs = []int64{out.Current.ID}
	}
}

func (s *sim) delete(rt *rapid.T) {
	t := s.some(rt)
	id := strconv.Itoa(t.id)
	if _, err := s.l.DeleteTask(background, id); !s.agree(rt, !held(t), err) {
		return
	}
	delete(s.m.tasks, id)
	for _, o := range s.m.tasks {
		o.deps = slices.DeleteFunc(o.deps, func(d string) bool { return d == id })
	}
}

func (s *sim) addDep(rt *rapid.T) {
	t, dep := s.some(rt), s.some(rt)
	id, on := strconv.Itoa(t.id), strconv.Itoa(dep.id)
	_, err := s.l.AddDeps(background, id, []string{on}, "lead")
	if s.agree(rt, t.status == team.TaskPending && !s.m.reaches(on, id), err) && !slices.Contains(t.deps, on) {
		t.deps = append(t.deps, on)
	}
}

func (s *sim) removeDep(rt *rapid.T) {
	t, dep := s.some(rt), s.some(rt)
	on := strconv.Itoa(dep.id)
	_, err := s.l.RemoveDeps(background, strconv.Itoa(t.id), []string{on}, "lead")
	if s.agree(rt, t.status == team.TaskPending, err) {
		t.deps = slices.DeleteFunc(t.deps, func(d string) bool { return d == on })
	}
}

func (s *sim) compare(rt *rapid.T) {
	tasks, err := s.l.Tasks(background, TaskFilter{})
	if err != nil {
		rt.Fatal(err)
	}
	run, err := s.l.CurrentRun(background)
	if last := len(s.m.runs) - 1; err != nil || run.ID != s.m.runs[last] || run.Depth != last {
		rt.Fatalf("the current run is %+v, want the last of %v; %v", run, s.m.runs, err)
	}
	all := s.m.sorted()
	if len(all) != len(tasks) {
		rt.Fatalf("%d tasks, want %d", len(tasks), len(all))
	}
	for i, want := range all {
		got := tasks[i]
		gotView := []any{got.ID, got.Status, got.Owner, got.Attempt, got.LeaseUntil, got.DependsOn, got.BlockedBy, got.Retries, got.NotBefore, got.Priority}
		wantView := []any{strconv.Itoa(want.id), want.status, want.owner, want.attempt, want.lease, append([]string{}, want.deps...), s.m.blockedBy(want), want.made, want.later, want.priority}
		if diff := cmp.Diff(wantView, gotView); diff != "" {
			rt.Fatalf("task %d (-want +got):\n%s", want.id, diff)
		}
	}
	problems, err := s.l.Check(background)
	if err != nil || len(problems) > 0 {
		rt.Fatalf("%v %v", problems, err)
	}
}
