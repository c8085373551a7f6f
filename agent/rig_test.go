package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a team with a real ledger and real mailboxes.
type rig struct {
	t   *testing.T
	led *ledger.Ledger
	dir string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	for _, d := range []string{"inboxes", "locks"} {
		if err := os.Mkdir(filepath.Join(r.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.led = r.openLedger(true)
	ctx := t.Context()
	lead := team.LeadSessionKey("", "demo")
	if _, err := r.led.CreateTeam(ctx, ledger.TeamRow{Key: "demo", LeadSession: lead}); err != nil {
		t.Fatal(err)
	}
	r.join(team.LeadName, lead, team.RoleLeader)
	return r
}

func (r *rig) openLedger(create bool) *ledger.Ledger {
	r.t.Helper()
	db, err := ledger.Open(r.t.Context(), filepath.Join(r.dir, "ledger.db"), ledger.Options{Create: create, BusyTimeout: time.Minute})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = db.Close() })
	return ledger.New(db, ledger.Direct(db))
}

func (r *rig) join(name, session string, role team.Role) ledger.Member {
	r.t.Helper()
	m, _, err := r.led.AddMember(r.t.Context(), ledger.Member{
		SessionKey: session, Name: name, Role: role, PaneID: "%7", Spec: team.MemberSpec{Backend: "tmux"},
	}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) box(name string) *inbox.Box {
	r.t.Helper()
	b, err := inbox.Open(filepath.Join(r.dir, "inboxes"), filepath.Join(r.dir, "locks"), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// post posts and delivers a message like the supervisor's mailer.
func (r *rig) post(ctx context.Context, n ledger.NewMessage) (ledger.Message, error) {
	m, ds, err := r.led.Post(ctx, n)
	if err != nil {
		return m, err
	}
	for _, d := range ds {
		if d.State != team.Posted {
			continue
		}
		b, err := inbox.Open(filepath.Join(r.dir, "inboxes"), filepath.Join(r.dir, "locks"), d.Recipient)
		if err != nil {
			return m, err
		}
		if err := b.Append(ctx, inbox.Entry{From: m.From, Text: m.Text, ID: m.ID, Summary: m.Summary}); err != nil {
			return m, err
		}
		_, err = r.led.Mark(ctx, ledger.DeliveryMark{MessageID: m.ID, Recipient: d.Recipient, State: team.Mailed, Evidence: "test"})
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

func (r *rig) send(n ledger.NewMessage) ledger.Message {
	r.t.Helper()
	m, err := r.post(r.t.Context(), n)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) askShutdown(to string) ledger.Message {
	r.t.Helper()
	return r.requestShutdown(to, "shutdown-1@"+to)
}

// answerShutdown posts the answer that a member's tool would post.
func (r *rig) answerShutdown(req ledger.Message, approve bool) {
	r.t.Helper()
	kind := team.KindShutdownRejected
	var f inbox.Frame = inbox.ShutdownRejected{RequestID: req.RequestID, From: req.To, Reason: "mid-task", Timestamp: inbox.Timestamp(time.Now())}
	if approve {
		kind = team.KindShutdownApproved
		f = inbox.ShutdownApproved{RequestID: req.RequestID, From: req.To, Timestamp: inbox.Timestamp(time.Now())}
	}
	text, err := inbox.Encode(f)
	if err != nil {
		r.t.Fatal(err)
	}
	r.send(ledger.NewMessage{Kind: kind, From: req.To, To: req.From, RequestID: req.RequestID, Parent: req.ID, Text: text})
}

func (r *rig) requestShutdown(to, id string) ledger.Message {
	r.t.Helper()
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: id, From: team.LeadName, Reason: "all done", Timestamp: inbox.Timestamp(time.Now())})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.send(ledger.NewMessage{Kind: team.KindShutdownRequest, From: team.LeadName, To: to, RequestID: id, Text: text})
}

// task returns a NewTask that runs a script, modified by edit.
func task(subject, run string, edit ...func(*ledger.NewTask)) ledger.NewTask {
	n := ledger.NewTask{Ref: subject, Subject: subject, Description: subject, Metadata: metadata(map[string]any{"run": run})}
	for _, e := range edit {
		e(&n)
	}
	return n
}

func after(refs ...string) func(*ledger.NewTask) {
	return func(n *ledger.NewTask) { n.DependsOn = refs }
}

func verify(script string) func(*ledger.NewTask) {
	return func(n *ledger.NewTask) { n.Verify = script }
}

func (r *rig) add(tasks ...ledger.NewTask) []ledger.Task {
	r.t.Helper()
	ts, err := r.led.CreateTasks(r.t.Context(), tasks, team.LeadName)
	if err != nil {
		r.t.Fatal(err)
	}
	return ts
}

func (r *rig) task(id string) ledger.Task {
	r.t.Helper()
	t, err := r.led.Task(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// ended waits for the end of a task.
func (r *rig) ended(id string) ledger.Task {
	r.t.Helper()
	r.until("task "+id+" to end", func() bool {
		s := r.task(id).Status
		return s == team.TaskCompleted || s == team.TaskFailed
	})
	return r.task(id)
}

// until waits for a condition, for five minutes at most.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	for began := time.Now(); !ok(); tick.Reset(max(5*time.Millisecond, time.Since(began)/5)) { // a look reads the ledger
		select {
		case <-tick.C:
		case <-limit.C:
			r.t.Fatalf("waited too long for %s", what)
		}
	}
}

func (r *rig) messages(from string, kind team.Kind) []ledger.Message {
	r.t.Helper()
	all, err := r.led.Messages(r.t.Context(), ledger.MessageFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []ledger.Message
	for _, m := range all {
		if m.From == from && m.Kind == kind {
			out = append(out, m)
		}
	}
	return out
}

// screen is a worker's output.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// life is a running worker.
type life struct {
	r      *rig
	id     Identity
	env    Env
	out    *screen
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	ready  atomic.Int32
	dir    string
}

// tasks returns the task board as a member uses it.
func (r *rig) tasks(led *ledger.Ledger, m ledger.Member) Tasks {
	t := &tool.Team{Layout: team.Home{Dir: r.dir}.Team("demo"), Ledger: led, Env: &tool.Env{}}
	return t.WorkOf(tool.Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role, Mode: m.Spec.Mode})
}

// start runs a worker for the member of that name, which it creates unless it exists.
func (r *rig) start(name string, edit ...func(*Env)) *life {
	r.t.Helper()
	m, err := r.led.Member(r.t.Context(), name)
	if err != nil {
		m = r.join(name, team.TeammateSessionKey(""), team.RoleExecutor)
	}
	led := r.openLedger(false)
	l := &life{r: r, out: &screen{}, done: make(chan struct{}), dir: r.t.TempDir()}
	l.id = Identity{AgentID: m.AgentID, Name: name, Team: "demo", Session: m.SessionKey}
	l.env = Env{
		Ledger: led, Box: r.box(name), Post: r.post, Dir: l.dir, Out: l.out,
		Environ: os.Environ(), Ready: func() { l.ready.Add(1) }, Grace: time.Second,
	}
	l.env.Tasks = r.tasks(led, m)
	for _, e := range edit {
		e(&l.env)
	}
	l.dir = l.env.Dir
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() {
		defer close(l.done)
		l.err = Run(ctx, l.id, l.env)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-l.done
		if r.t.Failed() {
			r.t.Logf("screen of %s:\n%s", name, l.out)
		}
	})
	return l
}

// wait waits for the worker to exit and returns its error.
func (l *life) wait() error {
	l.r.t.Helper()
	select {
	case <-l.done:
		return l.err
	case <-time.After(5 * time.Minute):
		l.r.t.Fatalf("worker %s does not end", l.id.Name)
		return nil
	}
}

func (l *life) stop() error {
	l.cancel()
	return l.wait()
}

func (l *life) shows(text string) {
	l.r.t.Helper()
	l.r.until(fmt.Sprintf("%q on the screen", text), func() bool { return strings.Contains(l.out.String(), text) })
}

func (l *life) idle() {
	l.r.t.Helper()
	l.shows("idle, waiting")
}

// repo creates a git repository with one commit.
func (r *rig) repo() string {
	r.t.Helper()
	dir := r.t.TempDir()
	git(r.t, dir, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("base\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	git(r.t, dir, "add", "-A")
	git(r.t, dir, "commit", "-q", "-m", "base")
	return dir
}

func (r *rig) worktree(repo, name string) gitSpace {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), name)
	git(r.t, repo, "worktree", "add", "-q", "-b", name, dir)
	return gitSpace{dir}
}

func inWorktree(ws gitSpace) func(*Env) {
	return func(e *Env) { e.Workspace, e.Dir = ws, ws.dir }
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitSpace{dir}.git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gitSpace is a Workspace that runs git.
type gitSpace struct{ dir string }

func (g gitSpace) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=w", "GIT_AUTHOR_EMAIL=w@example.org", "GIT_COMMITTER_NAME=w", "GIT_COMMITTER_EMAIL=w@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (g gitSpace) Merge(ctx context.Context, commits []string, message string) error {
	for _, c := range commits {
		if _, err := g.git(ctx, "merge", "-q", "-m", message, c); err != nil {
			if _, aborted := g.git(ctx, "merge", "--abort"); aborted != nil {
				return errors.Join(err, aborted)
			}
			return team.Errorf(team.CodeConflict, "%w", err).WithReason("merge_conflict")
		}
	}
	return nil
}

func (g gitSpace) Commit(ctx context.Context, message string) (string, []string, bool, error) {
	if _, err := g.git(ctx, "add", "-A"); err != nil {
		return "", nil, false, err
	}
	files, err := g.git(ctx, "diff", "--cached", "--name-only")
	if err != nil || files == "" {
		return "", nil, false, err
	}
	if _, err := g.git(ctx, "commit", "-q", "-m", message); err != nil {
		return "", nil, false, err
	}
	sha, err := g.Head(ctx)
	return sha, strings.Split(files, "\n"), true, err
}

func (g gitSpace) Head(ctx context.Context) (string, error) { return g.git(ctx, "rev-parse", "HEAD") }
