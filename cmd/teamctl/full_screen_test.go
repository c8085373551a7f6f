package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestFullScreen checks that a person can approve, reject, send a message and follow its
// delivery, retry, attach and return, and quit with the keys that the screen shows, and that the
// ledger records all of it. Input that was not typed by hand answers nothing.
func TestFullScreen(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"npm publish --tag next"}' --description 'publish the package'`)
	r.asks("bob", `plan 'rename the flag'`)
	r.teamctl("task", "add", "integration")
	r.teamctl("task", "claim", "1")
	r.teamctl("task", "fail", "1", "--error", "2 of 40 failed")

	s := r.sit("one", 120, 36)
	s.keys("-l", "teamctl\naaa") // typed before the screen appears
	s.shows("3 NEED YOU")
	s.shows("npm publish --tag next")
	s.keys("a", "a") // faster than by hand
	s.tmux("set-buffer", "-b", "p", "aaaa")
	s.tmux("paste-buffer", "-p", "-b", "p", "-t", "one")
	s.sees("no answer", func(text string) bool {
		return strings.Contains(text, "nothing was answered") || strings.Contains(text, "still being read")
	})
	for _, x := range r.approvals() {
		if x.State != ledger.ApprovalPending {
			t.Fatalf("%s %d is %s without an answer typed by hand:\n%s", x.Kind, x.ID, x.State, s.screen())
		}
	}

	s.types("g", ".") // another item follows the selected one
	s.types(",")
	s.shows("a approve")
	s.answers("a", "request 1 of ann is approved")
	if x := r.approval(1); x.State != ledger.ApprovalApproved || x.AnsweredBy != team.LeadName {
		t.Errorf("permission 1 is %s by %s", x.State, x.AnsweredBy)
	}
	s.shows("2 NEED YOU")

	s.at("x", "reason, or what to change", ".", "plan", "bob")
	s.keys("-l", "keep the old one")
	s.answers("Enter", "request 2 of bob is rejected")
	if x := r.approval(2); x.State != ledger.ApprovalRejected || x.Feedback != "keep the old one" {
		t.Errorf("plan 2 is %s with %q", x.State, x.Feedback)
	}
	s.shows("1 NEED YOU")

	s.at("Enter", "WHY IT FAILED", ".", "failed", "task 1")
	s.shows("2 of 40 failed")
	s.types("Escape")
	s.shows("NEED YOU")
	s.selects(".", "failed", "task 1")
	s.types("r")
	s.until("the retry", func() bool { return strings.Contains(r.teamctl("task", "show", "1", "--json"), `"status": "pending"`) })

	s.types("g")
	s.at("m", "what to tell it", "j", "ann ", "working")
	s.keys("-l", "look at task 1")
	s.types("Enter")
	s.shows("to ann: mailed")
	var sent struct{ Messages []ledger.Message }
	if err := json.Unmarshal([]byte(r.teamctl("message", "ls", "--to", "ann", "--json")), &sent); err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, m := range sent.Messages {
		if m.Text == "look at task 1" {
			told += m.ID
		}
	}
	if n := r.mail("ann")[told]; n != 1 {
		t.Errorf("message %q is in the mailbox %d times: %+v", told, n, sent.Messages)
	}

	s.selects("j", "ann ", "working")
	s.types("s")
	s.sees("the screen of ann", func(text string) bool {
		return strings.Contains(text, " ann  screen, live") && strings.Contains(text, "it has asked") && !strings.Contains(text, "MEMBERS")
	})
	s.types("Escape")
	s.shows("MEMBERS 2")
	s.selects("j", "ann ", "working")
	s.types("o")
	s.shows("teamctl attach ann")
	s.keys("-l", "attach")
	s.types("Enter")
	s.shows("it has asked")
	s.keys("Enter") // makes ann read its mail
	s.shows("look at task 1")
	s.keys("C-b", "d")
	s.shows("MEMBERS 2")
	s.shows("to ann: read")

	s.types("7")
	s.shows("TIME of run 1, ")
	s.types("v")
	s.shows("LOG of tasks")
	s.shows("team-lead added 1 integration")

	s.types("q")
	s.left()
}

