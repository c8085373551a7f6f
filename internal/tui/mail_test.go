package tui

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

func someMail() []view.Message {
	at := func(d time.Duration) time.Time { return epoch.Add(-d) }
	return []view.Message{
		{ID: "aaaaaaaa-1", Root: "aaaaaaaa-1", From: "team-lead", To: "worker-2", Text: "look at task 3", Kind: team.KindMessage, At: at(4 * time.Minute),
			Receipts: []view.Receipt{{To: "worker-2", State: team.Held, At: at(time.Minute), Reason: "the budget is used up"}}},
		{ID: "cccccccc-3", Root: "aaaaaaaa-1", Depth: 1, From: "worker-2", To: "team-lead", Text: "yes", Kind: team.KindMessage, At: at(time.Minute),
			Receipts: []view.Receipt{{To: "team-lead", State: team.Accepted, At: at(time.Minute)}}},
		{ID: "bbbbbbbb-2", Root: "bbbbbbbb-2", From: "worker-1", To: "team-lead", Text: "Permission is asked to use Bash.\ncommand: ls", Said: "Permission is asked to use Bash.", Kind: team.KindPermissionRequest, At: at(2 * time.Minute),
			Receipts: []view.Receipt{{To: "team-lead", State: team.Read, At: at(time.Minute)}}},
	}
}

// postbox is a team with mail.
type postbox struct{ deeds }

func (p *postbox) Mail(context.Context) ([]view.Message, error) { return someMail(), nil }

func (p *postbox) Merges(context.Context) ([]view.Merge, error) { return nil, nil }

// TestMail checks that mail opens at the newest message, says how far each has come, folds protocol
// messages until they are opened, and writes to the member of the conversation or to its group.
func TestMail(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	p := &postbox{}
	r := &run{m: m, ui: &UI{}, team: p, teamCtx: t.Context(), changes: make(chan func(*model), 4), running: map[string]bool{}, again: map[string]doing{}}
	press := func(key string) string {
		m.lastKey = time.Time{}
		if m.over.kind != noOverlay {
			r.overKey(term.Event{Key: key, At: epoch}, "")
		} else {
			r.key(term.Event{Key: key, At: epoch}, "")
		}
		m.refresh()
		r.frame = m.draw()
		return text(r.frame)
	}
	press("4")
	(<-r.changes)(m)
	m.refresh()
	drawn := text(m.draw())
	if m.cursor != "message:cccccccc-3" {
		t.Errorf("opened at %s", m.cursor)
	}
	for _, want := range []string{"held: the budget is used up", "accepted " + epoch.Add(-time.Minute).Local().Format("15:04"), "read "} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
	m.choose("message:bbbbbbbb-2")
	m.refresh()
	if drawn := text(m.draw()); strings.Contains(drawn, "command: ls") || !strings.Contains(drawn, "enter shows all of it") {
		t.Errorf("folded:\n%s", drawn)
	}
	if drawn := press("enter"); !strings.Contains(drawn, "command: ls") {
		t.Errorf("opened:\n%s", drawn)
	}

	m.choose("message:aaaaaaaa-1")
	if press("m"); m.over.kind != inputOverlay || m.over.deed.Member != "worker-2" || m.over.deed.Message != "aaaaaaaa-1" || m.over.action.ID != "message" {
		t.Errorf("message: %+v", m.over)
	}
	press("esc")
	lines := map[string]string{}
	for _, c := range m.choices(false) {
		lines[c.action.ID] = c.line
	}
	if lines["message-group"] != "teamctl send 'worker-*' {text}" || lines["broadcast"] == "" {
		t.Errorf("menu: %q", lines)
	}
	m.sent, m.sentTo, m.receipt = "1,2", "worker-*", []view.Receipt{{To: "worker-1", State: team.Read}, {To: "worker-2", State: team.Mailed}}
	if got := m.receiptLine(); got != "to worker-*: 1 read, 1 mailed" {
		t.Errorf("receipts: %q", got)
	}
	r.all.Wait()
}

