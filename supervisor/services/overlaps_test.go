package services

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inTrees gives each member a worktree of a new repository that contains the file f.
func inTrees(t *testing.T, members []ledger.Member) []ledger.Member {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	git(t, repo, "init", "-q")
	write(t, filepath.Join(repo, "f"), "one\n")
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-q", "-m", "first")
	for i := range members {
		m := &members[i]
		m.Worktree, m.Branch, m.Observed, m.Spec.WorktreeMode = filepath.Join(filepath.Dir(repo), m.Name), "teamctl/t/"+m.Name, team.Running, "own"
		git(t, repo, "worktree", "add", "-q", "-b", m.Branch, m.Worktree)
	}
	return members
}

// Members that edit the same file are warned while they edit, once; with a single worktree nothing
// is watched, and a member that is not running is not watched.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("directory trees are watched on Linux only")
	}
	tm, members := looptest.NewTeam(t, "ann", "bob")
	members = inTrees(t, members)
	for _, m := range members {
		if _, err := tm.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Worktree: &m.Worktree, Branch: &m.Branch}); err != nil {
			t.Fatal(err)
		}
	}
	b := looptest.NewBus(t, members...)
	o := NewOverlaps(tm, NewSlots(), time.Minute)
	b.List = b.List[:1]
	b.StartService(o)
	if len(o.edits) != 0 || o.trees != nil {
		t.Fatalf("one worktree is watched: %v", o.edits)
	}
	b.List = looptest.NewBus(t, members...).List
	o.Looked(true)
	b.Next()
	b.Next()
	told := func() (texts []string) {
		list, err := tm.Ledger.Messages(t.Context(), ledger.MessageFilter{Recipient: team.LeadName})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			texts = append(texts, m.Text)
		}
		return texts
	}
	for _, m := range members {
		write(t, filepath.Join(m.Worktree, "f"), m.Name+"\n")
	}
	b.Until("a warning", func() bool { return len(told()) > 0 })
	write(t, filepath.Join(members[0].Worktree, "f"), "again\n")
	b.Next()
	b.Until("the look", func() bool { return len(b.Timers) == 0 && !o.edits[members[0].SessionKey].looking })
	if texts := told(); len(texts) != 1 || !strings.Contains(texts[0], "have both changed f") {
		t.Errorf("told %q", texts)
	}
	b.List[1].Observed = team.Exited
	o.Looked(true)
	if len(o.edits) != 1 {
		t.Errorf("%d worktrees are watched after an exit", len(o.edits))
	}
}

// A checkpoint is taken when a member goes idle; requests during a checkpoint result in one more.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	m := inTrees(t, members)[0]
	b := looptest.NewBus(t, m)
	slots := NewSlots()
	c := NewCheckpoints(tm, slots)
	b.StartService(c)
	repo, _, err := worktree.OpenWorktree(t.Context(), m.Worktree)
	if err != nil {
		t.Fatal(err)
	}
	saves := func() int {
		list, err := repo.Saves(t.Context(), worktree.KindCheckpoint, "t", "ann")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	write(t, filepath.Join(m.Worktree, "f"), "two\n")
	for range cap(slots) { // none begins yet
		slots <- struct{}{}
	}
	c.Event(ledger.Event{What: "member.activity", ID: "ann", After: string(team.Working)})
	c.Event(ledger.Event{What: "member.activity", ID: "nobody", After: string(team.Idle)})
	if len(c.saving) != 0 {
		t.Errorf("checkpoints under way: %v", c.saving)
	}
	for range 3 {
		c.Event(ledger.Event{What: "member.activity", ID: "ann", After: string(team.Idle)})
	}
	c.Event(ledger.Event{What: "task.completed", Who: "ann", ID: "7"})
	if why := c.saving[m.SessionKey]; why != "task 7 is done" {
		t.Errorf("one more for %q", why)
	}
	for range cap(slots) {
		slots.give()
	}
	b.Next() // the first ends, and the second begins
	if n := saves(); n != 1 || len(c.saving) != 1 {
		t.Errorf("%d checkpoints, under way %v", n, c.saving)
	}
	b.Next()
	if n := saves(); n != 1 || len(c.saving) != 0 { // nothing had changed
		t.Errorf("%d checkpoints, under way %v", n, c.saving)
	}
	// What a built-in agent saves itself is not saved twice.
	idle, done := ledger.Event{What: "member.activity", ID: "ann", After: string(team.Idle)}, ledger.Event{What: "task.completed", Who: "ann", ID: "8"}
	for _, k := range []struct {
		agent      string
		idle, done bool
	}{{team.AgentWorker, false, false}, {team.AgentLLM, false, true}, {team.AgentClaude, true, true}} {
		b.List[0].Spec.Agent = k.agent
		for e, want := range map[*ledger.Event]bool{&idle: k.idle, &done: k.done} {
			c.Event(*e)
			if got := len(c.saving) != 0; got != want {
				t.Errorf("%s, %s: a checkpoint %v", k.agent, e.What, got)
			}
			if len(c.saving) != 0 {
				b.Next()
			}
		}
	}
}