// TestFullScreenTwice checks that if two screens show a request, one of them answers it and the
// other one reports that. An answer to a request that was answered elsewhere while the reason was
// typed is refused.
func TestFullScreenTwice(t *testing.T) {
	r := newFaultRig(t)
	ask := `permission Bash --input '{"command":"make"}'`
	r.asks("ann", ask)
	one, two := r.sit("one", 120, 36), r.sit("two", 80, 24)
	for _, s := range []*seat{one, two} {
		s.run("teamctl ui --select approval:1")
		s.shows("Bash: make")
		s.shows("a approve")
	}
	approved := regexp.MustCompile(`request 1 of ann is approved`)
	told := regexp.MustCompile(`already approved|already answered|nothing was answered|does nothing here`)
	said := map[*seat]string{}
	for range 30 { // a screen that was painted late does not accept answers yet
		read := time.NewTimer(time.Second)
		<-read.C
		one.tmux("send-keys", "-t", "one", "a", ";", "send-keys", "-t", "two", "a")
		for _, s := range []*seat{one, two} {
			s.sees("what came of the key", func(text string) bool {
				said[s] = approved.FindString(text) + told.FindString(text)
				return said[s] != ""
			})
		}
		if r.approval(1).State != ledger.ApprovalPending {
			break
		}
	}
	for _, s := range []*seat{one, two} {
		s.sees("what came of the answer", func(text string) bool {
			said[s] = approved.FindString(text) + told.FindString(text)
			return said[s] != ""
		})
	}
	if n := len(approved.FindAllString(said[one]+said[two], -1)); n != 1 {
		t.Errorf("%d screens report that they have answered: %q, %q", n, said[one], said[two])
	}
	if x := r.approval(1); x.State != ledger.ApprovalApproved {
		t.Errorf("permission 1 is %s", x.State)
	}

	r.asks("bob", ask)
	one.at("x", "reason, or what to change", ".", "permission", "bob")
	one.keys("-l", "not now")
	r.teamctl("approvals", "approve", "2")
	one.answers("Enter", "already approved")
	if x := r.approval(2); x.State != ledger.ApprovalApproved || x.Feedback != "" {
		t.Errorf("permission 2 is %s with %q", x.State, x.Feedback)
	}
	for _, s := range []*seat{one, two} {
		s.types("q")
	}
	one.shows("was not sent") // the reason
	one.types("q")
	one.left()
	two.left()
}

// TestFullScreenAlways checks that a permission that is always allowed is not requested again.
func TestFullScreenAlways(t *testing.T) {
	r := newFaultRig(t)
	ask := `permission Bash --input '{"command":"make all"}'`
	r.asks("ann", ask)
	s := r.sit("one", 120, 36)
	s.run("teamctl ui --select approval:1")
	s.shows("A always allow")
	s.shows("A from now on: permissions: {allow: ")
	s.answers("A", "request 1 of ann is approved, and allowed from now on")
	if x := r.approval(1); x.State != ledger.ApprovalApproved || x.AnsweredBy != team.LeadName {
		t.Errorf("permission 1 is %s by %s", x.State, x.AnsweredBy)
	}
	if rules := r.teamctl("approvals", "rules"); !strings.Contains(rules, "make all") {
		t.Errorf("the rules are\n%s", rules)
	}
	r.asks("bob", ask)
	r.until("the second request", func() bool { return len(r.approvals()) == 2 })
	if x := r.approval(2); x.State != ledger.ApprovalApproved || x.AnsweredBy != "rules of the team" {
		t.Errorf("permission 2 is %s by %s", x.State, x.AnsweredBy)
	}
	s.types("q")
	s.left()
}