// TestPlainMail checks that the plain screen lists mail by its time, in words, and shows a message.
func TestPlainMail(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), team: &postbox{}, snap: crowd(3), have: true}
	talk.look("mail", "")
	talk.show("message bbbb")
	talk.show("message zz")
	at := func(d time.Duration) string { return clock(epoch.Add(-d)) }
	want := fmt.Sprintf(`message aaaaaaaa, %s, team-lead to worker-2: look at task 3, held: the budget is used up
message bbbbbbbb, %s, worker-1 to team-lead: Permission is asked to use Bash., read %s
message cccccccc, %s, worker-2 to team-lead: yes, accepted %s
message bbbbbbbb, %[2]s, worker-1 to team-lead: Permission is asked to use Bash., read %[3]s
text: Permission is asked to use Bash.
text: command: ls
to team-lead: read %[6]s
there is no message "zz": mail lists them.
`, at(4*time.Minute), at(2*time.Minute), at(time.Minute), at(time.Minute), at(time.Minute), epoch.Add(-time.Minute).Local().Format("15:04:05"))
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestLostMailOpens checks that a message that may be lost is opened from what needs the person.
func TestLostMailOpens(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(3), 120, 36)
	m.snap.Needs = []view.Need{{Kind: view.NeedMail, Member: "worker-2", Message: "aaaaaaaa-1", Text: "unknown: look at task 3"}}
	m.refresh()
	m.choose(needID(m.snap.Needs[0]))
	if _, ok := m.actionByID("send-again"); !ok {
		t.Error("it cannot be sent again")
	}
	p := &postbox{}
	r := &run{m: m, ui: &UI{}, team: p, teamCtx: t.Context(), changes: make(chan func(*model), 4), running: map[string]bool{}, again: map[string]doing{}}
	r.key(term.Event{Key: "enter", At: epoch}, "")
	(<-r.changes)(m)
	m.refresh()
	if m.at != inMail || m.cursor != "message:aaaaaaaa-1" {
		t.Errorf("%s at %s", m.at, m.cursor)
	}
	r.all.Wait()
}

// actionByID returns an action on the selected row.
func (m *model) actionByID(id string) (view.Action, bool) {
	for _, a := range m.actions() {
		if a.ID == id {
			return a, true
		}
	}
	return view.Action{}, false
}

// TestFailedOutput checks that the details of a member that has failed show its last lines.
func TestFailedOutput(t *testing.T) {
	t.Parallel()
	x := view.Member{Name: "worker-1", State: team.Failed, Since: epoch}
	need := view.Need{Kind: view.NeedMember, Member: "worker-1", Text: "crash loop: gave up (exit 127)"}
	d := view.MemberDetail{Member: x, Output: []string{"starting", "no such file\x1b[2J"}}
	m := shownOf(crowd(3), 120, 36)
	m.member["worker-1"] = d
	lines := text(frame{lines: m.memberLines(x, &need, 60, 20)})
	if !strings.Contains(lines, "gave up (exit 127)") || !strings.Contains(lines, "LAST OUTPUT\nstarting\nno such file\\x1b[2J") {
		t.Errorf("drawn:\n%s", lines)
	}
	for _, height := range []int{0, 1, 3, 5} {
		if n := len(m.memberLines(x, &need, 60, height)); n > height {
			t.Errorf("%d lines in %d", n, height)
		}
	}
	if stale(d, x) || !stale(d, view.Member{Name: "worker-1", State: team.Running}) {
		t.Error("details are read again only for another process")
	}
}

// TestRuleOfRequest checks that a permission says where no rule names its tool, and which rule would be
// added, as a team file and a shell have it.
func TestRuleOfRequest(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(3), 120, 36)
	m.request[9] = view.Request{ID: 9, Kind: view.NeedPermission, State: "pending", Member: "worker-1", Tool: "Bash", Command: "make", NoRule: true,
		Rule: `permissions: {allow: [{tool: shell, command: make}]}`}
	lines, _ := m.requestLines(9, 100)
	drawn := strings.Join(lines, "\n")
	for _, want := range []string{"no rule of the team names the tool Bash", "A from now on: permissions: {allow: [{tool: shell, command: make}]}", "at a shell: teamctl approvals approve 9 --always"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
}
