package look

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// newMailTeam returns a team with these members, whose processes do not run.
func newMailTeam(t *testing.T, names ...string) *tool.Team {
	t.Helper()
	env := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := env.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tm.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		_, _, err := tm.Ledger.AddMember(t.Context(), ledger.Member{Name: name, Role: team.RoleExecutor, Spec: team.MemberSpec{Agent: team.AgentClaude},
			Observed: team.Exited, Desired: team.WantStopped}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	return tm
}

// TestMailInWords checks that the mail of screens has sentences for protocol messages.
func TestMailInWords(t *testing.T) {
	t.Parallel()
	tm := newMailTeam(t, "ann")
	const frame = `{"type":"task_completed","from":"ann","taskId":"2","taskSubject":"lint","timestamp":"x"}`
	for _, m := range []ledger.NewMessage{
		{From: "ann", To: team.LeadName, Kind: team.KindTaskCompleted, Text: frame, Summary: "completed task 2: lint"},
		{From: "ann", To: team.LeadName, Kind: team.KindMessage, Text: "done\nall of it"},
	} {
		if _, err := tm.Post(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Mail(t.Context(), tm)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if x := list[0]; x.Line() != "completed task 2: lint" || strings.Contains(x.Text, "{") || x.Said == "" {
		t.Errorf("protocol: %+v", x)
	}
	if x := list[1]; x.Text != "done\nall of it" || x.Said != "" || x.Line() != "done all of it" {
		t.Errorf("a message: %+v", x)
	}
}

// TestLostMail checks that a message of which nothing shows that it has arrived needs a person, and one
// that is held unless its limit does, until it arrives or is sent again.
func TestLostMail(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann", "bob")
	post := func(to, text, key string) string {
		t.Helper()
		m, err := tm.Post(ctx, ledger.NewMessage{From: team.LeadName, To: to, Kind: team.KindMessage, Text: text, IdemKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	mark := func(id, to string, s team.DeliveryState, why string) {
		t.Helper()
		if _, err := tm.Ledger.Mark(ctx, ledger.DeliveryMark{MessageID: id, Recipient: to, State: s, Reason: why, Evidence: "a test"}); err != nil {
			t.Fatal(err)
		}
	}
	look := func(want string) []view.Need {
		t.Helper()
		list, err := Needs(ctx, tm)
		var got []string
		mail := slices.DeleteFunc(list, func(n view.Need) bool { return n.Kind != view.NeedMail })
		slices.SortFunc(mail, func(a, b view.Need) int { return strings.Compare(a.Member+a.Text, b.Member+b.Text) })
		for _, n := range mail {
			got = append(got, n.Member+" "+n.Text)
		}
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		return mail
	}
	lost, held, again := post("ann", "please look\nat task 3", ""), post("bob", "stop", ""), post("bob", "go on", "")
	look("")
	for id, to := range map[string]string{lost: "ann", again: "bob"} {
		mark(id, to, team.Injected, "")
		mark(id, to, team.Unknown, "nothing shows it")
	}
	mark(held, "bob", team.Held, "its budgets cannot be read")
	list := look("ann unknown (nothing shows it): please look; bob held (its budgets cannot be read): stop; bob unknown (nothing shows it): go on")
	if n := list[0]; n.Message != lost || n.Command != "teamctl message show "+lost[:8] || n.Since.IsZero() {
		t.Errorf("%+v", n)
	}
	target := view.Target{Thing: view.OnMember, Need: &list[2], Member: &view.Member{Name: "bob"}}
	action, _ := view.ActionByID("send-again")
	d := target.Deed(action)
	if line := action.Line(d); line != "teamctl send bob --forward "+again+" --idempotency-key again:"+again+":bob" {
		t.Errorf("sent again by %q", line)
	}
	post("bob", "[from team-lead] go on", d.Again())
	mark(lost, "ann", team.Read, "")
	look("bob held (its budgets cannot be read): stop")
	if got, err := lostMail(ctx, tm, []view.Need{{Kind: view.NeedLimit}}); err != nil || len(got) != 0 {
		t.Errorf("beside a limit: %+v, %v", got, err)
	}
	mark(held, "bob", team.Mailed, "")
	look("")
}

// TestDroppedMail checks that a message which its member has not read and will not get needs a person until it
// is sent again, and that protocol messages which are of no use any more do not.
func TestDroppedMail(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann", "bob")
	post := func(m ledger.NewMessage) string {
		t.Helper()
		sent, err := tm.Post(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		return sent.ID
	}
	drop := func(id, to string) {
		t.Helper()
		if _, err := tm.Ledger.Mark(ctx, ledger.DeliveryMark{MessageID: id, Recipient: to, State: team.Dropped, Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
	}
	mail := func(want ...string) []view.Need {
		t.Helper()
		list, err := Needs(ctx, tm)
		list = slices.DeleteFunc(list, func(n view.Need) bool { return n.Kind != view.NeedMail })
		got := []string{}
		for _, n := range list {
			got = append(got, n.Member+" "+n.Text)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		return list
	}
	lost := post(ledger.NewMessage{From: team.LeadName, To: "ann", Kind: team.KindMessage, Text: "please look"})
	drop(lost, "ann")
	drop(post(ledger.NewMessage{From: "ann", To: team.LeadName, Kind: team.KindIdle, Text: `{"type":"idle_notification"}`}), team.LeadName)
	drop(post(ledger.NewMessage{From: team.LeadName, To: "ann", Kind: team.KindShutdownRequest, Text: `{"type":"shutdown_request"}`, RequestID: "r1"}), "ann")
	list := mail("ann dropped (a test): please look")
	if len(list) == 0 {
		t.FailNow()
	}
	action, _ := view.ActionByID("send-again")
	d := view.Target{Thing: view.OnMember, Need: &list[0], Member: &view.Member{Name: "ann"}}.Deed(action)
	post(ledger.NewMessage{From: team.LeadName, To: "ann", Kind: team.KindMessage, Text: "please look", IdemKey: d.Again()})
	mail()

	post(ledger.NewMessage{From: "ann", To: "bob", Kind: team.KindMessage, Text: "take over"})
	bob, err := tm.Ledger.Member(ctx, "bob")
	if err == nil {
		err = tm.Ledger.RemoveMember(ctx, bob.SessionKey)
	}
	if err != nil {
		t.Fatal(err)
	}
	mail("bob dropped (bob has left the team): take over")
}

// TestOutputOfFailed checks that the details of a failed member have its last lines, without what acts
// on a terminal.
func TestOutputOfFailed(t *testing.T) {
	t.Parallel()
	tm := newMailTeam(t)
	for state, want := range map[team.Observed]string{team.Failed: "old|no such file|exit 127", team.Exited: ""} {
		name := string(state)
		_, _, err := tm.Ledger.AddMember(t.Context(), ledger.Member{Name: name, Role: team.RoleExecutor, Spec: team.MemberSpec{Agent: team.AgentClaude},
			Observed: state, Desired: team.WantStopped}, true)
		if err != nil {
			t.Fatal(err)
		}
		path := tm.Layout.Bundle(name).Log()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("old\n", 100)+"\x1b[31mno such file\x1b[0m\n\n\x1b]0;t\x07exit 127"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Member(t.Context(), tm, name)
		if got := strings.Join(d.Output[max(0, len(d.Output)-3):], "|"); err != nil || got != want || len(d.Output) > outputShown {
			t.Errorf("%s: %d lines, the last %q, %v", state, len(d.Output), got, err)
		}
	}
}

// TestRuleInTeamFile checks that a rule is in the form of the team file.
func TestRuleInTeamFile(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]team.PermissionRule{
		`permissions: {allow: [{tool: shell, command: "make all"}]}`:                               {Tool: "shell", Command: "make all"},
		`permissions: {allow: [{tool: "mcp*", path: "a\"<b/**", members: ["worker-1", builder]}]}`: {Tool: "mcp*", Path: `a"<b/**`, Members: []string{"worker-1", "builder"}},
	} {
		if got := inTeamFile(rule); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