// TestFullScreenKilled checks that a screen reports since when its supervisor is down, until one
// is running again. A killed screen loses nothing, and the next one restores the terminal as it
// was before the first.
func TestFullScreenKilled(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	s := r.sit("one", 120, 36)
	s.run("teamctl")
	s.shows("1 NEED YOU")
	starting, err := filelock.Lock(t.Context(), r.layout.StartingLock()) // prevents any start of a supervisor, also by the screen
	if err != nil {
		t.Fatal(err)
	}
	sup := r.supervisor()
	rested := time.NewTimer(2 * time.Second) // without an event
	<-rested.C
	before := time.Now().Truncate(time.Second)
	r.kill(sup)
	killed := time.Now()
	s.shows("supervisor down since")
	since := func() string {
		t.Helper()
		down := regexp.MustCompile(`supervisor down since (\d\d:\d\d:\d\d)`).FindStringSubmatch(s.screen())
		if down == nil {
			t.Fatalf("it is not reported as down:\n%s", s.screen())
		}
		return down[1]
	}
	at, next := since(), before
	for ; next.Format("15:04:05") != at && next.Before(time.Now()); next = next.Add(time.Second) {
	}
	if next.After(time.Now()) {
		t.Errorf("it is reported as down since %s, and was killed between %v and %v", at, before, killed)
	}
	for !time.Now().After(killed.Add(2 * time.Second)) {
		r.tick()
	}
	r.teamctl("task", "add", "later") // an event that no supervisor has seen
	s.shows("0/1")
	if again := since(); again != at {
		t.Errorf("it is reported as down since %s after an event, and since %s before", again, at)
	}
	if !regexp.MustCompile(`\? ann +\S+ +` + at[:5]).MatchString(s.screen()) {
		t.Errorf("ann is not as of %s:\n%s", at, s.screen())
	}
	if !regexp.MustCompile(`\? ann `).MatchString(s.screen()) {
		t.Errorf("ann is not marked:\n%s", s.screen())
	}
	if err := starting.Unlock(); err != nil {
		t.Fatal(err)
	}
	s.sees("a head without it", func(text string) bool { return !strings.Contains(text, "supervisor down") })

	s.kill()
	if x := r.approval(1); x.State != ledger.ApprovalPending {
		t.Errorf("permission 1 is %s", x.State)
	}
	s.run("teamctl")
	s.shows("1 NEED YOU")
	s.at("a", "request 1 of ann is approved", ".", "permission", "ann")
	s.types("q")
	s.left()
}

// TestFullScreenDraft checks that a message that was begun survives a kill of the screen, and is gone once it is sent.
func TestFullScreenDraft(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	s := r.sit("one", 120, 36)
	db, err := ledger.Open(t.Context(), r.layout.Ledger(), ledger.Options{LockPath: r.layout.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	drafts := func(want int) func() bool {
		return func() bool {
			names, err := ledger.New(db, nil).SettingNames(t.Context(), "draft ")
			return err == nil && len(names) == want
		}
	}
	s.run("teamctl")
	s.at("m", "message ann: what to tell it", "j", "ann ")
	s.keys("-l", "half written thing")
	r.until("the draft", drafts(1))
	s.kill()
	s.run("teamctl")
	s.at("m", "▏ half written thing", "j", "ann ")
	s.types("Enter")
	s.shows("to ann: ")
	r.until("no draft", drafts(0))
	s.at("m", "message ann: what to tell it", "j", "ann ")
	if text := s.screen(); strings.Contains(text, "half written") {
		t.Errorf("what was sent is in the field:\n%s", text)
	}
	s.types("Escape", "q")
	s.left()
}

// TestFullScreenReview checks that a typed comment is saved as a draft at the first pause and
// survives a kill of the screen, and that the member's answer is shown at the line once the
// comment is sent.
func TestFullScreenReview(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--backend", "tmux", "--", "sh", "-c", "until "+r.exe+" inbox --unread | grep '1.1 cart.go:2'; do sleep 0.3; done; "+
		r.exe+" review answer 1.1 --handled 'by the currency now'; exec sleep 10000")
	if err := os.WriteFile(filepath.Join(r.layout.Worktrees(), "ann", "cart.go"), []byte("package cart\nvar digits = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.sit("one", 120, 36)
	changes := func() {
		t.Helper()
		s.run("teamctl ui --select ann")
		s.shows("› ")
		s.selects("j", "ann ")
		s.types("d")
		s.shows("cart.go")
		s.types("Enter")
		s.shows("n next change")
	}
	changes()
	s.types("j", "c")
	s.shows("comment on cart.go:2 of ann")
	s.keys("-l", "why two?")
	r.until("the draft", func() bool { return strings.Contains(r.teamctl("review", "show", "ann"), "why two?") })
	s.kill()
	changes()
	s.shows("draft 1.1: why two?")
	s.types("S")
	s.shows("handled 1.1: why two?")
	s.shows("by the currency now")
	if text := r.teamctl("review", "show", "ann"); !strings.HasPrefix(text, "1.1  ann  cart.go:2  handled\n") {
		t.Errorf("the ledger has:\n%s", text)
	}
	s.types("q")
	s.left()
}

// TestFullScreenPlan checks that comments on the lines of a plan survive a kill of the screen and of
// the supervisor, and that the rejection takes them to the member, once, with the reason and the
// lines. Those on the next plan are written and sent at a shell.
func TestFullScreenPlan(t *testing.T) {
	r := newFaultRig(t)
	if err := os.WriteFile(filepath.Join(r.dir, "plan.md"), []byte("# Rename\n1. rename the flag\n2. delete the old one\n3. write a test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.teamctl("spawn", "bob", "--backend", "tmux", "--worktree", "none", "--", "sh", "-c",
		r.exe+" ask plan - --wait < "+r.dir+"/plan.md; "+r.exe+" inbox --consume; "+r.exe+" ask plan 'a smaller one' --wait; exec sleep 10000")
	told := func(words ...string) {
		t.Helper()
		r.until("what bob is told", func() bool {
			log, err := os.ReadFile(r.layout.Bundle("bob").Log())
			if err != nil {
				return false
			}
			for _, w := range words {
				if !strings.Contains(string(log), w) {
					return false
				}
			}
			return true
		})
	}
	r.until("the plan", func() bool { return r.approval(1).State == ledger.ApprovalPending })

	s := r.sit("one", 120, 36)
	plan := func() {
		t.Helper()
		s.run("teamctl ui --select approval:1")
		s.shows("1 NEED YOU")
		s.selects(".", "plan", "bob")
		s.types("Enter")
		s.shows("›1 # Rename")
	}
	plan()
	s.types("j", "j")
	s.shows("›3 2. delete the old one")
	s.types("c")
	s.shows("comment on line 3 of plan 1 of bob")
	s.keys("-l", "keep it for a release")
	r.until("the draft", func() bool {
		return strings.Contains(r.teamctl("review", "show", "--plan", "1"), "keep it for a release")
	})
	s.kill()
	r.kill(r.supervisor())
	plan()
	s.shows("draft 1: keep it for a release")
	s.types("j")
	s.shows("›2 1. rename the flag")
	s.types("c")
	s.shows("comment on line 2 of plan 1 of bob")
	s.keys("-l", "which one?")
	s.types("Enter")
	s.shows("draft 2: which one?")
	s.insists("with 2 comments on the plan", func() { s.types("x") })
	s.keys("-l", "not yet")
	s.answers("Enter", "request 1 of bob is rejected")

	const want = "not yet\n\n2 comments on the plan:\n\n1. line 3:\n> 2. delete the old one\nkeep it for a release\n\n2. line 2:\n> 1. rename the flag\nwhich one?"
	if x := r.approval(1); x.State != ledger.ApprovalRejected || x.Feedback != want {
		t.Errorf("plan 1 is %s with %q", x.State, x.Feedback)
	}
	told("not yet", "line 3:", "> 2. delete the old one", "keep it for a release", "line 2:", "> 1. rename the flag", "which one?")
	if text := r.teamctl("review", "show", "--plan", "1"); !strings.HasPrefix(text, "1  bob  plan 1, line 3  sent\n") {
		t.Errorf("the ledger has:\n%s", text)
	}
	if _, err := r.try(r.exe, "review", "add", "--plan", "1", "--line", "1", "late"); err == nil {
		t.Error("a plan that was answered gets a comment")
	}
	s.types("q")
	s.left()

	r.until("the next plan", func() bool { return r.approval(2).State == ledger.ApprovalPending })
	r.teamctl("review", "add", "--plan", "2", "--line", "1", "how small?")
	r.teamctl("approvals", "reject", "2", "--comments")
	if x := r.approval(2); x.Feedback != "1 comment on the plan:\n\n1. line 1:\n> a smaller one\nhow small?" {
		t.Errorf("plan 2 is %s with %q", x.State, x.Feedback)
	}
	told("how small?")
}

// TestFullScreenWithoutATeam checks that a person without a team sees the first commands, runs them from the
// screen after a question, and is at the team then.
func TestFullScreenWithoutATeam(t *testing.T) {
	r := newFaultRig(t)
	s := r.sit("one", 100, 24)
	s.run("cd " + r.dir + "/repo && export " + team.EnvHome + "=" + r.dir + "/none")
	s.keys("-l", "teamctl\n")
	s.shows("THE FIRST COMMANDS")
	s.shows("teamctl create repo --repo .")
	s.types("j", "Enter")
	s.shows("Run these 2 commands")
	s.types("Escape")
	s.shows("nothing was done")
	if _, err := os.Stat(r.dir + "/none/teams/repo"); err == nil {
		t.Error("a team was made without an answer")
	}
	s.types("Enter")
	s.shows("Run these 2 commands")
	s.answers("Enter", "TASKS 0")
	s.shows("builder")
	s.types("q")
	s.shows("shell>")
	s.run("teamctl delete --force")
	s.shows("deleted team repo")
}
